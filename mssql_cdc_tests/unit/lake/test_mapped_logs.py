"""A change log with column mapping is read like one without: files are found by their statistics (rules A6, D)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.events import to_change_log
from mssql_cdc.lake.commit_times import CommitTimes, commit_times
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.known_commit_times import KnownCommitTimes
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, commit, load_state
from mssql_cdc.lake.properties import (
    CHANGE_LOG_PROPERTIES,
    CHANGE_LOG_STATS,
    MAPPED_IDS,
    MAPPING,
    MAPPING_ID,
    OWNER,
    PHYSICAL_NAME,
    STATS,
)
from mssql_cdc.lake.read import BatchSlice, Commits, open_files, ordered, scan
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lake.table_commit import Change as LogChange
from mssql_cdc.lake.table_commit import create
from mssql_cdc.lake.window import KeyRange, Window, window
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import (
    AT,
    Change,
    change_log,
    column,
    delta_schema_text,
    home_in,
    lsn,
    neutral,
    orders,
)

COMMITS, ROWS = 5, 20
PLAIN = orders(column("id", "int"), column("ab", "int"))
ODD = orders(column("id", "int"), column("a b", "int"))
EACH = pytest.mark.parametrize("schema", [PLAIN, ODD], ids=["plain", "mapped"])


def mapped_log(home: TableHome, schema: TableSchema) -> TableState:
    """A change log as Spark creates it: each column of its files has the name `col-<uuid>`."""
    found, ids = json.loads(delta_schema_text(change_log_schema(schema))), count(1)

    def mapped(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            field["metadata"] |= {MAPPING_ID: next(ids), PHYSICAL_NAME: f"col-{uuid.uuid4()}"}
            if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
                mapped(field["type"]["fields"])

    mapped(found["fields"])
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(found),
        "partitionColumns": [],
        "configuration": {
            **CHANGE_LOG_PROPERTIES,
            OWNER: home.app_id,
            STATS: ",".join(CHANGE_LOG_STATS),
            MAPPING: "name",
            MAPPED_IDS: str(next(ids)),
        },
        "createdTime": int(time.time() * 1000),
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping", "timestampNtz"],
        "writerFeatures": ["appendOnly", "columnMapping", "invariants", "timestampNtz"],
    }
    create(home.changes, LogChange("CREATE TABLE", protocol=protocol, metadata=metadata), facts={})
    state = load_state(home.changes, owner=home.app_id)
    assert state is not None
    return state


def at(number: int) -> datetime:
    return AT + timedelta(minutes=number)


def filled(folder: Path, schema: TableSchema) -> tuple[TableHome, CurrentLogs]:
    """A change log of five commits with keys of their own, and what the process that wrote it knows."""
    home, logs = home_in(folder), CurrentLogs()
    state = mapped_log(home, schema) if schema is ODD else change_log(home, schema)
    other = schema.columns[1].name
    for number in range(1, COMMITS + 1):
        rows = [
            Change(number, "c", after={"id": 100 * number + n, other: n}, sequence=n, committed=at(number))
            for n in range(1, ROWS + 1)
        ]
        batch = to_change_log(neutral(schema, *rows), table_schema=schema, batch_number=number)
        files = write_files([batch], state.target)
        state = commit(state, files, {"to": lsn(number).text})
        logs.appended(state, files)
    return home, logs


def shape(found: Window) -> list[Any]:
    """What a window knows of its files."""
    facts = [(one.rows, one.smallest, one.largest, one.first) for one in found.files]
    return [facts, found.most_rows, found.certain, found.first_position]


@EACH
def test_window_has_the_files_of_its_slice(tmp_path: Path, schema: TableSchema):
    home, logs = filled(tmp_path, schema)
    found = window(home.changes, BatchSlice(4, 5))
    (first,) = scan(home.changes, batches=BatchSlice(4, 5), columns=["_pos"])
    lowest = first.column("_pos")[0].as_py()[:32]
    assert shape(found) == [[(ROWS, "3:501", "3:520", lowest)], ROWS, True, lowest]
    assert shape(logs.section(home.changes, BatchSlice(4, 5), LOCAL)) == shape(found)
    assert [batch.column("_key")[0].as_py() for batch in found.rows(["_key"])] == ["3:501"]
    within = window(home.changes, BatchSlice(0, 5)).within(KeyRange.of("3:201", "3:301"))
    assert [one.smallest for one in within.files] == ["3:201", "3:301"]
    assert sum(batch.num_rows for batch in within.rows(["_key"])) == ROWS + 1


@EACH
def test_commit_times_come_from_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: TableSchema):
    home, _ = filled(tmp_path, schema)
    monkeypatch.setattr("mssql_cdc.lake.commit_times.scan", None)
    assert commit_times(home.changes, after=3) == CommitTimes(at(5), at(4))
    assert commit_times(home.changes, after=5) == CommitTimes(at(5))
    monkeypatch.setattr("mssql_cdc.lake.known_commit_times.commit_times", None)
    known = KnownCommitTimes(home.changes)
    assert [known.oldest_after(one) for one in (0, 3, 5)] == [at(1), at(4), None]


@EACH
def test_files_are_pruned_by_commit_and_by_commit_time(tmp_path: Path, schema: TableSchema):
    home, _ = filled(tmp_path, schema)
    assert open_files(home.changes).firsts == (1, 2, 3, 4, 5)
    assert open_files(home.changes, batches=BatchSlice(1, 3)).firsts == (2, 3)
    interval = Commits(at(2), at(4))
    assert open_files(home.changes, commits=interval).firsts == (2, 3)
    assert sum(batch.num_rows for batch in scan(home.changes, commits=interval)) == 2 * ROWS
    assert [table.num_rows for table in ordered(home.changes, columns=["_batch"])] == [ROWS] * COMMITS


def no_statistics_of_batch(uri: str, number: int) -> None:
    """As if the user's `delta.dataSkippingStatsColumns` had left `_batch` out at this commit."""
    entry = Path(uri, "_delta_log", f"{number:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            action["add"]["stats"] = json.dumps({**stats, "minValues": {}, "maxValues": {}})
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


def no_statistics(uri: str, number: int) -> None:
    """As OPTIMIZE leaves a file with `spark.databricks.delta.stats.collect=false`."""
    entry = Path(uri, "_delta_log", f"{number:020}.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


@EACH
@pytest.mark.parametrize("lose", [no_statistics_of_batch, no_statistics])
@pytest.mark.parametrize("numbers", [[5], [1, 5], [1, 2, 3, 4, 5]], ids=str)
def test_commit_times_of_files_without_statistics_come_from_their_rows(
    tmp_path: Path, schema: TableSchema, lose: Callable[[str, int], None], numbers: list[int]
):
    home, _ = filled(tmp_path, schema)
    for number in numbers:
        lose(home.changes, number)
    assert commit_times(home.changes, after=4) == CommitTimes(at(5), at(5))
    assert commit_times(home.changes, after=0) == CommitTimes(at(5), at(1))
    assert commit_times(home.changes, after=5) == CommitTimes(at(5))
    assert KnownCommitTimes(home.changes).oldest_after(3) == at(4)
