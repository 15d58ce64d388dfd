"""A running Debezium connector moves over, and back, at any moment: no change is missing, and none comes twice.

Two moves, `make kills` for ten; a seed says how the other connector ends, and what happens meanwhile.
"""

from __future__ import annotations

import io
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records import open_output
from mssql_cdc.records.envelope import SourceInfo
from mssql_cdc.records.offset_files import read_offsets
from mssql_cdc.records.outputs import OutputBatch, Progress
from mssql_cdc.records.record_batch import RECORDS
from mssql_cdc.records.source_offsets import offsets_text
from mssql_cdc.records.state import StreamState
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.conformance.debezium import DebeziumEngine, DebeziumMachine, OracleUnavailableError, Record
from mssql_cdc_tests.end_to_end.followed import followed, keys_of
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import TABLES, Change, Churn, change_of, create, every_change

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MOVES = int(os.environ.get("MSSQL_CDC_MOVES", "2"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebeziumMachine]:
    """A JVM for the real Debezium."""
    try:
        with DebeziumMachine(tmp_path_factory.mktemp("machine")) as found:
            yield found
    except OracleUnavailableError as missing:
        pytest.skip(str(missing))


@dataclass(frozen=True)
class Move:
    """How a connector moves.

    Attributes:
        seed: Draws the load, and the moment.
        aborts: The other connector is aborted, with offsets of its last records that it has not stored.
        transactions: Both have transaction metadata.
        added: When a column and a capture instance with it are added: before the other connector ends, or behind.
        topic: Its schema history comes from a topic, not from a file.
    """

    seed: int

    @property
    def aborts(self) -> bool:
        return self.seed % 2 == 0

    @property
    def transactions(self) -> bool:
        return self.seed % 4 in {1, 2}

    @property
    def added(self) -> str | None:
        return {0: None, 1: "before", 2: "behind"}[self.seed % 3]

    @property
    def topic(self) -> bool:
        return self.seed % 2 == 1


@pytest.mark.feature("STR-04", "STR-22")
@pytest.mark.parametrize(
    "move",
    [
        pytest.param(Move(seed), id=f"seed {seed}", marks=[pytest.mark.long] * (seed > 1))
        for seed in range(1, MOVES + 1)
    ],
)
def test_a_connector_moves_over_under_load_and_back(
    place: Place, machine: DebeziumMachine, move: Move, capsys: pytest.CaptureFixture[str]
):
    metadata = {"provide.transaction.metadata": str(move.transactions).lower()}
    place.configure(**metadata, incremental_snapshot_added_columns="false")
    create(place)
    chance = random.Random(move.seed)
    churn = Churn(place, random.Random(move.seed), ids=40)
    properties = _properties(place) | metadata
    with ExitStack() as stack:
        flushes = {"offset.flush.interval.ms": "700"} if move.aborts else {}
        taken = _snapshots(machine)
        with DebeziumEngine(machine, properties | flushes, place.folder / "engine") as engine:
            engine.wait_until(lambda _: _snapshots(machine) == taken + 1)
            churn.fill()
            stack.enter_context(churn.running())
            engine.wait_until(lambda records: "d" in {change[1] for change in _changes(records)})
            if move.added == "before":
                _add_column(place)
            time.sleep(chance.uniform(0, 1.5))
            aborted = _left_behind(place, chance) if move.aborts else None
        offsets, history = aborted or (place.folder / "engine" / "offsets.dat", place.folder / "engine" / "history.dat")
        if move.added == "behind":
            _add_column(place)
        if move.topic:
            history = _as_topic(history)
        assert place.command("take-over", "--offsets", str(offsets), "--schema-history", str(history)) == 0
        assert move.added or "schema history" not in capsys.readouterr().err
        assert place.catch_up() == 0
    kept = _kept(engine.records, offsets, place)
    assert len(kept) < len(engine.records) or not move.aborts, "records whose offsets were not stored"
    theirs = _changes(kept)
    assert place.catch_up() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output), "--offsets", str(offsets)) == 0
    ours = [json.loads(line) for line in output.read_text().splitlines()]
    wanted = every_change(place)
    assert theirs + _changes_of_ours(ours) == wanted, f"seed {move.seed}"
    assert {change[1] for change in _changes_of_ours(ours)} == {"c", "u", "d"}
    values = [one.value for one in kept] + [one["value"] for one in ours]
    told = ["more" in json.dumps(value) for value in values if "tableChanges" in (value or {})]
    assert told == [False] * len(TABLES) + [True] * (move.added is not None), "each structure once"
    if move.transactions:
        assert _wrong_boundaries(values) == []

    with churn.running():
        time.sleep(0.5)
    place.settle()
    assert place.catch_up() == 0
    half = json.dumps({"offsets": [{"partition": ours[-1]["sourcePartition"], "offset": ours[-1]["sourceOffset"]}]})
    assert _printed_offsets(place, output) == json.loads(half)
    _store(machine, place, json.loads(half))
    (place.folder / "engine" / "history.dat").write_text(
        _printed(place, "schema-history", "--warehouse", str(place.warehouse))
    )
    with DebeziumEngine(machine, properties, place.folder / "engine") as again:
        wanted = every_change(place)
        count = len(wanted) - len(theirs) - len(_changes_of_ours(ours))
        again.wait_until(lambda records: len(_changes(records)) >= count)
    assert theirs + _changes_of_ours(ours) + _changes(again.records) == wanted, f"seed {move.seed}"


def _snapshots(machine: DebeziumMachine) -> int:
    """How many snapshots Debezium has ended; the records of the structures come before it reads any row."""
    return machine.log.read_text(encoding="utf-8").count("Snapshot - Final stage")


def _add_column(place: Place) -> None:
    """Add a column to a table under load, with a capture instance that has it."""
    place.sql("ALTER TABLE dbo.b ADD more nvarchar(20) NULL")
    place.enable("b", instance="dbo_b_2")


def _left_behind(place: Place, chance: random.Random) -> tuple[Path, Path]:
    """What an engine leaves that is aborted now: its files as they are, whatever it has delivered meanwhile."""
    while True:
        for name in ("offsets.dat", "history.dat"):
            (place.folder / f"aborted-{name}").write_bytes((place.folder / "engine" / name).read_bytes())
        offsets, history = (place.folder / f"aborted-{name}" for name in ("offsets.dat", "history.dat"))
        try:
            found = read_offsets(offsets, load_connector(place.config)).get(place.database)
        except ConfigurationError:
            found = None  # It was just being written.
        if found is not None and found.change_lsn is not None and found.snapshot is None:
            time.sleep(chance.uniform(0.2, 0.5))  # Records follow whose offsets are not in these files.
            return offsets, history


def _as_topic(history: Path) -> Path:
    """The records of a history topic as `kcat -J` prints them; their values are the lines of the file."""
    topic = history.with_name("topic.jsonl")
    records = [
        {
            "topic": "history",
            "partition": 0,
            "offset": number,
            "tstype": "create",
            "ts": 1,
            "key": None,
            "payload": line,
        }
        for number, line in enumerate(history.read_text().splitlines())
    ]
    topic.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    return topic


def _wrong_boundaries(values: Sequence[Any]) -> list[str]:
    """What is wrong with the transactions: each has one BEGIN, and an END with the number of its events."""
    wrong: list[str] = []
    events: dict[str, int] = {}
    for value in values:
        match value:
            case {"status": "BEGIN", "id": own}:
                wrong += [f"second BEGIN of {own}"] if own in events else []
                events[own] = 0
            case {"status": "END", "id": own, "event_count": count}:
                wrong += [f"END of {own}: {count}, seen {events.get(own)}"] if events.get(own) != count else []
            case {"transaction": {"id": own}}:
                events[own] = events.get(own, 0) + 1
            case _:
                pass
    return wrong


def test_two_databases_move_over_with_the_offsets_of_kafka_connect(place: Place, machine: DebeziumMachine):
    """As `GET /connectors/<name>/offsets` prints them: each database goes on at its own."""
    create(place)
    other = f"{place.database}_b"
    place.sql(f"CREATE DATABASE {other}")
    names = [place.database, other]
    place.configure(database_names=",".join(names))
    connector = load_connector(place.config)
    with control(connector.connection, other) as opened:

        def play(*statements: str) -> None:
            for statement in statements:
                opened.execute(statement, doing="playing the application")

        play(
            "EXEC sys.sp_cdc_enable_db",
            "CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, n int NOT NULL)",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL",
        )
        properties = {**_properties(place), "database.names": ",".join(names)}
        taken = _snapshots(machine)
        with DebeziumEngine(machine, properties, place.folder / "engine") as engine:
            engine.wait_until(lambda _: _snapshots(machine) == taken + len(names))
            place.sql("INSERT INTO dbo.a VALUES (1, 1), (2, 1)")
            play("INSERT INTO dbo.a VALUES (10, 1)", "UPDATE dbo.a SET n = 2")
            engine.wait_until(lambda records: len(_changes(records)) == 4)
            engine.wait_until(lambda records: _are_stored(records, place))
        place.sql("DELETE dbo.a WHERE id = 1")
        play("UPDATE dbo.a SET id = 11", "INSERT INTO dbo.a VALUES (12, 1)")
    stored = read_offsets(place.folder / "engine" / "offsets.dat", connector)
    assert sorted(stored) == sorted(names)
    offsets = place.folder / "offsets.json"
    offsets.write_text(offsets_text("shop", {name: one.values for name, one in stored.items()}))
    assert place.command("take-over", "--offsets", str(offsets)) == 0
    place.settle()
    assert place.catch_up() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output), "--offsets", str(offsets)) == 0
    ours = [json.loads(line) for line in output.read_text().splitlines()]
    found = {name: [one for one in ours if one["sourcePartition"]["database"] == name] for name in names}
    assert _changes_of_ours(found[place.database]) == [("a", "d", 1, 1)]
    assert _changes_of_ours(found[other]) == [("a", "d", 10, 2), ("a", "c", 11, 2), ("a", "c", 12, 1)]


@pytest.mark.feature("SCH-03")
def test_what_consumers_were_told_of_structures_is_compared_with_the_source(
    place: Place, machine: DebeziumMachine, capsys: pytest.CaptureFixture[str]
):
    """A column is added, with a capture instance of its own, after the other connector has stopped."""
    place.configure(incremental_snapshot_added_columns="false")
    create(place)
    taken = _snapshots(machine)
    with DebeziumEngine(machine, _properties(place), place.folder / "engine") as engine:
        engine.wait_until(lambda _: _snapshots(machine) == taken + 1)
        place.sql("INSERT INTO dbo.a VALUES (1, 1)", "INSERT INTO dbo.b VALUES (1, 1)")
        engine.wait_until(lambda records: len(_changes(records)) == 2)
        engine.wait_until(lambda records: _are_stored(records, place))
    offsets, history = (place.folder / "engine" / name for name in ("offsets.dat", "history.dat"))
    place.sql("INSERT INTO dbo.b VALUES (2, 1)", "ALTER TABLE dbo.b ADD more nvarchar(20) NULL")
    place.settle()
    place.enable("b", instance="dbo_b_2")
    place.sql("INSERT INTO dbo.b VALUES (3, 1, N'x')")
    place.settle()
    told = [json.loads(line) for line in history.read_text().splitlines()]
    for record in told:
        for change in record["tableChanges"]:
            if change["id"].endswith('"a"'):
                change["table"]["columns"][1]["name"] = "m"
    changed = place.folder / "history.dat"
    changed.write_text("\n".join(map(json.dumps, told)))
    assert place.command("take-over", "--offsets", str(offsets), "--schema-history", str(changed)) == 0
    said = capsys.readouterr().err
    assert "dbo.a: the schema history has m int(10,0), the capture instance has n int(10,0)" in said
    assert "dbo.b: the" not in said, "b goes on in the instance that the other connector read"
    assert place.catch_up() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output), "--offsets", str(offsets)) == 0
    ours = [json.loads(line)["value"] for line in output.read_text().splitlines()]
    kinds = [
        "ddl" if "tableChanges" in one else (one["op"], one["after"]["id"], "more" in one["after"]) for one in ours
    ]
    assert kinds == [("c", 2, False), "ddl", ("c", 3, True)]


def test_a_history_of_another_connector_is_refused_before_anything_is_written(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    create(place)
    offset = {"commit_lsn": "00000027:00000090:0004", "change_lsn": "00000027:00000090:0003", "event_serial_no": 1}
    offsets, history = place.folder / "offsets.json", place.folder / "history.dat"
    partition = {"server": "shop", "database": place.database}
    offsets.write_text(json.dumps({"offsets": [{"partition": partition, "offset": offset}]}))
    record = {"source": {"server": "other"}, "position": offset, "databaseName": place.database, "tableChanges": []}
    for text, why in ((json.dumps(record), "topic.prefix=other"), ("not JSON", "Line 1 of"), ("", "is empty")):
        history.write_text(text)
        assert place.command("take-over", "--offsets", str(offsets), "--schema-history", str(history)) == 2
        assert why in capsys.readouterr().err
    assert not (place.warehouse / "shop").exists()


@pytest.mark.parametrize("kind", ["file", "empty file", "delta", "stdout", "other connector"])
def test_the_offsets_of_an_output_that_has_none_are_refused_and_nothing_is_made(
    place: Place, kind: str, capsys: pytest.CaptureFixture[str]
):
    """A mistyped name made that output and an empty list, with which Debezium went on where it once stood."""
    folder = place.folder / "outputs"
    folder.mkdir()
    target = {"delta": f"delta:{folder}/record", "stdout": "-"}.get(kind, str(folder / "record.jsonl"))
    if kind == "empty file":
        (folder / "record.jsonl").touch()
    elif kind == "other connector":
        state = StreamState(newest=SourceInfo("", "", "", None, commit_lsn="00000027:00000090:0004"))
        with open_output(target, load_connector(place.config)) as output:
            records = pa.RecordBatch.from_pylist([], schema=RECORDS)
            output.write(OutputBatch(place.database, records, Progress("other", databases={place.database: state})))
    before = sorted(folder.iterdir())
    assert place.command("offsets", "--output", target) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert ("records of other" if kind == "other connector" else "records") in said.err
    assert sorted(folder.iterdir()) == before


def test_a_database_of_which_an_output_has_no_record_is_named(place: Place, capsys: pytest.CaptureFixture[str]):
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1)")
    place.settle()
    assert place.catch_up() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    place.configure(database_names=f"{place.database.upper()},idle")
    capsys.readouterr()
    assert place.command("offsets", "--output", str(output)) == 0
    said = capsys.readouterr()
    assert [one["partition"]["database"] for one in json.loads(said.out)["offsets"]] == [place.database]
    assert "idle: " in said.err
    assert place.database.upper() not in said.err


@pytest.mark.feature("HA-02")
def test_databases_are_taken_over_all_or_none_and_a_repetition_goes_on(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """The first one was taken over, and refused in the next call before the second one was looked at."""
    other = place.second_database()
    place.configure(database_names=f"{place.database},{other}")
    create(place)
    place.sql("INSERT INTO dbo.b VALUES (1, 1)")
    place.settle()
    offset = _newest_offset(place)
    with control(load_connector(place.config).connection, other) as opened:
        opened.execute("INSERT INTO dbo.people VALUES (1)", doing="playing the application")
        asked = "SELECT CONVERT(char(20), MAX(start_lsn), 2) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"
        end = time.monotonic() + place.server.settle_seconds
        while (position := opened.value(asked, doing="reading")) is None and time.monotonic() < end:
            time.sleep(0.05)
    assert position is not None
    both = {place.database: offset, other: _offset_at(position)}
    path = place.folder / "offsets.json"
    path.write_text(offsets_text("shop", {place.database: offset}))
    assert place.command("take-over", "--offsets", str(path)) == 2
    assert f"no position of {other} after a completed snapshot" in capsys.readouterr().err
    assert not (place.warehouse / "shop").exists()

    place.configure()
    assert place.command("take-over", "--offsets", str(path)) == 0
    place.configure(database_names=f"{place.database},{other}")
    path.write_text(offsets_text("shop", both))
    capsys.readouterr()
    assert place.command("take-over", "--offsets", str(path)) == 0
    said = capsys.readouterr().err
    assert f"{place.database} was taken over there by an earlier call" in said
    assert f"{other}.dbo.people streams from" in said
    path.write_text(offsets_text("shop", {**both, place.database: _offset_at("0" * 19 + "1")}))
    assert place.command("take-over", "--offsets", str(path)) == 2
    assert f"already has the state of {place.database}" in capsys.readouterr().err


def test_offsets_of_a_snapshot_that_is_not_finished_are_refused(place: Place, capsys: pytest.CaptureFixture[str]):
    create(place)
    offset = {"snapshot": "INITIAL", "snapshot_completed": False, "commit_lsn": "00000027:00000090:0004"}
    path = _offsets_file(place, offset)
    assert place.command("take-over", "--offsets", str(path)) == 2
    assert "after a completed snapshot" in capsys.readouterr().err


def test_changes_that_cleanup_has_removed_are_named_and_nothing_is_written(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1)", "INSERT INTO dbo.b VALUES (2, 1)")
    place.settle()
    position = place.control.value("SELECT CONVERT(char(20), MIN(__$start_lsn), 2) FROM cdc.dbo_a_CT", doing="reading")
    place.sql("WAITFOR DELAY '00:00:00.050'", "INSERT INTO dbo.a VALUES (3, 1)")
    place.settle()
    newest = place.control.value("SELECT CONVERT(char(22), MAX(__$start_lsn), 1) FROM cdc.dbo_a_CT", doing="reading")
    place.sql(f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_a', @low_water_mark = {newest}")
    path = _offsets_file(place, _offset_at(position))
    assert place.command("take-over", "--offsets", str(path)) == 4
    assert f"{place.database}.dbo.a" in capsys.readouterr().err
    assert not (place.warehouse / "shop").exists()


def test_an_offset_of_a_history_that_a_restore_took_back_is_refused(place: Place, capsys: pytest.CaptureFixture[str]):
    """The tables would stream from it on, and what the source has committed below it since would be missing."""
    offset = _offset_that_a_restore_takes_back(place)
    path = _offsets_file(place, offset)
    place.sql("EXEC sandbox.restore_database", "INSERT INTO dbo.a VALUES (4, 1)")
    place.settle()
    assert place.command("take-over", "--offsets", str(path)) == 4
    assert f"does not have commit {offset['commit_lsn']}" in capsys.readouterr().err
    place.sql(*(f"INSERT INTO dbo.a VALUES ({key}, 1)" for key in range(5, 15)))
    place.settle()
    assert place.command("take-over", "--offsets", str(path)) == 4, "the source has newer commits meanwhile"
    assert not (place.warehouse / "shop").exists()


def test_a_restore_right_after_a_take_over_is_noticed(place: Place, capsys: pytest.CaptureFixture[str]):
    path = _offsets_file(place, _offset_that_a_restore_takes_back(place))
    assert place.command("take-over", "--offsets", str(path)) == 0
    place.sql("EXEC sandbox.restore_database", "INSERT INTO dbo.a VALUES (4, 1)")
    place.settle()
    assert place.catch_up() == 4
    assert "restored" in capsys.readouterr().err


@pytest.mark.feature("INC-11", "STR-22")
def test_an_incremental_snapshot_that_was_not_finished_is_requested_anew(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1), (2, 2)", "INSERT INTO dbo.b VALUES (1, 1), (2, 2)")
    place.settle()
    remaining = [
        {f"{_KEY}_id": f"[{place.database}].[dbo].[a]", f"{_KEY}_additional_condition": "id = 2"},
        {f"{_KEY}_id": f"{place.database}.dbo.b", f"{_KEY}_additional_condition": None, f"{_KEY}_surrogate_key": "n"},
        {f"{_KEY}_id": f"{place.database}.dbo.gone"},
    ]
    offset = _newest_offset(place) | {
        _KEY: json.dumps(remaining),
        "incremental_snapshot_primary_key": "aced0005",
        "incremental_snapshot_correlation_id": "ad-hoc-1",
    }
    assert place.command("take-over", "--offsets", str(_offsets_file(place, offset))) == 0
    said = capsys.readouterr().err
    assert f"incremental snapshot of {place.database}.dbo.a where id = 2" in said
    assert f"{place.database}.dbo.gone is not continued: it is not captured" in said
    assert place.catch_up() == 0
    for table, keys in (("a", [2]), ("b", [1, 2])):
        rows = place.query("SELECT after.id AS id FROM t WHERE op = 'r' ORDER BY _pos", table, "changes")
        assert [row["id"] for row in rows] == keys


@pytest.mark.feature("BLK-05")
def test_a_blocking_snapshot_that_was_not_finished_is_missing_and_said_so(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """Debezium streams on from its position after a restart, too."""
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1)", "INSERT INTO dbo.b VALUES (1, 1)")
    place.settle()
    offset = {"snapshot": "BLOCKING", "snapshot_completed": False, "commit_lsn": _newest_offset(place)["commit_lsn"]}
    assert place.command("take-over", "--offsets", str(_offsets_file(place, offset))) == 0
    assert "blocking snapshot was not finished" in capsys.readouterr().err


@pytest.mark.feature("INC-11", "STR-04")
def test_tables_stream_from_the_offset_of_a_row_of_an_incremental_snapshot(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """A connector that was restarted says there that its snapshot is not completed, though its initial one is."""
    path = _offsets_file(place, _offset_of_a_window(place))
    assert place.command("take-over", "--offsets", str(path)) == 0
    assert "send its signal execute-snapshot again" in capsys.readouterr().err
    assert place.catch_up() == 0
    rows = place.query("SELECT after.id AS id, op FROM t ORDER BY _pos", "a", "changes")
    assert [(row["id"], row["op"]) for row in rows] == [(2, "c"), (3, "c")]


@pytest.mark.feature("SNP-06", "STR-04")
def test_recovery_goes_on_at_the_offset_of_a_row_of_an_incremental_snapshot(place: Place):
    """It began at now, without a word: what had been captured since was missing."""
    place.configure(snapshot_mode="recovery", incremental_snapshot_added_columns="false")
    path = _offsets_file(place, _offset_of_a_window(place))
    with followed(place, "--offsets", str(path)) as found:
        assert keys_of(found.changes(3)) == [("c", 2), ("c", 3), ("c", 1)]
        assert found.end() == 0


def _offset_of_a_window(place: Place) -> dict[str, Any]:
    """That of a row of an incremental snapshot at the commit of a change, which another change follows."""
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1)")
    place.settle()
    place.sql("INSERT INTO dbo.a VALUES (2, 1)")
    place.settle()
    commit = _newest_offset(place, "a")["commit_lsn"]
    place.sql("INSERT INTO dbo.a VALUES (3, 1)", "INSERT INTO dbo.b VALUES (1, 1)")
    place.settle()
    return {"snapshot": "INCREMENTAL", "snapshot_completed": False, "commit_lsn": commit}


_KEY = "incremental_snapshot_collections"


def _offset_that_a_restore_takes_back(place: Place) -> dict[str, Any]:
    """That of the newest change; `sandbox.restore_database` brings back what was before it."""
    create(place)
    place.sql("INSERT INTO dbo.a VALUES (1, 1)")
    place.settle()
    place.sql("EXEC sandbox.restore_point", "INSERT INTO dbo.a VALUES (2, 1)", "INSERT INTO dbo.a VALUES (3, 1)")
    place.settle()
    return _newest_offset(place, "a")


def _newest_offset(place: Place, table: str = "b") -> dict[str, Any]:
    newest = f"SELECT CONVERT(char(20), MAX(__$start_lsn), 2) FROM cdc.dbo_{table}_CT"
    return _offset_at(place.control.value(newest, doing="reading"))


def _offset_at(position: str) -> dict[str, Any]:
    """The offset of a change whose commit has these digits."""
    lsn = f"{position[:8]}:{position[8:16]}:{position[16:]}".lower()
    return {"commit_lsn": lsn, "change_lsn": lsn, "event_serial_no": 1}


def _offsets_file(place: Place, offset: dict[str, Any]) -> Path:
    path = place.folder / "offsets.json"
    partition = {"server": "shop", "database": place.database}
    path.write_text(json.dumps({"offsets": [{"partition": partition, "offset": offset}]}))
    return path


def _properties(place: Place) -> dict[str, str]:
    server = place.server
    return {
        "name": "shop",
        "topic.prefix": "shop",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": place.database,
    }


def _kept(records: Sequence[Record], offsets: Path, place: Place) -> list[Record]:
    """The records up to the stored offset: a consumer gets the others again."""
    stored = read_offsets(offsets, load_connector(place.config))[place.database].values
    last = max(number for number, one in enumerate(records) if one.source_offset == stored)
    return list(records[: last + 1])


def _are_stored(records: Sequence[Record], place: Place) -> bool:
    """Whether the engine has stored the offsets of the last records; it does so behind their delivery."""
    last = {one.source_partition["database"]: one.source_offset for one in records}
    try:
        stored = read_offsets(place.folder / "engine" / "offsets.dat", load_connector(place.config))
    except ConfigurationError:
        return False  # They are just being written.
    return {name: one.values for name, one in stored.items()} == last


def _changes(records: Sequence[Record]) -> list[Change]:
    return _changes_in([one.value for one in records])


def _changes_of_ours(records: Sequence[dict[str, Any]]) -> list[Change]:
    return _changes_in([one["value"] for one in records])


def _changes_in(values: Sequence[Any]) -> list[Change]:
    """The changes, and rows of snapshots, of which there must be none."""
    return [change_of(value) for value in values if value is not None and value.get("op") is not None]


def _printed_offsets(place: Place, output: Path) -> Any:
    return json.loads(_printed(place, "offsets", "--output", str(output)))


def _printed(place: Place, command: str, *options: str) -> str:
    from mssql_cdc.cli import main

    with redirect_stdout(io.StringIO()) as shown:
        assert main([command, "--config", str(place.config), *options]) == 0
    return shown.getvalue()


def _store(machine: DebeziumMachine, place: Place, offsets: Any) -> None:
    """Write offsets as an engine stores them; Kafka Connect takes them through its REST API."""
    (entry,) = offsets["offsets"]
    key = json.dumps(["shop", entry["partition"]], separators=(",", ":"))
    java = machine.java
    stored = java.java.util.HashMap()
    stored.put(bytearray(key.encode()), bytearray(json.dumps(entry["offset"]).encode()))
    file = java.java.io.FileOutputStream(str(place.folder / "engine" / "offsets.dat"))
    stream = java.java.io.ObjectOutputStream(file)
    stream.writeObject(stored)
    stream.close()
