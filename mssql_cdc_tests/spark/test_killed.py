"""Processes that die between any two steps: the next run completes the work, reading and writing nothing twice."""

from __future__ import annotations

import itertools

import pytest

from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Killed(BaseException):
    """Simulates the death of the process."""


def kill_at(monkeypatch, target: str, call: int, *, after: bool = False) -> None:
    """End the process at the n-th call of the function, before or after its work."""
    module, _, name = target.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    numbers = itertools.count(1)

    def dying(*arguments, **more):
        fatal = next(numbers) == call  # Calls may run concurrently.
        if fatal and not after:
            raise Killed
        result = real(*arguments, **more)
        if fatal:
            raise Killed
        return result

    monkeypatch.setattr(target, dying)


@pytest.mark.feature("STR-04")
@pytest.mark.parametrize(
    ("target", "call", "after"),
    [
        ("mssql_cdc.capture.range.commit", 1, True),  # between two tables
        ("mssql_cdc.capture.range.append_offsets", 1, False),  # before the offsets row
        ("mssql_cdc.lake.current.commit", 1, False),  # between the change logs and the current tables
        ("mssql_cdc.lake.current.commit", 1, True),  # between the current tables of two tables
    ],
)
def test_range_killed_anywhere_is_completed_by_a_larger_one(database, source, monkeypatch, target, call, after):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    with monkeypatch.context() as patch:
        kill_at(patch, target, call, after=after)
        with pytest.raises(Killed):
            catch_up([database], timeout=60)
    write_some(source)
    source.put("orders", 1, None)
    settled(database, source)
    same(database, source)
    for name in source.tables:
        events = [change.op for at, table, change in source.log if table == name and at > 20]
        assert [op for op, _, _ in changes(database, name) if op != "r"] == events


@pytest.mark.feature("SNP-35")
@pytest.mark.parametrize(
    ("call", "after"),
    [
        (1, False),
        pytest.param(1, True, marks=pytest.mark.long),
        (2, True),
        pytest.param(3, True, marks=pytest.mark.long),
    ],
)
def test_snapshot_killed_in_the_middle_resumes_from_its_commits(database, source, monkeypatch, call, after):
    write_some(source)
    source.capture()
    monkeypatch.setattr("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2)
    monkeypatch.setattr("mssql_cdc.capture.snapshot.take.GROUP_CHUNKS", 1)
    with monkeypatch.context() as patch:
        kill_at(patch, "mssql_cdc.capture.snapshot.chunk_groups.commit", call, after=after)
        with pytest.raises(Killed):
            catch_up([database], timeout=60)
    write_some(source)
    source.put("orders", 0, None)
    settled(database, source)
    same(database, source)
    reads = [key for op, key, _ in changes(database, "people") if op == "r" and key is not None]
    assert sorted(reads) == sorted(set(reads)), "a committed chunk was read again"
