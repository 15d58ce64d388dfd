"""The channel `file`: every line is delivered once, whatever happens between reading and recording."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.follow.file_channel import UNFINISHED_SECONDS, SignalFile
from mssql_cdc.follow.signal_contract import Arrived

LOG = {"id": "s1", "type": "log", "data": {"message": "hello"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "signals.txt"


def write(file: Path, *lines: object) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


def channel(file: Path, catalog: str = "shop", *catalogs: str, now: float | None = None) -> SignalFile:
    clock = {} if now is None else {"now": lambda: now}
    return SignalFile(file, catalog, catalogs or (catalog,), **clock)


def ids(arrived: Arrived | None) -> list[str]:
    return [] if arrived is None else [one.id for one in arrived.signals]


@pytest.mark.feature("SIG-06")
def test_a_line_is_a_signal_with_its_data_as_object_or_as_text(file: Path):
    write(file, LOG, "", {"id": "s2", "type": "log", "data": '{"message": "as text"}'}, {"type": "pause-snapshot"})
    found = channel(file).read(None)
    assert found is not None
    assert [(one.id, one.type, one.data) for one in found.signals[:2]] == [
        ("s1", "log", '{"message": "hello"}'),
        ("s2", "log", '{"message": "as text"}'),
    ]
    assert (found.signals[2].type, found.signals[2].data, len(found.signals[2].id)) == ("pause-snapshot", None, 36)
    assert not file.exists()


def test_signals_stay_until_the_lake_holds_them_and_go_then(file: Path):
    write(file, LOG)
    first = channel(file).read(None)
    again = channel(file).read(None)  # The run that read them first has died.
    assert ids(first) == ids(again) == ["s1"]
    assert first is not None
    assert channel(file).read(first.bookmark) is None
    assert list(file.parent.iterdir()) == []


def test_a_file_written_meanwhile_is_read_after_the_one_that_was_taken(file: Path):
    write(file, LOG)
    first = channel(file).read(None)
    write(file, LOG | {"id": "s2"})
    assert first is not None
    assert ids(channel(file).read(first.bookmark)) == ["s2"]
    write(file, LOG | {"id": "s3"})
    assert ids(channel(file).read(None)) == ["s2", "s3"]


def test_what_is_written_through_a_handle_after_the_file_was_taken_is_read(file: Path):
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(LOG) + "\n")
        stream.flush()
        first = channel(file).read(None)
        stream.write(json.dumps(LOG | {"id": "s2"}) + "\n")
    assert first is not None
    second = channel(file).read(first.bookmark)
    assert (ids(first), ids(second)) == (["s1"], ["s2"])


@pytest.mark.feature("SIG-06", "SIG-09")
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no json", "the line is not valid JSON"),
        ("[" * 1000, "the line is nested too deeply"),
        ('{"id": "\\ud800", "type": "log"}', "the line is JSON with half of a surrogate pair"),
        ("[1]", "the line is not a JSON object"),
        ('{"id": "s0"}', "type is None, expected a string"),
        (b"\xff\xfe\n", "the line is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_the_next_one_follows(file: Path, line: Any, problem: str):
    file.write_bytes(line if isinstance(line, bytes) else f"{line}\n".encode())
    write(file, LOG)
    found = channel(file).read(None)
    assert found is not None
    bad, good = found.signals
    assert (bad.problem or "").startswith(problem)
    assert (bad.data or "").strip() != ""
    assert (good.id, good.problem) == ("s1", None)


def test_an_unfinished_line_is_read_when_it_ends_or_grows_old(file: Path):
    text = json.dumps(LOG)
    file.write_text(text[:10], encoding="utf-8")
    written = 1_000_000.0
    os.utime(file, (written, written))
    assert channel(file, now=written + 1).read(None) is None
    (taken,) = file.parent.iterdir()
    old = channel(file, now=written + UNFINISHED_SECONDS).read(None)
    assert old is not None
    assert "not valid JSON" in str(old.signals[0].problem)
    with taken.open("a", encoding="utf-8") as stream:
        stream.write(text[10:])
    assert ids(channel(file, now=written + 1).read(None)) == ["s1"]


@pytest.mark.feature("SIG-10")
def test_every_database_of_a_connector_gets_every_signal_before_the_file_is_deleted(file: Path):
    write(file, LOG)
    one, other = (channel(file, name, "one", "other") for name in ("one", "other"))
    first = one.read(None)
    assert first is not None
    assert one.read(first.bookmark) is None
    second = other.read(None)
    assert second is not None
    assert ids(second) == ["s1"]
    assert other.read(second.bookmark) is None
    assert list(file.parent.iterdir()) == []


def test_empty_files_and_absent_folders_are_nothing_to_read(file: Path):
    assert channel(file.parent / "absent" / "signals.txt").read(None) is None
    file.touch()
    assert channel(file).read(None) is None
    assert file.exists()
    write(file, "", "  ")
    blank = channel(file).read(None)
    assert blank is not None
    assert blank.signals == []
    assert channel(file).read(blank.bookmark) is None
    assert list(file.parent.iterdir()) == []
