"""What the log of a table tells of its rows, and when it does not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lake.vectors import Vector


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
