"""What the log of a table tells of its rows, and when it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current import CurrentRequest, CurrentResult
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.table_log import TableLog, load_log
from mssql_cdc.lake.vectors import Vector
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, orders
from mssql_cdc_tests.unit.lake.test_current_tables import _commit, grown, newest, tables


def log_of(*files: LiveFile) -> TableLog:
    return TableLog("t", 0, {}, {}, {file.identity: file for file in files}, {}, {})


def file_of(path: str, rows: int | None, *, deleted: int = 0) -> LiveFile:
    stats = json.dumps({} if rows is None else {"numRecords": rows})
    vector = Vector.from_action(
        {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 9, "cardinality": deleted}
    )
    return LiveFile(path, stats, vector if deleted else None, {"size": 1})


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ([], 0),
        ([file_of("a", 5), file_of("b", 7)], 12),
        ([file_of("a", 5, deleted=2)], 3),
        ([file_of("a", 5), file_of("b", None)], None),
        ([file_of("a", 5), LiveFile("b", None, None, {"size": 1})], None),
    ],
    ids=["empty", "files", "deletion vector", "without the number", "without statistics"],
)
def test_rows_are_counted_only_where_each_file_tells(files: list[LiveFile], rows: int | None):
    assert log_of(*files).counted == rows


def test_rows_of_a_log_that_cannot_be_read_are_not_counted():
    assert replace(log_of(), unreadable="checkpoints of the second kind").counted is None


def move_to_sidecar(log: Path, version: int) -> None:
    """Move the files of a checkpoint of the second kind, which deltalake writes in one piece, to a sidecar."""
    (log / "_last_checkpoint").unlink()
    path = log / f"{version:020}.checkpoint.parquet"
    found = pq.read_table(path)
    adds = pc.is_valid(found.column("add"))
    other = log / "_sidecars" / "a.parquet"
    other.parent.mkdir()
    pq.write_table(found.filter(adds).select(["add"]), other)
    told = {"path": other.name, "sizeInBytes": other.stat().st_size, "modificationTime": 0, "tags": None}
    kept = found.filter(pc.invert(adds))
    row = pa.table([pa.array([told if name == "sidecar" else None], kept.schema.field(name).type)
                    for name in kept.schema.names], schema=kept.schema)  # fmt: skip
    pq.write_table(pa.concat_tables([kept, row]), path)


@pytest.mark.parametrize("sidecar", [True, False])
def test_a_checkpoint_whose_files_are_in_sidecars_is_not_read_as_a_whole_one(tmp_path: Path, *, sidecar: bool):
    home = home_in(tmp_path)
    grown(home)
    before = newest(home)
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
    _commit(home, [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}])
    checkpoint(home.current)
    log = Path(home.current, "_delta_log")
    for path in log.glob("*.json"):
        path.unlink()
    if sidecar:
        move_to_sidecar(log, before.version + 1)
    found = load_log(home.current)
    assert found is not None
    assert (found.table_id, found.version) == (before.table_id, before.version + 1)
    assert found.unreadable == ("the table has checkpoints of the second kind" if sidecar else None)
    assert found.files.keys() == (set() if sidecar else before.files.keys())


def test_of_a_log_that_cannot_be_read_partitions_and_the_time_of_the_newest_commit_are_known(tmp_path: Path):
    home = home_in(tmp_path)
    schema = orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after={"id": 1, "name": "a", "note": None}))
    layout = DataLayout(partition_by=("name",))
    (result,) = tables().apply_all([CurrentRequest(home, [schema], state.batch, layout=layout)])
    assert isinstance(result, CurrentResult)
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    _commit(
        home, [{"commitInfo": {"timestamp": 1_790_000_000_000, "operation": "ADD FEATURE"}}, {"protocol": protocol}]
    )
    readable = newest(home)
    checkpoint(home.current)
    move_to_sidecar(Path(home.current, "_delta_log"), readable.version)
    found = newest(home)
    assert found.unreadable
    assert found.partition_by == readable.partition_by == ("name",)
    assert found.committed == readable.committed
    assert (found.properties, found.table_id) == (readable.properties, readable.table_id)
