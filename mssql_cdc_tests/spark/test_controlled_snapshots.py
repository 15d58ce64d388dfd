"""Blocking and initial snapshots that signals pause, resume and stop (`capture/snapshot_controls.py`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import SignalRow, ask_for_snapshot, ask_to_control, note_signal
from mssql_cdc.capture.snapshot import chunk_groups, take
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import ConfigurationError, FencedError
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.plan.decisions import Snapshot, Wait
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc_tests.spark.model_lake import changes, current, same, settled, write_some

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ORDERS, PEOPLE = "shop.dbo.orders", "shop.dbo.people"


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)


def control(database: Database, what: str, *tables: str) -> None:
    ask_to_control(database, f"the {what}", f"{what}-snapshot", tables, channel="test")


def told(database: Database) -> list[tuple[str, str | None]]:
    """The notifications of snapshots: their types, with the tables that a stop or a pause names."""
    rows = sorted(small_table(database.layout, "notifications", database.storage).rows(), key=lambda one: one["_batch"])
    wanted = {"STARTED", "PAUSED", "RESUMED", "ABORTED", "COMPLETED"}
    found = [row for row in rows if row["type"] in wanted]
    return [(row["type"], dict(row["additional_data"]).get("data_collections")) for row in found]


def reads(database: Database, name: str) -> list[int | None]:
    return [key for op, key, _ in changes(database, name) if op == "r"]


def decided(database: Database) -> object:
    follower = Follower(database)
    follower.step()
    return follower.decision


def replayed(database: Database, name: str) -> dict[int, str | None]:
    """The rows that the change log adds up to, in the order of `_pos`."""
    uri = database.layout.root + f"/dbo/{name}/changes"
    sql = "SELECT op, coalesce(after.id, before.id) AS id, after.name AS name FROM t ORDER BY _pos"
    found: dict[int, str | None] = {}
    rows = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    for op, key, value in zip(*(rows[name].to_pylist() for name in ("op", "id", "name")), strict=True):
        found.pop(key, None)
        found |= {} if op == "d" else {key: value}
    return found


def test_a_paused_snapshot_keeps_its_chunks_while_other_tables_stream(database, source, after_groups):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    after_groups(2, lambda: control(database, "pause"))
    settled(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1]
    source.put("people", 9, "nine")
    source.put("orders", 9, "nine")
    source.capture()
    assert not isinstance(decided(database), Snapshot)
    settled(database, source)
    assert current(database, "people")[9] == "nine"
    assert ("c", 9, "nine") not in changes(database, "orders"), "its own table waits"
    assert ORDERS in load_offsets(database.layout, database.storage).begun_snapshots


def test_a_resumed_snapshot_goes_on_from_its_chunks(database, source, after_groups):
    write_some(source)
    settled(database, source)
    before = len(told(database))
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    after_groups(2, lambda: control(database, "pause"))
    settled(database, source)
    source.put("orders", 3, "three")
    source.put("orders", 1, None)
    settled(database, source)
    control(database, "resume")
    settled(database, source)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1, 2, 3], "no chunk is read twice"
    assert told(database)[before:] == [("STARTED", None), ("PAUSED", ORDERS), ("RESUMED", ORDERS), ("COMPLETED", None)]


def test_an_initial_snapshot_is_paused_and_goes_on(database, source, after_groups):
    write_some(source)
    after_groups(3, lambda: control(database, "pause"))
    settled(database, source)
    assert len(reads(database, "orders")) + len(reads(database, "people")) == 3
    control(database, "resume")
    settled(database, source)
    same(database, source)
    assert len(reads(database, "orders")) == len(reads(database, "people")) == 4


def test_a_stopped_snapshot_lets_its_table_stream_on_from_where_it_stood(database, source, after_groups):
    write_some(source)
    settled(database, source)
    held = load_offsets(database.layout, database.storage).entries[ORDERS].to
    before = len(told(database))
    ask_for_snapshot(database, "again", [ORDERS], channel="test")

    def meanwhile() -> None:
        source.put("orders", 0, "changed behind its chunk")
        source.put("orders", 1, None)
        source.put("orders", 3, None)
        source.put("orders", 5, "new")
        control(database, "stop", ORDERS)

    after_groups(2, meanwhile)
    follower = Follower(database)
    follower.step()
    assert load_offsets(database.layout, database.storage).entries[ORDERS].to == held
    settled(database, source)
    same(database, source)
    assert replayed(database, "orders") == source.tables["orders"].rows
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1], "what was read stays"
    noted = load_offsets(database.layout, database.storage).noted
    ended = [row.facts for row in noted if isinstance(row.facts, SnapshotEnded) and row.facts.stopped]
    assert [(one.table, one.sweep, one.stopped) for one in ended] == [(ORDERS, None, "the stop")]
    assert told(database)[before:] == [("STARTED", None), ("ABORTED", ORDERS)]
    assert not survey(database).facts.asked, "the signal has its answer"


def test_the_rows_of_a_stopped_snapshot_count_only_once_the_stream_has_passed_its_end(database, source, after_groups):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    source.put("orders", 0, "written, not captured")  # A chunk holds it before capture does.
    after_groups(1, lambda: control(database, "stop"))
    follower = Follower(database)
    follower.step()
    offsets = load_offsets(database.layout, database.storage)
    assert ORDERS in offsets.closed_tables
    follower.step()
    assert current(database, "orders")[0] != "written, not captured", "closed until capture has passed E"
    settled(database, source)
    same(database, source)


def test_a_stop_of_one_table_lets_the_others_be_read(database, source, after_groups):
    write_some(source)
    settled(database, source)
    before = len(told(database))
    ask_for_snapshot(database, "again", [ORDERS, PEOPLE], channel="test")
    after_groups(1, lambda: control(database, "stop", ORDERS))
    settled(database, source)
    same(database, source)
    assert reads(database, "people") == [0, 1, 2, 3] * 2
    assert told(database)[before:] == [("STARTED", None), ("ABORTED", ORDERS), ("COMPLETED", None)]


def test_a_snapshot_that_is_stopped_while_it_is_paused_is_given_up(database, source, after_groups):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    after_groups(2, lambda: control(database, "pause"))
    settled(database, source)
    source.put("orders", 0, None)
    control(database, "stop", ORDERS)
    settled(database, source)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1]


def test_a_request_that_is_stopped_or_paused_before_it_begins_reads_nothing(database, source):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "first", [ORDERS], channel="test")
    control(database, "stop", ORDERS)
    settled(database, source)
    assert not survey(database).facts.asked
    assert told(database)[-1] == ("ABORTED", ORDERS)
    ask_for_snapshot(database, "second", [ORDERS], channel="test")
    control(database, "pause")
    source.put("orders", 6, "six")
    settled(database, source)
    same(database, source)  # Its table streams on.
    assert reads(database, "orders") == [0, 1, 2, 3]
    control(database, "resume")
    settled(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1, 2, 3, 6]


def test_orders_from_before_a_snapshot_do_not_concern_it(database, source):
    write_some(source)
    settled(database, source)
    control(database, "pause")
    control(database, "stop")
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    settled(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3] * 2


def test_a_table_in_its_initial_snapshot_cannot_be_stopped(database, source, after_groups):
    write_some(source)
    lines: list[str] = []

    def stop() -> None:
        with pytest.raises(ConfigurationError, match=r"cannot be stopped: the initial snapshot is not finished"):
            control(database, "stop", ORDERS)
        note_signal(database, SignalRow("s", "stop-snapshot", None), "test", "requested", "")

    after_groups(1, stop)
    source.capture()
    catch_up([replace(database, log=lines.append)], timeout=120)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3]
    assert [line for line in lines if line.startswith(f"signal s does not stop {ORDERS}: the initial snapshot")]


@pytest.mark.parametrize(
    "where", ["before its rows of offsets", pytest.param("behind its fence", marks=pytest.mark.long)]
)
def test_a_run_killed_while_it_stops_a_table_leaves_the_stop_to_the_next(
    database, source, after_groups, monkeypatch, where
):
    write_some(source)
    settled(database, source)
    before = len(told(database))
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    after_groups(2, lambda: control(database, "stop", ORDERS))
    name = "append_offsets" if where.startswith("before") else "commit"

    def killed(*args: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"mssql_cdc.capture.snapshot.finish.{name}", killed)
        with pytest.raises(KeyboardInterrupt):
            settled(database, source)
    source.put("orders", 0, None)
    settled(database, source)
    same(database, source)
    assert replayed(database, "orders") == source.tables["orders"].rows
    assert told(database)[before:] == [("STARTED", None), ("ABORTED", ORDERS)], "nothing is told twice"


def test_a_run_killed_after_a_recorded_pause_leaves_the_snapshot_paused(database, source, after_groups):
    write_some(source)
    settled(database, source)
    before = len(told(database))
    ask_for_snapshot(database, "again", [ORDERS], channel="test")

    def killed() -> None:
        control(database, "pause")
        raise KeyboardInterrupt

    after_groups(2, killed)
    with pytest.raises(KeyboardInterrupt):
        settled(database, source)
    assert isinstance(decided(database), Wait)
    assert reads(database, "orders") == [0, 1, 2, 3, 0, 1]
    control(database, "resume")
    settled(database, source)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3] * 2
    assert told(database)[before:] == [("STARTED", None), ("COMPLETED", None)]


def test_a_late_run_of_a_stopped_snapshot_commits_nothing(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "again", [ORDERS], channel="test")
    seen = survey(database)
    (asked,), other = seen.facts.asked, database.apart()
    decision = Snapshot(asked.key, asked.tables, signal=asked.signal)

    def stopped_by_another() -> None:
        control(database, "stop", ORDERS)
        take_snapshot(other, decision)

    commit, calls = chunk_groups.commit, list[object]()

    def late(*args: object, **named: object) -> object:
        calls.append(args)
        if len(calls) == 2:
            stopped_by_another()
        return commit(*args, **named)  # pyright: ignore[reportArgumentType, reportCallIssue]

    monkeypatch.setattr(chunk_groups, "commit", late)
    with pytest.raises(FencedError):
        take.capture_snapshot(database, seen, decision).raise_failure()
    settled(database, source)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 0]
