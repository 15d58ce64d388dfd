"""Commits: fencing, batch numbers, metadata, statistics, evolution (rules A3, A5, A6, B15)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import FencedError, OvertakenError, SchemaError, StorageError, TamperedTableError
from mssql_cdc.lake import log
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.evolution import evolve, schema_change
from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.log import backwards, commit, create_table, load_state, refresh
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.read import BatchSlice, read_table, scan
from mssql_cdc.lake.tamper import last_streamed_position, verify_untouched
from mssql_cdc.lsn import Position
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, delta_schema_text, home_in, lsn, orders


def row(number: int, name: str = "a") -> dict[str, object]:
    return {"id": number, "name": name, "note": "n"}


def keys(uri: str) -> list[str]:
    return sorted(read_table(uri, columns=["_key"]).column("_key").to_pylist())


def test_new_table_has_no_commits_of_the_connector(tmp_path: Path):
    state = change_log(home_in(tmp_path), orders())
    assert (state.batch, state.own_batch, state.own, state.to) == (0, 0, None, None)
    assert state.properties["delta.appendOnly"] == "true"
    assert load_state(str(tmp_path / "nowhere"), owner="x") is None


def test_a_table_that_cannot_be_created_names_its_folder(tmp_path: Path):
    home = home_in(tmp_path)
    Path(home.folder).parent.mkdir(parents=True)
    Path(home.folder).write_text("a file in its place")
    with pytest.raises(StorageError, match=r"changes cannot be written to: Not a directory\. Nothing was committed"):
        change_log(home, orders())


def test_protocol_requires_only_the_reader_features_that_the_columns_need(tmp_path: Path):
    home, plain = home_in(tmp_path), orders()
    state = change_log(home, plain)
    assert DeltaTable(state.uri).protocol().min_reader_version == 1
    dated = orders(*plain.columns, column("at", "datetime"), version=2)
    state = append(evolve(state, change_log_schema(dated)), dated, Change(1, "c", after=row(1)))
    assert DeltaTable(state.uri).protocol().reader_features == ["timestampNtz"]
    assert set(DeltaTable(state.uri).protocol().writer_features or ()) == {"timestampNtz", "appendOnly"}


def test_commit_keeps_rows_and_facts_together(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    append(change_log(home, schema), schema, Change(5, "c", after=row(1)), run_id="r1", partition="p")
    again = change_log(home, schema)
    assert again.own is not None
    assert (again.to, again.own["run_id"], again.own["partition"], again.own["rows"]) == (lsn(5).text, "r1", "p", 1)
    assert (again.batch, again.own["batch"]) == (1, 1)
    assert keys(home.changes) == ["1:1"]


def test_commit_without_rows_advances_the_position(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = commit(change_log(home, schema), [], {"to": "x"})
    assert (state.to, state.batch) == ("x", 1)
    assert change_log(home, schema).to == "x"


@pytest.mark.parametrize("between", [False, True])
def test_the_state_after_a_commit_is_what_the_log_tells(tmp_path: Path, between: bool):  # noqa: FBT001 (parametrized)
    """It is known without reading the log, unless another version lies between, such as a user's OPTIMIZE."""
    home, state = home_in(tmp_path), change_log(home_in(tmp_path), orders())
    for number in range(1, 4):
        state = append(state, orders(), Change(number, "c", after={"id": number, "name": "x", "note": None}))
    if between:
        DeltaTable(home.changes).optimize.compact()
    after = append(state, orders(), Change(4, "c", after={"id": 4, "name": "x", "note": None}))
    assert after == load_state(home.changes, owner=home.app_id)
    assert after.delta_version == state.delta_version + (2 if between else 1)


def test_late_run_cannot_append(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    late = change_log(home, schema)
    state = change_log(home, schema)
    for number in (1, 2, 3):
        state = append(state, schema, Change(number, "c", after=row(number)))
    with pytest.raises(FencedError, match="Another run"):
        append(late, schema, Change(1, "c", after=row(1)))
    assert keys(home.changes) == ["1:1", "1:2", "1:3"]


def test_state_can_be_used_once_only(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    append(state, schema, Change(1, "c", after=row(1)))
    with pytest.raises(OvertakenError, match="batch 0, now 1"):
        append(state, schema, Change(1, "c", after=row(1)))
    assert keys(home.changes) == ["1:1"]


def test_commits_do_not_read_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each would cost more than the one before: a handle of deltalake 1.6.6 gets slower with each commit."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the table was opened")

    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for name in ("find_table", "open_table"):
        monkeypatch.setattr(log, name, opened)
    for number in range(1, 21):
        state = append(state, schema, Change(number, "c", after=row(number)))
    monkeypatch.undo()
    assert state == change_log(home, schema)


def test_a_commit_whose_confirmation_was_lost_is_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A store that repeats the request finds what its first attempt has written."""
    home, schema = home_in(tmp_path), orders()
    state, put_new = change_log(home, schema), Folder.put_new

    def put_twice(folder: Folder, path: str, content: bytes) -> bool:
        return put_new(folder, path, content) and put_new(folder, path, content)

    monkeypatch.setattr(Folder, "put_new", put_twice)
    after = append(state, schema, Change(1, "c", after=row(1)))
    assert (after.delta_version, keys(home.changes)) == (1, ["1:1"])


@pytest.mark.parametrize("made", [False, True])
def test_a_store_that_fails_in_a_commit_leaves_no_doubt(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: bool,  # noqa: FBT001 (parametrized)
):
    home, schema = home_in(tmp_path), orders()
    state, put_new = change_log(home, schema), Folder.put_new

    def failing(folder: Folder, path: str, content: bytes) -> bool:
        if made:
            put_new(folder, path, content)
        raise StorageError("the connection was reset")

    monkeypatch.setattr(Folder, "put_new", failing)
    if made:
        assert append(state, schema, Change(1, "c", after=row(1))).batch == 1
    else:
        with pytest.raises(StorageError, match="failed, nothing was written: the connection was reset"):
            append(state, schema, Change(1, "c", after=row(1)))
    monkeypatch.undo()
    assert keys(home.changes) == (["1:1"] if made else [])


def test_of_many_concurrent_runs_one_commits(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    states = [change_log(home, schema) for _ in range(6)]

    def run(number: int) -> bool:
        try:
            append(states[number], schema, Change(1, "c", after=row(number)))
        except FencedError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(run, range(6))) == 1
    assert len(keys(home.changes)) == 1


def test_snapshot_and_stream_never_share_a_batch_number(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    stream, snapshot = change_log(home, schema), change_log(home, schema, writer="snapshot")
    append(snapshot, schema, Change(1, "r", after=row(1)))
    with pytest.raises(FencedError):
        append(stream, schema, Change(2, "c", after=row(2)))
    stream = change_log(home, schema)
    assert (stream.batch, stream.own_batch, stream.to) == (1, 0, None)
    append(stream, schema, Change(2, "c", after=row(2)))
    assert change_log(home, schema, writer="snapshot").to == lsn(1).text
    assert sorted(read_table(home.changes, columns=["_batch"]).column("_batch").to_pylist()) == [1, 2]


def test_killed_before_the_commit_leaves_garbage_and_no_rows(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    batch = pa.RecordBatch.from_pylist([], schema=change_log_schema(schema))
    assert write_files([batch], state.target) == []
    filled = pa.RecordBatch.from_pylist([{"_batch": 1, "op": "c"}], schema=change_log_schema(schema))
    assert len(write_files([filled], state.target)) == 1
    append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    assert keys(home.changes) == ["1:1"]


def test_killed_after_the_commit_the_next_run_continues_after_it(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    append(change_log(home, schema), schema, Change(7, "c", after=row(1)))
    # No offsets row was written; only the log says where to resume.
    assert change_log(home, schema).to == lsn(7).text


def test_another_connector_never_writes_to_the_same_table(tmp_path: Path):
    home = home_in(tmp_path)
    change_log(home, orders())
    with pytest.raises(StorageError, match="belongs to"):
        load_state(home.changes, owner="mssql_cdc:other:shop/dbo/orders")


def test_facts_are_found_among_many_commits_of_another_writer(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    append(change_log(home, schema), schema, Change(3, "c", after=row(1)))
    snapshot = change_log(home, schema, writer="snapshot")
    for _ in range(70):
        snapshot = commit(snapshot, [], {"snapshot": {"chunk": 1}})
    assert change_log(home, schema).to == lsn(3).text


@pytest.mark.parametrize(
    "said", ["{'job': 'nightly optimize'}", "{{ run_id }}", "{" * 100_000, '{"app_id": 7}', "[1]", "{}", None]
)
def test_what_another_writer_says_of_its_commit_stops_nothing(tmp_path: Path, said: object):
    """One OPTIMIZE with such a text ended every later run, of all tables and databases."""
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    info = {"timestamp": 1_800_000_000_000, "operation": "OPTIMIZE", "operationParameters": {}, "userMetadata": said}
    commit_file = Path(home.changes, "_delta_log", f"{state.delta_version + 1:020}.json")
    commit_file.write_text(json.dumps({"commitInfo": info}) + "\n")
    snapshots = load_state(home.changes, owner=home.app_id, writer="snapshot")
    assert snapshots is not None
    found = load_state(home.changes, owner=home.app_id)
    assert found is not None
    assert (snapshots.batch, found.batch) == (1, 1)
    verify_untouched(found, table_id=state.table_id, delta_version=state.delta_version, batch=1)
    after = append(found, schema, Change(2, "c", after=row(2)))
    assert (after.batch, keys(home.changes)) == (2, ["1:1", "1:2"])


def test_a_commit_that_says_nothing_of_itself_has_its_version_and_is_noticed(tmp_path: Path):
    """The history of deltalake 1.6.6 omits it, and gives all commits before it wrong versions."""
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    commit_file = Path(home.changes, "_delta_log", f"{state.delta_version + 1:020}.json")
    commit_file.write_text(json.dumps({"txn": {"appId": "another", "version": 1}}) + "\n")
    found = change_log(home, schema)
    assert [(entry["version"], entry.get("operation")) for entry in backwards(found)] == [
        (2, None),
        (1, "WRITE"),
        (0, "CREATE TABLE"),
    ]
    with pytest.raises(TamperedTableError, match="UNKNOWN in Delta version 2"):
        verify_untouched(found, table_id=state.table_id, delta_version=1)


@pytest.mark.parametrize("count", [3, 4, 5, 68, 69, 150])
def test_history_goes_back_as_far_as_the_log_has_commits(tmp_path: Path, count: int):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in range(1, count + 1):
        state = commit(state, [], {"to": lsn(number).text})
    assert [entry["version"] for entry in backwards(state)] == list(range(count, -1, -1))
    for version in range(count // 2):
        Path(home.changes, "_delta_log", f"{version:020}.json").unlink()
    assert [entry["version"] for entry in backwards(state)] == list(range(count, count // 2 - 1, -1))


def test_position_is_derived_from_the_rows_if_the_facts_are_gone(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(3, "c", after=row(1)), Change(4, "c", after=row(2)))
    state = append(state, schema, Change(9, "r", after=row(3)))
    found = last_streamed_position(state)
    assert found is not None
    assert Position.parse(found).commit_lsn == lsn(4)


def test_statistics_bound_the_values_in_the_file(tmp_path: Path):
    schema = pa.schema([("_pos", pa.string()), ("_batch", pa.int64()), ("x", pa.string())])
    rows = [{"_pos": "b" * 40, "_batch": 2, "x": "1"}, {"_pos": "a" * 40, "_batch": 5}, {"_pos": None, "_batch": 3}]
    target = FileTarget(str(tmp_path), stats_columns=("_pos", "_batch", "missing"))
    (file,) = write_files([pa.RecordBatch.from_pylist(rows, schema=schema)], target)
    stats = json.loads(file.stats)
    assert stats["numRecords"] == file.rows == 3
    assert stats["nullCount"] == {"_pos": 1, "_batch": 0}
    assert stats["minValues"] == {"_pos": "a" * 32, "_batch": 2}
    assert stats["maxValues"]["_batch"] == 5
    assert len(stats["maxValues"]["_pos"]) == 33
    assert stats["maxValues"]["_pos"] > "b" * 40
    assert (tmp_path / file.path).stat().st_size == file.size


def test_files_are_split_by_size_and_small_batches_share_a_row_group(tmp_path: Path):
    schema = pa.schema([("x", pa.string())])
    one = pa.RecordBatch.from_pylist([{"x": str(n) * 20} for n in range(100)], schema=schema)
    target = FileTarget(str(tmp_path), file_bytes=1, row_group_rows=200)
    files = write_files([one] * 5, target)
    assert [file.rows for file in files] == [200, 200, 100]
    assert pq.ParquetFile(tmp_path / files[0].path).num_row_groups == 1


def test_failing_reader_fails_the_write(tmp_path: Path):
    def broken():
        yield pa.RecordBatch.from_pylist([{"x": 1}])
        raise RuntimeError("cleanup took the rows")

    with pytest.raises(RuntimeError, match="cleanup"):
        write_files(broken(), FileTarget(str(tmp_path)))


def test_scan_reads_the_requested_batches(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in (1, 2, 3, 4):
        state = append(state, schema, Change(number, "c", after=row(number)))
    found = [b.to_pylist() for b in scan(home.changes, batches=BatchSlice(1, 3), columns=["_key"])]
    assert found == [[{"_key": "1:2"}], [{"_key": "1:3"}]]


def test_added_column_is_null_in_old_rows(tmp_path: Path):
    home, old = home_in(tmp_path), orders()
    new = orders(*old.columns, column("price", "int"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after=row(1)))
    state = evolve(state, change_log_schema(new))
    assert evolve(state, change_log_schema(new)) is state
    state = append(state, new, Change(2, "c", after={**row(2), "price": 5}))
    state = append(state, old, Change(3, "c", after=row(3)))  # An older instance still delivers the old schema.
    assert (state.batch, state.to) == (3, lsn(3).text)
    after = [r["after"]["price"] for r in read_table(home.changes).sort_by("_pos").to_pylist()]
    assert after == [None, 5, None]
    verify_untouched(state, table_id=state.table_id, delta_version=1)


def test_run_that_began_before_a_schema_change_still_commits_or_is_fenced(tmp_path: Path):
    home, old = home_in(tmp_path), orders()
    new = orders(*old.columns, column("price", "int"), version=2)
    late = change_log(home, old)
    append(evolve(change_log(home, old), change_log_schema(new)), new, Change(1, "c", after=row(1)))
    with pytest.raises(FencedError):
        append(late, old, Change(1, "c", after=row(1)))


def test_file_with_a_column_that_the_table_lacks_is_rejected(tmp_path: Path):
    home, old = home_in(tmp_path), orders()
    new = orders(*old.columns, column("price", "int"), version=2)
    with pytest.raises(SchemaError, match=r"after.price|before.price"):
        append(change_log(home, old), new, Change(1, "c", after=row(1)))


def test_narrower_values_are_written_with_the_type_of_the_table(tmp_path: Path):
    wide, narrow = orders(column("id", "bigint")), orders(column("id", "int"), version=2)
    home = home_in(tmp_path)
    state = append(change_log(home, wide), wide, Change(1, "c", after={"id": 2**40}))
    append(state, narrow, Change(2, "c", after={"id": 2}))
    after = [r["after"]["id"] for r in read_table(home.changes).sort_by("_pos").to_pylist()]
    assert after == [2**40, 2]


def test_type_that_cannot_be_widened_is_an_error_with_advice():
    text = delta_schema_text(change_log_schema(orders(column("id", "int"), column("x", "int"))))
    with pytest.raises(SchemaError, match=r"before\.x is int32 .* is now string"):
        schema_change(text, change_log_schema(orders(column("id", "int"), column("x", "varchar", length=5))))
    change = schema_change(text, change_log_schema(orders(column("id", "int"), column("x", "bigint"))))
    assert [path for path, _ in change.widened] == [("before", "x"), ("after", "x")]


@pytest.mark.parametrize(("integer", "digits"), [("tinyint", 10), ("smallint", 10), ("int", 10), ("bigint", 20)])
def test_integer_is_widened_to_a_decimal_that_holds_its_digits(integer: str, digits: int):
    text = delta_schema_text(change_log_schema(orders(column("id", "int"), column("x", integer))))
    wide = column("x", "decimal", precision=digits + 2, scale=2)
    assert schema_change(text, change_log_schema(orders(column("id", "int"), wide))).widened
    narrow = column("x", "decimal", precision=digits + 1, scale=2)
    with pytest.raises(SchemaError, match="cannot widen"):
        schema_change(text, change_log_schema(orders(column("id", "int"), narrow)))


def test_delta_schema_text_and_arrow_schema_are_equivalent(tmp_path: Path):
    schema = change_log_schema(orders())
    assert arrow_of(delta_schema_text(schema)) == schema


def test_names_that_need_column_mapping_need_spark(tmp_path: Path):
    with pytest.raises(StorageError, match="Spark"):
        create_table(str(tmp_path / "t"), pa.schema([("a b", pa.int32())]), owner="mssql_cdc:x", properties={})


def test_replaced_or_rolled_back_table_is_detected(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    verify_untouched(state, table_id=None, delta_version=None)
    with pytest.raises(TamperedTableError, match="was replaced"):
        verify_untouched(state, table_id="another", delta_version=1)
    with pytest.raises(TamperedTableError, match="went back"):
        verify_untouched(state, table_id=state.table_id, delta_version=9)


def test_checkpoints_do_not_hide_the_progress(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in range(1, 56):
        state = commit(state, [], {"to": lsn(number).text})
    assert (Path(home.changes) / "_delta_log" / "_last_checkpoint").exists()
    assert refresh(state).batch == change_log(home, schema).batch == 55
