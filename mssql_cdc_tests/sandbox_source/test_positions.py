"""The source's positions, and the number of rows to read (rules A7, A8, A9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from mssql_cdc.errors import SourceRestoredError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver import log_end, positions, volume
from mssql_cdc.source.sqlserver.catalog import captured_tables
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.sql import IS_VISIBLE, digits
from mssql_cdc.source.values import LogMark, Volume
from mssql_cdc_tests.sandbox_source.kit import Shop


def insert(shop: Shop, *keys: int) -> list[Lsn]:
    """Run one transaction per key and return the commit LSNs."""
    found = []
    for key in keys:
        shop.run(f"INSERT dbo.t VALUES ({key}, 0)")
        found.append(shop.scan())
    return found


@pytest.fixture
def counted(shop: Shop) -> Shop:
    shop.create("t", "id int NOT NULL PRIMARY KEY, n int")
    return shop


def test_captured_is_the_newest_transaction_and_the_log_end_is_beyond_it(counted: Shop) -> None:
    (at,) = insert(counted, 1)

    assert positions.captured(counted.control) == at
    assert positions.standing(counted.control).captured == at
    newest = positions.maximum(counted.control)
    assert newest is not None
    assert newest >= at
    assert log_end.log_end(counted.control) > at


def test_settled_is_followed_by_a_newer_row(counted: Shop) -> None:
    first, second = insert(counted, 1, 2)

    assert positions.standing(counted.control).settled == first
    assert second > first


def test_a_row_of_an_idle_log_is_not_captured_and_settled_only_with_a_newer_row(counted: Shop) -> None:
    (at,) = insert(counted, 1)
    counted.run("EXEC sandbox.advance_clock @seconds = 400", "EXEC sys.sp_cdc_scan")
    idle = positions.maximum(counted.control)
    assert idle is not None
    assert idle > at
    standing = positions.standing(counted.control)
    assert (standing.captured, standing.settled) == (at, at)
    (later,) = insert(counted, 2)
    standing = positions.standing(counted.control)
    assert (standing.captured, standing.settled) == (later, idle)


def test_the_start_of_an_instance_is_visible_before_any_transaction(shop: Shop) -> None:
    """Found by the storm: a range may end there, and nothing else shows that the reader sees it."""
    start = positions.captured(shop.control)
    assert start is not None
    for lsn, visible in ((start, 1), (start.increment(), 0)):
        assert shop.control.value(IS_VISIBLE, digits(lsn), digits(lsn), doing="testing") == visible


def test_a_mark_is_passed_once_a_later_scan_has_ended(counted: Shop) -> None:
    insert(counted, 1)
    known = log_end.mark(counted.control)

    assert not log_end.newest_passed(counted.control, [known], log_end.SeenLog())
    counted.scan()
    counted.scan()
    assert log_end.newest_passed(counted.control, [known], log_end.SeenLog())


def test_the_newest_mark_that_capture_has_passed_takes_as_many_statements_as_one(
    counted: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of 300 tables leaves as many marks, which each look at an idle database asks for."""
    first = [log_end.mark(counted.control)]
    insert(counted, 1)
    counted.scan()
    counted.scan()
    later = [log_end.mark(counted.control) for _ in range(5)]
    texts = asked(monkeypatch)
    costs = list[int]()
    for known in ([*first, later[0]], [*first, *later]):
        del texts[:]
        assert log_end.newest_passed(counted.control, known, log_end.SeenLog()) == first[0].lsn
        costs.append(len(texts))
    assert costs[0] == costs[1]
    assert log_end.newest_passed(counted.control, later, log_end.SeenLog()) is None
    assert log_end.newest_passed(counted.control, [], log_end.SeenLog()) is None


@pytest.fixture
def grouped(counted: Shop) -> Iterator[Shop]:
    """The primary of an availability group whose secondary is complete; one row is captured."""
    insert(counted, 1)
    counted.run("EXEC sandbox.replica_lag @seconds = 0")
    yield counted
    counted.run("EXEC sandbox.replica_drop")


def held_back(shop: Shop) -> LogMark:
    """Commit behind what the secondary has, and let capture find nothing, for a long time."""
    shop.run("EXEC sandbox.replica_disconnect", "INSERT dbo.t VALUES (2, 0)", "CREATE TABLE dbo.untracked (id int)")
    known = log_end.mark(shop.control)
    for _ in range(3):
        shop.run("CREATE TABLE dbo.other (id int)", "EXEC sandbox.advance_clock @seconds = 400", "EXEC sys.sp_cdc_scan")
        shop.run("DROP TABLE dbo.other")
    return known


@pytest.mark.feature("HA-01")
def test_empty_scans_of_a_group_prove_nothing_about_what_a_secondary_lacks(grouped: Shop) -> None:
    """A run was caught up without the committed row, and idle tables were taken past it."""
    seen = log_end.SeenLog()
    known = held_back(grouped)
    for _ in range(3):
        grouped.scan()
        assert log_end.newest_passed(grouped.control, [known], seen) is None
        standing = log_end.standing(grouped.control, seen)
        assert standing.settled == standing.captured
        assert standing.maximum is not None
        assert standing.captured is not None
        assert standing.captured < standing.maximum
    assert seen.held_back

    grouped.run("EXEC sandbox.replica_lag @seconds = 0")
    assert log_end.newest_passed(grouped.control, [known], seen) is None, "it is hardened, and not yet captured"
    (captured,) = insert(grouped, 3)
    assert captured > known.lsn
    assert log_end.newest_passed(grouped.control, [known], log_end.SeenLog()) == known.lsn


@pytest.mark.feature("HA-01")
def test_two_empty_scans_after_what_all_secondaries_have_hardened_are_proof(grouped: Shop) -> None:
    """A resting database of a group, whose secondaries are complete, does not wait for the next transaction."""
    grouped.run("CREATE TABLE dbo.untracked (id int)")
    seen, known = log_end.SeenLog(), log_end.mark(grouped.control)
    for _ in range(2):
        assert log_end.newest_passed(grouped.control, [known], seen) is None
        grouped.scan()
    assert log_end.newest_passed(grouped.control, [known], seen) == known.lsn
    assert log_end.newest_passed(grouped.control, [known], log_end.SeenLog()) is None, "nothing was seen before"


@pytest.mark.feature("HA-01")
def test_a_resting_database_of_a_group_settles_what_all_secondaries_have_hardened(grouped: Shop) -> None:
    """Idle tables stay ahead of cleanup there, too (A8)."""
    seen = log_end.SeenLog()
    before = positions.captured(grouped.control)
    for number in range(3):
        grouped.run("EXEC sandbox.advance_clock @seconds = 400", f"CREATE TABLE dbo.untracked{number} (id int)")
        grouped.scan()
    raw = positions.standing(grouped.control).settled
    assert raw is not None
    assert before is not None
    assert raw > before
    assert log_end.standing(grouped.control, seen).settled == before
    for _ in range(2):
        grouped.scan()
    assert log_end.standing(grouped.control, seen).settled == raw
    grouped.run("EXEC sandbox.replica_drop")
    assert log_end.standing(grouped.control, log_end.SeenLog()).settled == raw, "no group: any row is settled"


@pytest.mark.feature("HA-01")
def test_a_login_that_may_not_ask_the_secondaries_waits_for_the_next_transaction(grouped: Shop) -> None:
    """Azure SQL Database aside, that is a login that can read no end of the log either."""
    reader = grouped.seen_by("reader", "SELECT ON SCHEMA::cdc", "VIEW DATABASE STATE")
    known, seen = log_end.mark(grouped.control), log_end.SeenLog()
    with control(reader.connection, reader.catalog) as opened:
        for _ in range(3):
            grouped.scan()
            assert log_end.newest_passed(opened, [known], seen) is None
        insert(grouped, 2)
        assert log_end.newest_passed(opened, [known], seen) == known.lsn


def test_the_witness_is_found_again(counted: Shop) -> None:
    first, second = insert(counted, 1, 2)
    known = positions.witness(counted.control, second.decrement())

    assert known is not None
    assert known.start_lsn == first
    positions.require_witness(counted.control, known)


def test_a_witness_that_cleanup_removed_is_of_another_history_where_the_recovery_fork_is(counted: Shop) -> None:
    first, second = insert(counted, 1, 2)
    known = positions.witness(counted.control, first)
    counted.run(f"DELETE cdc.lsn_time_mapping WHERE start_lsn < 0x{second.raw.hex()}")

    assert known is not None
    assert known.fork is not None
    for fork in (known.fork, None):
        positions.require_witness(counted.control, replace(known, fork=fork))
    with pytest.raises(SourceRestoredError, match="recovery fork"):
        positions.require_witness(counted.control, replace(known, fork="another"))


def test_a_witness_that_is_still_there_is_the_same_in_another_recovery_fork(counted: Shop) -> None:
    """What another fork lost lies behind it."""
    (at,) = insert(counted, 1)
    known = positions.witness(counted.control, at)

    assert known is not None
    positions.require_witness(counted.control, replace(known, fork="another"))


def test_a_transaction_that_has_come_below_a_position_is_another_history(counted: Shop) -> None:
    first, second = insert(counted, 1, 2)
    known = positions.witness(counted.control, first)

    positions.require_complete(counted.control, second.decrement(), known)
    with pytest.raises(SourceRestoredError, match="before the transaction existed"):
        positions.require_complete(counted.control, second, known)
    with pytest.raises(SourceRestoredError, match="before the transaction existed"):
        positions.require_complete(counted.control, first, None)


def test_a_mark_of_another_recovery_fork_is_another_history(counted: Shop) -> None:
    known = log_end.mark(counted.control)

    assert known.fork is not None
    log_end.require_mark(counted.control, known)
    with pytest.raises(SourceRestoredError, match="recovery fork"):
        log_end.require_mark(counted.control, replace(known, fork="another"))


@pytest.mark.parametrize("change", [{"tran_id": "0000000000aa"}, {"tran_end_time": "1999-01-01 00:00:00.000"}])
def test_a_different_history_is_detected(counted: Shop, change: dict[str, str]) -> None:
    (at,) = insert(counted, 1)
    known = positions.witness(counted.control, at)
    assert known is not None

    with pytest.raises(SourceRestoredError, match="restored"):
        positions.require_witness(counted.control, replace(known, **change))


def test_a_witness_that_never_existed_is_reported_missing(counted: Shop) -> None:
    (at,) = insert(counted, 1)
    known = positions.witness(counted.control, at)
    assert known is not None

    with pytest.raises(SourceRestoredError, match="no longer exists"):
        positions.require_witness(counted.control, replace(known, start_lsn=at.increment()))


def test_a_witness_below_the_retained_history_proves_nothing(counted: Shop) -> None:
    (at,) = insert(counted, 1)
    known = positions.witness(counted.control, at)
    assert known is not None

    positions.require_witness(counted.control, replace(known, start_lsn=Lsn((1).to_bytes(10, "big"))))


def test_minimum_lsns_are_keyed_by_instance(counted: Shop) -> None:
    insert(counted, 1)

    assert positions.minima(counted.control)["dbo_t"] == counted.instance("t").start_lsn


def test_the_server_increments_lsns_like_the_connector(counted: Shop) -> None:
    (at,) = insert(counted, 1)

    found = counted.control.value(f"SELECT sys.fn_cdc_increment_lsn(0x{at.raw.hex()})", doing="incrementing an LSN")

    assert Lsn(found) == at.increment()


@pytest.mark.feature("STR-02")
def test_the_nth_transaction_bounds_a_range(counted: Shop) -> None:
    lsns = insert(counted, 1, 2, 3)
    start = lsns[0].decrement()

    assert positions.nth_transaction(counted.control, start, 2, lsns[-1]) == lsns[1]
    assert positions.nth_transaction(counted.control, start, 9, lsns[-1]) == lsns[-1]
    assert positions.nth_transaction(counted.control, lsns[-1], 1, lsns[-1]) is None


def test_the_newest_transaction_below_positions(counted: Shop) -> None:
    first, second = insert(counted, 1, 2)

    assert positions.newest_before(counted.control, [second, second.increment()]) == {
        second: first,
        second.increment(): second,
    }


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the statements that are asked for from now on."""
    found, really = list[str](), Control.rows
    monkeypatch.setattr(
        Control, "rows", lambda self, *args, **more: found.append(args[0]) or really(self, *args, **more)
    )
    return found


def test_rows_are_counted_by_table(counted: Shop) -> None:
    lsns = insert(counted, 1, 2)
    counted.run("UPDATE dbo.t SET n = 1")
    to = counted.scan()
    t, other = counted.instance("t"), counted.instance("first_table")
    wanted = LsnRange(lsns[0], to)

    assert volume.count_rows(counted.control, [(t, wanted), (other, wanted)]) == {"dbo_t": 5, "dbo_first_table": 0}


@pytest.mark.parametrize("by_function", [False, True], ids=["direct", "function"])
@pytest.mark.parametrize("tables", [3, 30])
def test_rows_of_any_number_of_tables_are_counted_by_one_statement(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tables: int, *, by_function: bool
) -> None:
    """Its text is the same whichever of them have changed."""
    names = [f"t{number}" for number in range(tables)]
    for name in names:
        shop.create(name, "id int NOT NULL PRIMARY KEY")
    at = [shop.scan()]
    for changed in (names[:2], names[1:]):
        shop.run(*(f"INSERT dbo.{name} VALUES ({len(at)})" for name in changed))
        at.append(shop.scan())
    captured = [table.newest for table in captured_tables(shop.control) if table.table_id.name in names]
    instances = [replace(one, change_table=None) if by_function else one for one in captured]
    texts = asked(monkeypatch)
    for changed, from_, to in ((names[:2], *at[:2]), (names[1:], *at[1:])):
        found = volume.count_rows(shop.control, [(one, LsnRange(from_, to)) for one in instances])
        assert found == {f"dbo_{name}": int(name in changed) for name in names}
    assert len(texts) == 2
    assert texts[0] == texts[1]


@pytest.mark.parametrize("by_function", [False, True], ids=["direct", "function"])
def test_rows_of_change_tables_are_counted_and_split_by_seeks(
    counted: Shop, monkeypatch: pytest.MonkeyPatch, *, by_function: bool
) -> None:
    """Review: of a wide table the server would have scanned the index for net changes, with all rows that are kept."""
    lsns = insert(counted, 1, 2, 3)
    instance = counted.instance("t")
    instance = replace(instance, change_table=None) if by_function else instance
    wanted, texts = LsnRange(lsns[0], lsns[-1]), asked(monkeypatch)
    assert volume.count_rows(counted.control, [(instance, wanted)]) == {"dbo_t": 2}
    assert len(volume.split(counted.control, instance, wanted, 2)) == 2
    assert [text.count("[cdc].[dbo_t_CT] WITH (FORCESEEK) ") for text in texts] == [0 if by_function else 1] * 2


def test_empty_ranges_are_asked_for_too_unless_a_function_would_refuse_them(
    counted: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tables stand apart, some are behind a step of a large backlog: the text is the same in direct mode only."""
    (at,) = insert(counted, 1)
    first, t = counted.instance("first_table"), counted.instance("t")
    parts = [(first, LsnRange(at, at)), (t, LsnRange(at.decrement(), at))]
    texts = asked(monkeypatch)
    for by_function, named in ((False, 2), (True, 1)):
        some = [(replace(one, change_table=None) if by_function else one, wanted) for one, wanted in parts]
        assert volume.count_rows(counted.control, some) == {"dbo_first_table": 0, "dbo_t": 1}
        assert texts.pop().count("COUNT_BIG") == named
    assert texts == []


@pytest.mark.parametrize("limit", [2, 99])
def test_a_range_that_a_function_refuses_counts_as_one_row_and_the_others_as_they_are(
    counted: Shop, limit: int
) -> None:
    """It begins below the instance's start, which cleanup may raise at any moment; its reader meets the refusal."""
    lsns = insert(counted, 1)
    counted.run("WAITFOR DELAY '00:00:00.020'")  # Cleanup compares times.
    lsns += insert(counted, 2, 3)
    counted.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_first_table', 0x{lsns[2].raw.hex()}, 100")
    instances = [replace(counted.instance(name), change_table=None) for name in ("first_table", "t")]
    parts = [(one, LsnRange(lsns[0], lsns[-1])) for one in instances]
    found = volume.measure(counted.control, parts, limit, lsns[-1])

    assert found == Volume(lsns[1] if limit == 2 else None, {"dbo_first_table": 1, "dbo_t": 1 if limit == 2 else 2})


def test_a_table_that_is_gone_meanwhile_counts_as_one_row_and_the_others_as_they_are(counted: Shop) -> None:
    lsns = insert(counted, 1, 2)
    gone, t = counted.instance("first_table"), counted.instance("t")
    counted.run("EXEC sys.sp_cdc_disable_table N'dbo', N'first_table', N'all'")
    for from_, rows in ((lsns[0], 1), (lsns[1], 0)):
        wanted = LsnRange(from_, lsns[1])
        assert volume.count_rows(counted.control, [(gone, wanted), (t, wanted)]) == {
            "dbo_first_table": rows,
            "dbo_t": rows,
        }


@pytest.mark.parametrize(("limit", "expected"), [(1, 0), (2, 1), (3, 2), (0, 0), (99, None)])
def test_a_row_limit_ends_at_a_commit(counted: Shop, limit: int, expected: int | None) -> None:
    lsns = insert(counted, 1, 2, 3, 4)
    wanted = LsnRange(lsns[0].decrement(), lsns[-1])
    found = volume.measure(counted.control, [(counted.instance("t"), wanted)], limit, lsns[-1])

    assert found.bound == (None if expected is None else lsns[expected])
    assert found.rows == {"dbo_t": 4 if expected is None else expected + 1}


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 7, 12, 13, 99])
@pytest.mark.parametrize("first", [1, 2, 3, 100])
def test_a_row_limit_is_found_by_steps_of_any_size(
    counted: Shop, monkeypatch: pytest.MonkeyPatch, first: int, limit: int
) -> None:
    monkeypatch.setattr(volume, "FIRST_COMMITS", first)
    lsns = []
    for number, rows in enumerate((1, 5, 1, 1, 4, 1)):
        values = ", ".join(f"({100 * number + row}, 0)" for row in range(rows))
        counted.run(f"INSERT dbo.t VALUES {values}", f"INSERT dbo.first_table VALUES ({number})")
        lsns.append(counted.scan())
    parts = [
        (counted.instance("t"), LsnRange(lsns[0].decrement().decrement(), lsns[-1])),
        (counted.instance("first_table"), LsnRange(lsns[0].decrement(), lsns[-1])),
    ]
    found = volume.measure(counted.control, parts, limit, lsns[-1])
    end = found.bound or lsns[-1]
    cut = [(instance, LsnRange(wanted.from_, end)) for instance, wanted in parts]

    assert found.rows == volume.count_rows(counted.control, cut)
    assert (found.bound is None) is (limit >= 19)
    if found.bound is not None:
        following = [(instance, LsnRange(wanted.from_, found.bound.increment())) for instance, wanted in parts]
        assert sum(found.rows.values()) <= max(limit, 1)
        assert sum(volume.count_rows(counted.control, following).values()) >= sum(found.rows.values())


@pytest.mark.parametrize(
    ("limit", "steps"),
    [(99, [1, 2, 4, 3]), (6, [1, 2, 4, 2, 1])],
    ids=["all within the limit", "the third beyond it"],
)
def test_only_the_step_that_goes_beyond_the_limit_is_counted_again(
    counted: Shop, monkeypatch: pytest.MonkeyPatch, limit: int, steps: list[int]
) -> None:
    """Ten commits of one row each: the step that goes beyond the limit is counted once more, in halves."""
    monkeypatch.setattr(volume, "FIRST_COMMITS", 1)
    lsns = insert(counted, *range(1, 11))
    wanted = LsnRange(lsns[0].decrement(), lsns[-1])
    totals, really = list[int](), volume.count_rows

    def noted(*given: Any) -> dict[str, int]:
        found = really(*given)
        totals.append(sum(found.values()))
        return found

    monkeypatch.setattr(volume, "count_rows", noted)
    found = volume.measure(counted.control, [(counted.instance("t"), wanted)], limit, lsns[-1])
    assert found.rows == {"dbo_t": min(limit, 10)}
    assert totals == steps


def test_retention_is_that_of_the_cleanup_job_and_unknown_without_one(shop: Shop) -> None:
    assert positions.retention(shop.control) == timedelta(days=3)
    shop.run("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 90")
    assert positions.retention(shop.control) == timedelta(minutes=90)
    shop.run("EXEC sys.sp_cdc_drop_job @job_type = N'cleanup'")
    assert positions.retention(shop.control) is None


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_newest_transaction_before_an_instant_is_found_by_its_commit_time(counted: Shop, zone: str | None) -> None:
    (first,) = insert(counted, 1)
    counted.run("WAITFOR DELAY '00:00:00.050'")
    between = positions.server_time(counted.control)
    counted.run("WAITFOR DELAY '00:00:00.050'")
    (second,) = insert(counted, 2)
    offset = counted.control.value("SELECT DATEPART(tzoffset, SYSDATETIMEOFFSET())", doing="reading the offset")
    if zone == "UTC" and offset:
        pytest.skip("the server's clock is not UTC")
    found = positions.captured_before(counted.control, between.astimezone(timezone(timedelta(hours=5))), zone)
    assert found == first
    assert positions.captured_before(counted.control, between + timedelta(days=1), zone) == second
    assert positions.captured_before(counted.control, datetime(2020, 1, 1, tzinfo=UTC), zone) is None
