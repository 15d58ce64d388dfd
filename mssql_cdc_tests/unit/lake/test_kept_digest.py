"""The digest that is kept beside `_offsets` spares a new process the rows; what is not certain is folded again (A5)."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake import kept_digest, offset_commits, offset_digest, offset_entries, offset_rows, steps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets, offsets_table
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import ReadAt, SmallTable
from mssql_cdc.lake.steps import OffsetRow
from mssql_cdc_tests.unit.lake.test_offset_digest import ROWS, layout, range_row

KEPT = 5


@pytest.fixture(autouse=True)
def kept_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_commits, "KEEP_EVERY", KEPT)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first row that each look at the table has read behind."""
    found: list[int] = []
    real = SmallTable.read

    def watched(small: SmallTable, *, since: ReadAt | None, after: int, least: int) -> object:
        reading = real(small, since=since, after=after, least=least)
        found.append(after if reading.goes_on else 0)
        return reading

    monkeypatch.setattr(SmallTable, "read", watched)
    return found


def path(place: Layout) -> Path:
    return Path(place.own("offsets")) / "_digest.json"


def written(place: Layout, count: int, *, first: int = 1) -> Offsets:
    offsets = load_offsets(place)
    for number in range(first, first + count):
        offsets = append_offsets(place, range_row(number), seen=offsets)
    return offsets


def folded(place: Layout) -> Offsets:
    """All rows, without the digest."""
    return Offsets().newer(offsets_table(place))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=KEPT, max_size=2 * KEPT + 1))
def test_a_kept_digest_is_what_its_rows_amount_to(tmp_path_factory: pytest.TempPathFactory, rows: list[OffsetRow]):
    place = layout(tmp_path_factory.mktemp("lake"))
    epoch, offsets = 0, Offsets()
    for row in rows:
        epoch = max(epoch, row.epoch)
        offsets = append_offsets(place, replace(row, epoch=epoch), seen=offsets)
    assert path(place).exists()
    assert load_offsets(place) == folded(place) == offsets


def test_only_the_rows_since_are_read(tmp_path: Path, read: list[int]):
    place = layout(tmp_path)
    last = written(place, 2 * KEPT + 2)
    del read[:]
    assert load_offsets(place) == last
    assert read == [2 * KEPT]


def other_code(place: Layout) -> None:
    kept = json.loads(path(place).read_text())
    path(place).write_text(json.dumps({**kept, "code": "another version"}))


def broken(place: Layout) -> None:
    path(place).write_text(path(place).read_text()[:100])


def of_another_table(place: Layout) -> None:
    kept = json.loads(path(place).read_text())
    path(place).write_text(json.dumps({**kept, "at": {**kept["at"], "mark": "of another commit"}}))


def gone(place: Layout) -> None:
    path(place).unlink()


@pytest.mark.parametrize("happens", [other_code, broken, of_another_table, gone])
def test_all_rows_are_read_if_the_digest_is_not_certainly_that_of_the_table(
    tmp_path: Path, read: list[int], happens: Callable[[Layout], None]
):
    place = layout(tmp_path)
    last = written(place, KEPT + 2)
    happens(place)
    del read[:]
    assert load_offsets(place) == last
    assert read == [0]


def test_a_digest_of_rows_that_were_taken_away_does_not_count(tmp_path: Path):
    """The folder was put back as it was before, and the digest of later rows stayed in it."""
    place = layout(tmp_path)
    written(place, KEPT - 2)
    before = tmp_path / "before"
    shutil.copytree(place.own("offsets"), before)
    written(place, KEPT, first=KEPT - 1)
    later = path(place).read_bytes()
    shutil.rmtree(place.own("offsets"))
    shutil.copytree(before, place.own("offsets"))
    path(place).write_bytes(later)
    assert load_offsets(place).number == KEPT - 2
    other = written(place, KEPT, first=100)
    assert load_offsets(place) == folded(place) == other


def test_vacuum_leaves_the_digest_and_a_store_that_refuses_it_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = layout(tmp_path)
    written(place, KEPT)
    DeltaTable(place.own("offsets")).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert path(place).exists()
    path(place).unlink()
    path(place).mkdir()
    last = written(place, KEPT, first=KEPT + 1)
    shutil.rmtree(path(place))
    assert load_offsets(place) == last


def test_looking_for_a_digest_creates_nothing(tmp_path: Path):
    place = layout(tmp_path / "lake")
    assert load_offsets(place) == Offsets()
    assert not list(tmp_path.iterdir())


def test_a_digest_that_takes_long_to_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_digest, "MOST_BYTES", 1_000)
    place = layout(tmp_path)
    last = written(place, KEPT)
    assert not path(place).exists()
    assert load_offsets(place) == last


@pytest.mark.parametrize("module", [offset_digest, offset_entries, offset_rows, steps])
def test_another_version_of_the_code_that_folds_rows_is_told_apart(monkeypatch: pytest.MonkeyPatch, module: ModuleType):
    now, source = kept_digest._code(), inspect.getsource
    monkeypatch.setattr(inspect, "getsource", lambda one: source(one) + "#" * (one is module))
    assert kept_digest._code() != now
    assert now == kept_digest._CODE, "an upgrade under a process that works changes what it takes itself for"


def test_without_sources_nothing_is_kept_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every 256th row ended the run behind its commit."""

    def no_source(_module: ModuleType) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", no_source)
    monkeypatch.setattr(kept_digest, "_CODE", kept_digest._code())
    place = layout(tmp_path)
    assert len(written(place, 2 * KEPT).history.rows) == 2 * KEPT
    assert not path(place).exists()
    assert len(load_offsets(place).history.rows) == 2 * KEPT
