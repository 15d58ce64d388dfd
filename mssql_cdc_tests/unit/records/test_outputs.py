"""Outputs remember how far they have come: a later run goes on there, a killed one loses and doubles nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.errors import ConfigurationError, FencedError, StorageError
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc.records import Selection, database_records, open_output, pieces, write_records
from mssql_cdc.records.delta_output import DeltaOutput
from mssql_cdc.records.outputs import Output, OutputBatch, begin
from mssql_cdc.records.state import StreamState
from mssql_cdc.schema import TableSchema
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

WITH_TRANSACTIONS = {"provide.transaction.metadata": True, "heartbeat.interval.ms": 60_000}
SNAPSHOT = "snapshot-20260102T030405"
KINDS = ["file", "delta"]


def begun(folder: Path, **properties: object) -> tuple[Lake, dict[str, TableSchema]]:
    """A lake with tables a and b after an initial snapshot."""
    lake = Lake(folder, {**WITH_TRANSACTIONS, **properties})
    schemas = {name: lake.add(table(name)) for name in ("a", "b")}
    for schema in schemas.values():
        lake.append(schema, *(Change(1, "r", after={"id": key}, sequence=key) for key in (1, 2, 3)))
    lake.cut(1, kind="snapshot", partition=SNAPSHOT, facts=SnapshotBegun(snapshot=SNAPSHOT, number=1))
    return lake, schemas


def go_on(lake: Lake, schemas: dict[str, TableSchema], first: int, last: int) -> None:
    """Change both tables in every commit from `first` to `last`."""
    for schema in schemas.values():
        changes = [
            change
            for at in range(first, last + 1)
            for change in (
                Change(at, "c", after={"id": 10 * at}),
                Change(at, "u", {"id": 10 * at}, {"id": 10 * at + 1}, sequence=2),
                Change(at, "d", {"id": 10 * at + 1}, sequence=3),
            )
        ]
        lake.append(schema, *changes)
    lake.cut(last, minutes=last)


def target(kind: str, folder: Path) -> str:
    """The name of an output."""
    return f"delta:{folder / 'records'}" if kind == "delta" else str(folder / "records.jsonl")


def written(kind: str, folder: Path) -> list[dict[str, Any]]:
    """The records that an output holds, in order."""
    if kind == "file":
        return [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = sorted(read_table(str(folder / "records")).to_pylist(), key=lambda row: row["number"])
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert {row["database"] for row in rows} == {DATABASE}
    texts = {"key": "key", "value": "value", "headers": "headers"}
    texts |= {"source_partition": "sourcePartition", "source_offset": "sourceOffset"}
    return [
        {"topic": row["topic"], "partition": row["partition"]}
        | {name: None if row[column] is None else json.loads(row[column]) for column, name in texts.items()}
        for row in rows
    ]


def run(lake: Lake, name: str, **selected: Any) -> int:
    """What the command `records` does."""
    with open_output(name, lake.connector) as output:
        return write_records(lake.connector, output=output, selection=Selection(**selected))


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_run_goes_on_where_the_output_ends(tmp_path: Path, kind: str):
    lake, schemas = begun(tmp_path)
    counts = []
    for first in (2, 4, 6):
        go_on(lake, schemas, first, first + 1)
        counts.append(run(lake, target(kind, tmp_path)))
    assert run(lake, target(kind, tmp_path)) == 0
    assert all(counts)
    assert written(kind, tmp_path) == lake.records()
    assert sum(counts) == len(lake.records())


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_of_one_key_does_not_read_again_what_has_no_record_of_it(tmp_path: Path, kind: str):
    """Its next run read everything since its last record."""
    lake, schemas = begun(tmp_path, **{"include.schema.changes": False})
    name, wanted = target(kind, tmp_path), {"tables": ("dbo.a",), "key": '{"id": 31}'}
    for first, count in ((2, 3), (4, 0), (6, 0)):
        go_on(lake, schemas, first, first + 1)
        assert run(lake, name, **wanted) == count
        assert run(lake, name, **wanted) == 0
        with open_output(name, lake.connector) as output:
            assert output.kept is not None
            assert output.kept.databases[DATABASE].position[:25] == f"0000-{lsn(first + 1).raw.hex()}"
    if kind == "delta":
        assert DeltaTable(str(tmp_path / "records")).version() == 3, "runs without anything new make no commit"


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_after_the_end_of_the_output_is_written_by_the_next_run(tmp_path: Path, kind: str):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 5)
    run(lake, target(kind, tmp_path))
    lake.append(schemas["a"], Change(3, "r", after={"id": 99}), snapshot="repair:1")
    lake.cut(5, minutes=9)
    run(lake, target(kind, tmp_path))
    assert [one["key"] for one in written(kind, tmp_path) if one["topic"].endswith(".a")][-1] == {"id": 99}


def run_once(lake: Lake, name: str) -> int:
    """What a run writes that ends behind its first records."""
    with open_output(name, lake.connector) as output:
        progress = begin(output, lake.connector.topic_prefix, Selection().of_records)
        for one in database_records(lake.connector, DATABASE, state=progress.databases.get(DATABASE)):
            progress = progress.at(DATABASE, one.state)
            output.write(OutputBatch(DATABASE, one.records, progress))
            if one.records.num_rows:
                return one.records.num_rows
    return 0


def failed(lake: Lake, name: str) -> tuple[Output, dict[Path, bytes]]:
    """A run that fails behind its last record: its output, and the files as they stood before that."""
    left: dict[Path, bytes] = {}
    with suppress(ZeroDivisionError), open_output(name, lake.connector) as output:
        write_records(lake.connector, output=output)
        vars(output)["_file"].flush()
        left = {path: path.read_bytes() for path in (Path(name), Path(f"{name}.progress"))}
        raise ZeroDivisionError
    return output, left


def killed_before_the_end(lake: Lake, name: str) -> None:
    """What a run leaves that is killed when everything stands in the file, and nothing is kept."""
    for path, content in failed(lake, name)[1].items():
        path.write_bytes(content)


@pytest.mark.parametrize("kind", KINDS)
def test_late_changes_are_written_once_by_runs_that_end_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    lake, schemas = begun(tmp_path)
    go_on(lake, {"a": schemas["a"]}, 2, 9)
    run(lake, target(kind, tmp_path))
    monkeypatch.setattr(pieces.streamed, "__kwdefaults__", {"window_rows": 3})
    lake.append(schemas["b"], *(Change(at, "c", after={"id": at}) for at in range(2, 9)))
    lake.cut(9, minutes=10)
    assert run_once(lake, target(kind, tmp_path))
    # Meanwhile, other changes come later still: before, among and behind those that are left.
    lake.append(schemas["a"], *(Change(at, "r", after={"id": 100 + at}) for at in (2, 5, 8)), snapshot="repair:1")
    lake.append(schemas["b"], Change(9, "c", after={"id": 9}), Change(10, "c", after={"id": 10}))
    lake.cut(10, minutes=11)
    runs = 0
    while run_once(lake, target(kind, tmp_path)):
        assert (runs := runs + 1) < 20
    found = [(one["topic"].rsplit(".")[-1], one["key"]["id"]) for one in written(kind, tmp_path) if "id" in one["key"]]
    created = [key for topic, key in found if topic == "b" and key not in {1, 2, 3}]
    assert created == list(range(4, 11))
    assert found.count(("b", 2)) == found.count(("b", 3)) == 2, "read by the snapshot, and changed"
    assert sorted(key for topic, key in found if topic == "a" and key > 100) == [102, 105, 108]


def test_the_state_of_an_output_of_before_says_nothing_of_late_changes():
    state = StreamState("0000-01", batches={"a": 2}).reaching("0000-00", {"a": 3})
    assert StreamState.from_json(state.to_json()) == state
    assert state.written("a") == [("0000-01", 2), ("0000-00", 3)]
    older = {name: value for name, value in json.loads(state.to_json()).items() if name != "late"}
    assert StreamState.from_json(json.dumps(older)) == replace(state, late=())


def test_late_changes_before_an_end_leave_those_after_it_to_the_next_run(tmp_path: Path):
    lake, schemas = begun(tmp_path)
    go_on(lake, {"a": schemas["a"]}, 2, 9)
    run(lake, target("file", tmp_path))
    lake.append(schemas["b"], *(Change(at, "c", after={"id": 10 + at}) for at in range(2, 9)))
    lake.cut(9, minutes=10)
    run(lake, target("file", tmp_path), end=lsn(4).text)
    run(lake, target("file", tmp_path))
    found = [one["key"].get("id", 0) for one in written("file", tmp_path) if one["topic"].endswith(".b")]
    assert [key for key in found if key > 10] == list(range(12, 19))


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_and_a_new_version_after_the_first_run_are_written_once(tmp_path: Path, kind: str):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    run(lake, target(kind, tmp_path))
    id_column, name, note = table("a").columns
    altered = table(
        "a", id_column, replace(name, default_text="('x')"), note, capture_object_id=2, from_lsn=lsn(4).text
    )
    schemas["a"] = lake.add(altered)
    go_on(lake, schemas, 4, 5)
    lake.append(schemas["b"], Change(5, "r", after={"id": 1}, snapshot=2), snapshot="2")
    facts = SnapshotBegun(snapshot="snapshot-20260103T030405", number=2)
    lake.cut(5, kind="snapshot", partition=facts.snapshot, facts=facts, minutes=6)
    go_on(lake, schemas, 6, 7)
    run(lake, target(kind, tmp_path))
    assert written(kind, tmp_path) == lake.records()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ended", [False, True], ids=["read", "ended"])
def test_a_snapshot_without_a_cut_is_written_by_a_later_run(tmp_path: Path, kind: str, *, ended: bool):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    run(lake, target(kind, tmp_path))
    lake.cut(5)
    facts = SnapshotBegun(snapshot="snapshot-20260103T030405", number=2)
    again = {"kind": "snapshot", "partition": facts.snapshot, "facts": facts, "complete": False, "only": ["b"]}
    lake.cut(5, status="snapshot", minutes=5, **again)
    lake.append(schemas["b"], Change(5, "r", after={"id": 7}, snapshot=2), snapshot="2")
    if ended:
        lake.cut(5, minutes=6, **again)
    run(lake, target(kind, tmp_path))
    lake.cut(5, minutes=6, **again)
    lake.cut(5, minutes=7)
    run(lake, target(kind, tmp_path))
    found = written(kind, tmp_path)
    reads = [one["key"] for one in found if one["topic"].endswith(".b") and (one["value"] or {}).get("op") == "r"]
    assert reads[-1] == {"id": 7}
    assert found == lake.records()


KILLED = """
import os, signal, sys
from pathlib import Path
import mssql_cdc.records.pieces as pieces
from mssql_cdc.records import delta_output, file_output, open_output, write_records
from mssql_cdc_tests.unit.records import test_outputs as tests

kind, folder = sys.argv[1], Path(sys.argv[2])
pieces.streamed.__kwdefaults__["window_rows"] = pieces.snapshot_rows.__kwdefaults__["window_rows"] = 3
file_output.open_file.__wrapped__.__kwdefaults__["keep_bytes"] = 12000
delta_output.DeltaOutput.__init__.__kwdefaults__["keep_rows"] = 8
steps = {"left": 0}

def killed(function):
    def wrapper(*args, **kwargs):
        for moment in ("before", "after"):
            steps["left"] -= 1
            if steps["left"] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if moment == "before":
                found = function(*args, **kwargs)
        return found
    return wrapper

file_output.write_lines = killed(file_output.write_lines)
os.fsync, Path.replace = killed(os.fsync), killed(Path.replace)
delta_output.write_files, delta_output.commit = killed(delta_output.write_files), killed(delta_output.commit)
deaths = 0
while True:
    child = os.fork()
    if not child:
        steps["left"] = 1 + deaths
        tests.run(tests.Lake(folder, tests.WITH_TRANSACTIONS), tests.target(kind, folder))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    assert os.WIFSIGNALED(status) and deaths < 100
    deaths += 1
print(deaths)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path, kind: str):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 5)
    command = [sys.executable, "-c", KILLED, kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
    assert written(kind, tmp_path) == lake.records()


def test_a_file_that_was_moved_away_is_gone_on_with_in_a_new_one(tmp_path: Path):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    run(lake, target("file", tmp_path))
    first = written("file", tmp_path)
    (tmp_path / "records.jsonl").rename(tmp_path / "old.jsonl")
    go_on(lake, schemas, 4, 5)
    run(lake, target("file", tmp_path))
    assert first + written("file", tmp_path) == lake.records()


@pytest.mark.parametrize(
    ("rotation", "progress"),
    [("move", "none"), ("move", "some"), ("create", "none"), ("create", "some"), ("copytruncate", "some")],
)
def test_a_file_that_was_moved_away_after_a_killed_run_is_refused(tmp_path: Path, rotation: str, progress: str):
    """It has records that are not kept, and perhaps half a one: they would be written again."""
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    file, moved = tmp_path / "records.jsonl", tmp_path / "old.jsonl"
    if progress == "some":
        run(lake, str(file))
    go_on(lake, schemas, 4, 5)
    killed_before_the_end(lake, str(file))
    shutil.copy(file, moved)
    if rotation == "copytruncate":
        os.truncate(file, 0)
    else:
        file.rename(moved)
    if rotation == "create":
        file.touch()
    size = json.loads((tmp_path / "records.jsonl.progress").read_text())["bytes"]
    for _ in range(2):
        with pytest.raises(StorageError, match=rf"truncate -s {size} .*records\.jsonl\.progress"):
            run(lake, str(file))
    assert file.exists() == (rotation != "move")
    shutil.copy(moved, file)
    assert file.stat().st_size > size
    with open_output(str(file), lake.connector):
        pass
    assert file.stat().st_size == size
    file.rename(moved)
    before = moved.read_text(encoding="utf-8").splitlines()
    run(lake, str(file))
    assert [*map(json.loads, before), *written("file", tmp_path)] == lake.records()


def test_a_file_that_was_moved_away_and_cut_is_gone_on_with_in_a_new_one(tmp_path: Path):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    file, progress = tmp_path / "records.jsonl", tmp_path / "records.jsonl.progress"
    run(lake, str(file))
    first = written("file", tmp_path)
    go_on(lake, schemas, 4, 5)
    killed_before_the_end(lake, str(file))
    file.rename(tmp_path / "old.jsonl")
    facts = json.loads(progress.read_text())
    os.truncate(tmp_path / "old.jsonl", facts["bytes"])
    progress.write_text(json.dumps({name: value for name, value in facts.items() if name != "open"}))
    run(lake, str(file))
    assert first + written("file", tmp_path) == lake.records()


def test_a_file_may_be_moved_away_after_a_run_that_failed(tmp_path: Path):
    """It cuts off what it has not kept; a thread that writes on meets a closed file."""
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    file = tmp_path / "records.jsonl"
    run(lake, str(file))
    first = written("file", tmp_path)
    go_on(lake, schemas, 4, 5)
    output, _ = failed(lake, str(file))
    with pytest.raises(ValueError, match="closed file"):
        write_records(lake.connector, output=output)
    assert written("file", tmp_path) == first
    file.rename(tmp_path / "old.jsonl")
    run(lake, str(file))
    assert first + written("file", tmp_path) == lake.records()


@pytest.mark.parametrize("runs", [1, 3])
def test_a_run_stores_the_progress_of_a_file_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int):
    """Before its first record and behind its last one, not with every batch; a run without a record does not."""
    lake, schemas = begun(tmp_path)
    stored: list[Path] = []
    replace_file = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (stored.append(self), replace_file(self, to))[1])
    monkeypatch.setattr(pieces.streamed, "__kwdefaults__", {"window_rows": 3})
    run(lake, target("file", tmp_path))
    stored.clear()
    for first in range(2, 2 + runs):
        go_on(lake, schemas, first, first)
        run(lake, target("file", tmp_path))
        run(lake, target("file", tmp_path))
    assert len(stored) == 2 * runs


@pytest.mark.parametrize("change", ["shorter", "unknown"])
def test_a_file_that_something_else_changed_is_refused(tmp_path: Path, change: str):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    file = tmp_path / "records.jsonl"
    run(lake, str(file))
    if change == "shorter":
        os.truncate(file, file.stat().st_size - 1)
    else:
        (tmp_path / "records.jsonl.progress").unlink()
    before = file.read_bytes()
    with pytest.raises(StorageError, match=r"were written|how far its records reach"):
        run(lake, str(file))
    assert file.read_bytes() == before


def in_two_commits(folder: Path) -> tuple[Lake, dict[str, TableSchema], DeltaTable]:
    """A lake, and the Delta table of its records after two runs; a third one has something to write."""
    lake, schemas = begun(folder)
    for first in (2, 4):
        go_on(lake, schemas, first, first + 1)
        run(lake, target("delta", folder))
    go_on(lake, schemas, 6, 7)
    return lake, schemas, DeltaTable(str(folder / "records"))


@pytest.mark.parametrize("change", ["restore", "restored twice", "append"])
def test_a_delta_table_that_something_else_changed_is_refused_until_it_is_restored(tmp_path: Path, change: str):
    """RESTORE keeps the history with the progress: the records that it took back were never written again."""
    lake, _, table_ = in_two_commits(tmp_path)
    match change:
        case "append":
            write_deltalake(table_, read_table(str(tmp_path / "records")).slice(0, 1), mode="append")
        case _:
            for version in (1, 0, 1) if change == "restored twice" else (1,):
                table_.restore(version)
    with pytest.raises(StorageError, match=r"was changed by (RESTORE|WRITE) .* to version 2, or name another table"):
        run(lake, target("delta", tmp_path))
    DeltaTable(str(tmp_path / "records")).restore(2)
    run(lake, target("delta", tmp_path))
    assert written("delta", tmp_path) == lake.records()
    assert run(lake, target("delta", tmp_path)) == 0


def test_a_delta_table_that_is_restored_while_a_run_writes_is_refused(tmp_path: Path):
    lake, _, table_ = in_two_commits(tmp_path)
    late = DeltaOutput(str(tmp_path / "records"), lake.connector)
    write_records(lake.connector, output=late)
    table_.restore(1)
    with pytest.raises(FencedError):
        late.keep()
    with pytest.raises(StorageError, match="was changed by RESTORE in Delta version 3"):
        run(lake, target("delta", tmp_path))


@pytest.mark.parametrize("change", ["tidy", "delete"])
def test_a_delta_table_may_be_tidied_and_old_records_deleted(tmp_path: Path, change: str):
    lake, schemas, table_ = in_two_commits(tmp_path)
    match change:
        case "tidy":
            table_.optimize.compact()
            table_.vacuum(0, dry_run=False, enforce_retention_duration=False)
        case _:
            table_.alter.set_table_properties({"delta.appendOnly": "false"})
            table_.delete("number < 5")
    assert table_.version() > 2
    run(lake, target("delta", tmp_path))
    go_on(lake, schemas, 8, 9)
    run(lake, target("delta", tmp_path))
    rows = read_table(str(tmp_path / "records")).to_pylist()
    first = 5 if change == "delete" else 0
    assert sorted(row["number"] for row in rows) == list(range(first, len(lake.records())))


def test_two_runs_cannot_write_to_one_output(tmp_path: Path):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    with open_output(target("file", tmp_path), lake.connector), pytest.raises(StorageError, match="Another run"):
        run(lake, target("file", tmp_path))
    late = DeltaOutput(str(tmp_path / "records"), lake.connector)
    run(lake, target("delta", tmp_path))
    write_records(lake.connector, output=late)
    with pytest.raises(FencedError):
        late.keep()
    assert written("delta", tmp_path) == lake.records()


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_belongs_to_one_connector_and_selection(tmp_path: Path, kind: str):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    run(lake, target(kind, tmp_path), tables=("dbo.a",))
    run(lake, target(kind, tmp_path), tables=("dbo.a",))
    with pytest.raises(StorageError, match=r"dbo\.a"):
        run(lake, target(kind, tmp_path))
    with pytest.raises(ConfigurationError, match="continues where its records end"):
        run(lake, target(kind, tmp_path), tables=("dbo.a",), start=lsn(2).text)
    other = Lake(tmp_path, {"topic.prefix": "other"})
    with pytest.raises(StorageError, match="server1"), open_output(target(kind, tmp_path), other.connector) as output:
        write_records(other.connector, output=output)


def test_a_record_of_delta_has_the_position_of_its_change(tmp_path: Path):
    lake, schemas = begun(tmp_path)
    go_on(lake, schemas, 2, 3)
    run(lake, target("delta", tmp_path))
    rows = sorted(read_table(str(tmp_path / "records")).to_pylist(), key=lambda row: row["number"])
    changes = [row for row in rows if row["value"] and '"op":"c"' in row["value"] and row["topic"].endswith(".a")]
    assert [row["position"][5:25] for row in changes] == [lsn(at).raw.hex() for at in (2, 2, 3, 3)]
    assert pa.array([row["position"] for row in rows if row["topic"].endswith(".a")]).null_count == 0


@pytest.mark.feature("SNP-34")
def test_an_output_gets_nothing_again_of_a_change_log_that_one_look_did_not_see(tmp_path: Path):
    """Its folder is moved away for a while, or a share is not mounted; then all of its history came once more."""
    lake, schemas = begun(tmp_path / "lake", **{"include.schema.changes": False})
    go_on(lake, schemas, 2, 3)
    name = target("file", tmp_path)
    run(lake, name)
    folder, a = Path(lake.layout.home(schemas["a"].table_id).changes), schemas["a"]
    lake.append(a, Change(4, "c", after={"id": 4}))
    lake.cut(4)
    folder.rename(tmp_path / "away")
    lake.append(schemas["b"], Change(5, "c", after={"id": 5}))
    lake.cut(5)
    run(lake, name)
    (tmp_path / "away").rename(folder)
    lake.append(a, Change(6, "c", after={"id": 6}))
    lake.cut(6)
    before = len(written("file", tmp_path))
    run(lake, name)
    added = [one for one in written("file", tmp_path)[before:] if one["topic"].endswith(".a")]
    assert [one["key"] for one in added] == [{"id": 4}, {"id": 6}]
