"""Which commits by others an append goes past, and which make it fail: `deltalake` is the oracle (rule A3)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import OvertakenError
from mssql_cdc.lake.files import DataFile, write_files
from mssql_cdc.lake.log import TableState, commit, create_table, load_state

OWNER = "mssql_cdc:server1:shop/dbo/orders"
SCHEMA = pa.schema([pa.field("_batch", pa.int64()), pa.field("x", pa.int64())])
OTHERS = ("append", "append with a txn", "optimize", "add column", "set property", "restore", "vacuum", "our stream's")


def state_of(uri: str, writer: str = "") -> TableState:
    state = load_state(uri, owner=OWNER, writer=writer)
    assert state is not None
    return state


def files_for(state: TableState) -> list[DataFile]:
    rows = pa.RecordBatch.from_pylist([{"_batch": state.batch + 1, "x": 1}], schema=SCHEMA)
    return write_files([rows], state.target)


def act(uri: str, what: str) -> None:
    """Let another program commit to the table."""
    table = DeltaTable(uri)
    match what:
        case "append" | "append with a txn":
            txns = [Transaction("another", table.version())] if what == "append with a txn" else []
            (file,) = files_for(state_of(uri))
            add = AddAction(file.path, file.size, {}, file.modified, True, file.stats)
            properties = CommitProperties(app_transactions=txns)
            table.create_write_transaction([add], "append", table.schema(), commit_properties=properties)
        case "optimize":
            table.optimize.compact()
        case "add column":
            table.alter.add_columns([Field(f"c{table.version()}", PrimitiveType("long"))])
        case "set property":
            table.alter.set_table_properties({"delta.logRetentionDuration": f"interval {30 + table.version()} days"})
        case "restore":
            table.restore(0, ignore_missing_files=True)
        case "vacuum":
            table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        case _:
            state = state_of(uri)
            commit(state, files_for(state), {"kind": "range"})


def goes_past(uri: str, state: TableState) -> bool:
    """Whether `deltalake` appends from this state."""
    txns = [Transaction(state.app_id, state.batch + 1), Transaction(f"{OWNER}:batch", state.batch + 1)]
    table = DeltaTable(uri, version=state.delta_version)
    add = AddAction("oracle.parquet", 1, {}, 0, True, '{"numRecords": 1}')
    try:
        table.create_write_transaction(
            [add], "append", table.schema(), commit_properties=CommitProperties(app_transactions=txns)
        )
    except CommitFailedError:
        return False
    return True


def play(folder: Path, others: list[str], writer: str) -> None:
    uri, copy = str(folder / "table"), str(folder / "copy")
    create_table(uri, SCHEMA, owner=OWNER, properties={}, stats_columns=("_batch",))
    for _ in range(2):
        commit(state_of(uri), files_for(state_of(uri)), {"kind": "range"})
    state = state_of(uri, writer)
    files = files_for(state)
    for other in others:
        act(uri, other)
    shutil.copytree(uri, copy)
    expected = goes_past(copy, state)
    newest = DeltaTable(uri).version()
    try:
        after = commit(state, files, {"kind": "range"})
    except OvertakenError:
        assert not expected
        assert DeltaTable(uri).version() == newest, "nothing was written"
        return
    assert expected
    assert after == state_of(uri, writer)
    assert (after.delta_version, after.batch) == (newest + 1, state.batch + 1)


@pytest.mark.parametrize("writer", ["", "snapshot"])
@pytest.mark.parametrize("other", OTHERS)
def test_an_append_goes_past_the_commits_that_deltalake_goes_past(tmp_path: Path, other: str, writer: str):
    play(tmp_path, [other], writer)


@settings(max_examples=25, deadline=None)
@given(others=st.lists(st.sampled_from(OTHERS), max_size=5), writer=st.sampled_from(["", "snapshot"]))
def test_an_append_goes_past_any_commits_that_deltalake_goes_past(
    tmp_path_factory: pytest.TempPathFactory, others: list[str], writer: str
):
    play(tmp_path_factory.mktemp("append"), others, writer)
