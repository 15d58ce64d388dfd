"""Merges that only Spark can do, and sweeps, run beside the ranges: these go on, and the results come later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.errors import SourceUnavailableError, TaskError
from mssql_cdc.follow import sweeps
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake import current as lake_current
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.steps import Swept
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import changes, current, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Gate:
    """Holds the real function, or its result, until a test opens it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, result: bool = False) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()
        self.calls = 0
        self.error: Exception | None = None
        real = getattr(module, name)

        def held(*arguments: Any, **more: Any) -> Any:
            self.calls += 1
            found = real(*arguments, **more) if result else None
            self.begun.set()
            assert self.opened.wait(120)
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            return found if result else real(*arguments, **more)

        monkeypatch.setattr(module, name, held)


@pytest.fixture
def gate(database, source, spark, monkeypatch) -> Iterator[Gate]:
    """Two tables in the lake, of which `orders` has a change data feed, so that only Spark may write to it."""
    write_some(source)
    settled(database, source)
    uri = database.layout.root + "/dbo/orders/current"
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    made = Gate(monkeypatch, lake_current, "merge")
    yield made
    made.opened.set()


def steps(follower: Follower, number: int) -> list[Done]:
    found = [follower.attempt() for _ in range(number)]
    return [done for done in found if done is not None]


def until_merged(follower: Follower, name: str) -> Done:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for done in steps(follower, 1):
            if name in {table.name for table in [*done.merged.tables, *done.merged.errors]}:
                return done
        time.sleep(0.1)
    raise AssertionError(f"{name} was not merged")


def test_ranges_and_other_tables_go_on_while_spark_merges_one(database, source, gate):
    follower = Follower(database, slow=SlowWork())
    for _ in range(3):
        write_some(source)
        source.capture()
        steps(follower, 2)
    assert gate.begun.is_set()
    assert not gate.opened.is_set()
    assert len(changes(database, "orders")) == len(changes(database, "people"))
    assert current(database, "people") == source.tables["people"].rows
    assert current(database, "orders") != source.tables["orders"].rows
    assert gate.calls == 1, "the table was merged twice at a time"
    gate.opened.set()
    until_merged(follower, "orders")
    while current(database, "orders") != source.tables["orders"].rows:
        until_merged(follower, "orders")
    follower.close()
    same(database, source)


@pytest.fixture
def altering(database, source, spark, monkeypatch) -> Iterator[Gate]:
    """Two tables in the lake, of which `orders` has got a further column that only Spark may add."""
    write_some(source)
    settled(database, source)
    uri = database.layout.root + "/dbo/orders/current"
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    source.switch("orders")
    made = Gate(monkeypatch, lake_current, "change_structure")
    yield made
    made.opened.set()


def test_ranges_and_other_tables_go_on_while_the_structure_of_one_changes(database, source, altering):
    follower = Follower(database, slow=SlowWork())
    for number in range(3):
        write_some(source)
        source.put("orders", 1, f"priced {number}", price=number)
        source.capture()
        steps(follower, 2)
    assert altering.begun.wait(60)
    assert not altering.opened.is_set()
    assert len(changes(database, "orders")) > len(changes(database, "people"))
    assert current(database, "people") == source.tables["people"].rows
    assert current(database, "orders") != source.tables["orders"].rows
    assert altering.calls == 1, "the structure was changed twice at a time"
    altering.opened.set()
    assert not until_merged(follower, "orders").merged.errors
    while current(database, "orders") != source.tables["orders"].rows:
        until_merged(follower, "orders")
    follower.close()
    same(database, source)
    assert altering.calls == 1


def test_a_change_of_the_structure_that_fails_is_its_tables_trouble_and_is_tried_again(database, source, altering):
    follower = Follower(database, slow=SlowWork())
    altering.error = SourceUnavailableError("the store does not answer")
    altering.opened.set()
    source.put("orders", 1, "priced", price=7)
    source.put("people", 7, "Ann")
    source.capture()
    (error,) = until_merged(follower, "orders").merged.errors.values()
    assert "does not answer" in str(error)
    assert current(database, "people") == source.tables["people"].rows
    assert not until_merged(follower, "orders").merged.errors
    follower.close()
    same(database, source)


def test_a_merge_that_fails_is_reported_and_tried_again(database, source, gate):
    follower = Follower(database, slow=SlowWork())
    gate.error = SourceUnavailableError("the store does not answer")
    gate.opened.set()
    write_some(source)
    source.capture()
    (error,) = until_merged(follower, "orders").merged.errors.values()
    assert "does not answer" in str(error)
    assert not until_merged(follower, "orders").merged.errors
    follower.close()
    same(database, source)


@pytest.mark.parametrize("slow", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_row_that_a_constraint_rejects_is_its_tables_trouble_and_the_others_go_on(database, source, spark, slow):
    write_some(source)
    settled(database, source)
    uri = database.layout.root + "/dbo/orders/current"
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD CONSTRAINT short CHECK (length(name) < 40)")
    follower = Follower(database, slow=SlowWork() if slow else None)
    source.put("orders", 7, "x" * 50)
    source.put("people", 7, "Ann")
    source.capture()
    (error,) = until_merged(follower, "orders").merged.errors.values()
    assert isinstance(error, TaskError)
    assert "constraint" in str(error).lower()
    assert "xxx" not in str(error), "a row's value"
    assert current(database, "people") == source.tables["people"].rows
    spark.sql(f"ALTER TABLE delta.`{uri}` DROP CONSTRAINT short")
    assert not until_merged(follower, "orders").merged.errors
    follower.close()
    same(database, source)


def test_an_unexpected_error_in_the_background_is_its_tables_trouble(database, source, gate):
    follower = Follower(database, slow=SlowWork())
    gate.error = RuntimeError("a bug")
    gate.opened.set()
    write_some(source)
    source.capture()
    (error,) = until_merged(follower, "orders").merged.errors.values()
    assert isinstance(error, TaskError)
    assert not until_merged(follower, "orders").merged.errors
    follower.close()
    same(database, source)


def test_the_end_of_a_run_does_not_wait_for_a_merge(database, source, gate, spark):
    follower = Follower(database, slow=SlowWork())
    write_some(source)
    source.capture()
    steps(follower, 1)
    assert gate.begun.wait(60)
    ended = threading.Thread(target=follower.close, kwargs={"patience": 0})
    ended.start()
    gate.opened.set()
    ended.join(120)
    assert not ended.is_alive()
    settled(database, source)
    same(database, source)


@pytest.fixture
def stale(database, source) -> None:
    """Both tables have a row that only a sweep can delete: its deletion was never captured."""
    write_some(source)
    settled(database, source)
    for name in ("orders", "people"):
        del source.tables[name].rows[1]
        ask_for_snapshot(database, name, [f"dbo.{name}"], channel="test")


def swept(database) -> set[str]:
    """The tables whose sweep is noted in `_offsets`."""
    facts = [row.facts for row in load_offsets(database.layout).noted]
    return {one.table for one in facts if isinstance(one, Swept)}


def until(follower: Follower, source: ModelSource, condition: Callable[[], object]) -> list[Done]:
    """Take steps until the condition holds, and return what they did."""
    end, done = time.monotonic() + 120, list[Done]()
    while not condition():
        assert time.monotonic() < end
        source.capture()
        done += steps(follower, 1)
        time.sleep(0.05)
    return done


@pytest.fixture
def finding(monkeypatch) -> Iterator[Gate]:
    made = Gate(monkeypatch, sweeps, "stale_files", result=True)
    yield made
    made.opened.set()


@pytest.mark.usefixtures("stale")
def test_ranges_go_on_while_a_sweep_looks_for_its_rows(database, source, finding):
    follower = Follower(database, slow=SlowWork())
    until(follower, source, finding.begun.is_set)
    for number in range(3):
        source.put("people", 0, f"later {number}")
        source.put("orders", 1, f"made anew {number}")
        done = until(follower, source, lambda n=number: current(database, "orders").get(1) == f"made anew {n}")
        assert not any(one.failed for one in done)
    assert not swept(database)
    finding.opened.set()
    done = until(follower, source, lambda: len(swept(database)) == 2)
    assert not any(one.failed or one.merged.errors for one in done), "a sweep let a range fail"
    follower.close()
    settled(database, source)
    same(database, source)
    for name in ("orders", "people"):
        assert len([op for op, _, _ in changes(database, name) if op == "d"]) == 1


@pytest.mark.usefixtures("stale")
def test_a_quiet_source_does_not_hold_a_sweep_back(database, source, finding):
    finding.opened.set()
    follower = Follower(database, slow=SlowWork())
    until(follower, source, lambda: len(swept(database)) == 2)
    follower.close()
    same(database, source)


@pytest.mark.long
@pytest.mark.usefixtures("stale")
def test_a_sweep_that_fails_is_its_tables_trouble_and_is_tried_again(database, source, finding, monkeypatch):
    finding.error = SourceUnavailableError("the store does not answer")
    finding.opened.set()
    follower = Follower(database, slow=SlowWork())
    done = until(follower, source, lambda: len(swept(database)) == 1)
    (failed,) = {table for one in done for table in one.merged.errors}
    assert swept(database).isdisjoint({failed.text})
    assert steps(follower, 2), "it is not repeated at every step"
    assert finding.calls == 2
    monkeypatch.setattr(SlowWork, "rests", lambda *_: False)
    until(follower, source, lambda: len(swept(database)) == 2)
    follower.close()
    same(database, source)


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize(
    "step",
    [
        pytest.param("stale_files", marks=pytest.mark.long),
        "commit",
        pytest.param("merge_table", marks=pytest.mark.long),
        "append_offsets",
    ],
)
def test_a_run_that_ends_within_a_sweep_is_continued_by_the_next(database, source, monkeypatch, step):
    class KilledError(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise KilledError

    follower = Follower(database, slow=SlowWork())
    with monkeypatch.context() as during:
        during.setattr(sweeps, step, killed)
        with pytest.raises(KilledError):
            until(follower, source, lambda: len(swept(database)) == 2)
    with suppress(KilledError):  # The sweep of the other table may have been killed in the same moment.
        follower.close(patience=0)
    follower.close(patience=0)
    follower = Follower(database.apart(), slow=SlowWork())
    until(follower, source, lambda: len(swept(database)) == 2)
    follower.close()
    same(database, source)
    for name in ("orders", "people"):
        assert len([op for op, _, _ in changes(database, name) if op == "d"]) == 1, "deleted twice"


@pytest.mark.usefixtures("stale")
def test_the_end_of_a_run_does_not_wait_for_a_sweep(database, source, finding):
    follower = Follower(database, slow=SlowWork())
    until(follower, source, finding.begun.is_set)
    ended = threading.Thread(target=follower.close, kwargs={"patience": 0})
    ended.start()
    finding.opened.set()
    ended.join(120)
    assert not ended.is_alive()
    settled(database, source)
    same(database, source)
