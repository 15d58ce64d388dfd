"""The change log of a table without changes costs a step nothing, and what is wrong with it is noticed all the same."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

import mssql_cdc.lake.log as log
from mssql_cdc.capture.database import Database
from mssql_cdc.errors import FencedError
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.plan.decisions import Lost, Range, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import LOOK_AGAIN, Follower
from mssql_cdc_tests.spark.model_lake import changes, model_database
from mssql_cdc_tests.spark.model_source import ModelSource

FIRST, QUIET = "t0", "t1"


@dataclass
class Shop:
    """A source of some tables that stream, and the connector that follows it."""

    source: ModelSource
    database: Database
    follower: Follower

    @classmethod
    def with_tables(cls, count: int, folder: Path) -> Shop:
        """Every table has one row in its change log."""
        source = ModelSource(*(f"t{number}" for number in range(count)))
        database = model_database(source, None, folder, snapshot_mode="no_data")  # type: ignore[arg-type]
        shop = cls(source, database, Follower(database, merge=False))
        shop.rest()
        for name in source.tables:
            source.put(name, 1, "one")
        shop.rest()
        return shop

    def rest(self) -> None:
        """Read everything."""
        self.source.capture()
        for _ in range(20):
            if isinstance(self.follower.step().decision, Wait):
                return
        raise AssertionError("the follower does not come to rest")

    def change(self, *names: str) -> Done:
        """A step that finds changes of these tables."""
        for name in names:
            self.source.put(name, 2, f"two at {self.source.number}")
        self.source.capture()
        return self.follower.step()

    def uri(self, name: str) -> str:
        """The change log of a table."""
        return f"{self.database.layout.root}/dbo/{name}/changes"

    def entry(self, name: str) -> Entry:
        """What `_offsets` says of a table now."""
        return load_offsets(self.database.layout).entries[f"shop.dbo.{name}"]

    def a_minute_later(self) -> None:
        """The last look at all tables was a minute ago."""
        assert self.follower._checked is not None
        self.follower._checked -= LOOK_AGAIN


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.with_tables(3, tmp_path)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count what is asked of the logs of Delta tables, the small tables' too."""
    found: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            found[name] += 1
            return function(*arguments, **more)

        return call

    with (
        patch.object(Folder, "stamp", counting("heads", Folder.stamp)),
        patch.object(log, "find_table", counting("opened", log.find_table)),
    ):
        yield found


def test_a_step_asks_as_much_of_the_logs_of_30_tables_as_of_3(tmp_path: Path):
    """An auditor: every step asked the object store twice about each captured table."""
    asked: list[Counter[str]] = []
    for number in (3, 30):
        shop = Shop.with_tables(number, tmp_path / str(number))
        shop.change(FIRST)
        with counted() as found:
            done = shop.change(FIRST)
        assert done.range is not None
        assert done.range.rows == 1
        asked.append(found)
    assert asked[0] == asked[1]


def test_a_quiet_table_advances_and_its_log_is_known_from_its_last_commit_on(shop: Shop):
    before = shop.entry(QUIET)
    shop.change(FIRST)
    after = shop.entry(QUIET)
    assert (before.to or "") < (after.to or "")
    wanted = (before.delta_table_id, before.delta_version, before.batch, 0)
    assert (after.delta_table_id, after.delta_version, after.batch, after.rows) == wanted


def restored(shop: Shop) -> None:
    DeltaTable(shop.uri(QUIET)).restore(0)


def replaced(shop: Shop) -> None:
    shutil.rmtree(shop.uri(QUIET))
    shutil.copytree(shop.uri("t2"), shop.uri(QUIET))


def cut_short(shop: Shop) -> None:
    version = shop.entry(QUIET).delta_version
    Path(shop.uri(QUIET), "_delta_log", f"{version:020}.json").unlink()


def removed(shop: Shop) -> None:
    shutil.rmtree(shop.uri(QUIET))


TAMPERINGS = [restored, cut_short, removed]


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_a_log_that_another_program_changed_is_noticed_before_rows_are_appended(
    shop: Shop, tamper: Callable[[Shop], None]
):
    shop.change(FIRST)
    tamper(shop)
    done = shop.change(FIRST, QUIET)
    assert isinstance(done.decision, Lost)
    assert [table.name for table in done.decision.tables] == [QUIET]


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_a_quiet_log_that_another_program_changed_is_noticed_within_a_minute(
    shop: Shop, tamper: Callable[[Shop], None]
):
    shop.change(FIRST)
    tamper(shop)
    assert isinstance(shop.change(FIRST).decision, Range)
    shop.a_minute_later()
    assert isinstance(shop.change(FIRST).decision, Lost)


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_a_quiet_log_that_another_program_changed_is_noticed_once_nothing_is_left_to_read(
    shop: Shop, tamper: Callable[[Shop], None]
):
    shop.change(FIRST)
    tamper(shop)
    assert isinstance(shop.follower.step().decision, Lost)


def test_a_log_put_in_the_place_of_a_quiet_one_is_said_before_rows_are_appended(shop: Shop):
    shop.change(FIRST)
    replaced(shop)
    before = len(changes(shop.database, QUIET))
    shop.change(FIRST, QUIET)
    assert len(changes(shop.database, QUIET)) == before
    assert QUIET in {absent.table.name for absent in shop.follower.seen.facts.absent}  # type: ignore[union-attr]


def test_a_table_that_another_run_has_moved_on_is_planned_from_where_that_run_ended(shop: Shop):
    """Its commit is the position of record, though the run died before its row of `_offsets` (A1, A3)."""
    shop.change(FIRST)
    shop.source.put(QUIET, 2, "two")
    shop.source.capture()
    rival = Follower(shop.database.apart().named("rival"), merge=False)
    with patch("mssql_cdc.capture.range.append_offsets", side_effect=FencedError("killed")), pytest.raises(FencedError):
        rival.step()
    done = shop.change(FIRST, QUIET)
    assert done.range is not None
    assert not done.range.failed
    found = [change for change in changes(shop.database, QUIET) if change[0] != "r"]
    assert len(found) == len({*found}) == 3


def test_nothing_is_appended_to_a_log_that_no_step_has_looked_at(shop: Shop):
    shop.change(FIRST)
    with patch("mssql_cdc.capture.survey._with_changed", side_effect=lambda *given: given[1]):
        done = shop.change(FIRST, QUIET)
    assert {table.name for table in done.failed} == {FIRST, QUIET}
    assert all(isinstance(error, FencedError) for error in done.failed.values())
    assert shop.change(FIRST).range is not None
    assert len(changes(shop.database, QUIET)) == 2


def test_a_later_look_at_all_tables_is_spared_again(shop: Shop):
    shop.a_minute_later()
    shop.change(FIRST)
    seen = shop.follower.seen
    assert seen is not None
    assert seen.is_whole
    shop.change(FIRST)
    assert shop.follower.seen is not None
    assert not shop.follower.seen.is_whole


def test_a_clock_that_was_set_back_delays_no_look_at_all_tables(shop: Shop):
    shop.change(FIRST)
    assert shop.follower._checked is not None
    shop.follower._checked += timedelta(hours=1)
    shop.change(FIRST)
    assert shop.follower.seen is not None
    assert shop.follower.seen.is_whole
