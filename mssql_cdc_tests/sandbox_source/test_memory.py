"""A task's memory is bounded by bytes, not by rows: documents of 100 KB, together more than a task may take.

Nor does it grow with the rows of a transaction, or with the commits of other tables.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.capture.write_task import WriteTask
from mssql_cdc.lake.files import FileTarget
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.snapshot_reader import ChunkReader
from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop

pytestmark = pytest.mark.slow

DOCUMENTS = 2_500
SIZE = 100_000
MANY = 360_000
MANY_MIB = 40
"""What the larger of two transactions may take beside the smaller one; the keys of 240,000 rows alone took 90."""
MOST_MIB = 256
"""What a task may take beside what a Python process with its libraries takes."""


@pytest.fixture(scope="module")
def documents(server: dict[str, object]) -> Iterator[Shop]:
    """A table of documents of 250 MB (500 MB as they are sent), written by one transaction and captured."""
    with open_shop(server) as shop:
        # By default CDC captures no value of more than 64 KB.
        shop.run("EXEC sp_configure 'max text repl size (B)', -1", "RECONFIGURE")
        shop.create("documents", "id int NOT NULL PRIMARY KEY, body varchar(max) NULL")
        shop.run(
            "INSERT dbo.documents SELECT value, REPLICATE(CAST(CONCAT(value, ' ') AS varchar(max)), "
            f"{SIZE} / LEN(CONCAT(value, 'x'))) FROM GENERATE_SERIES(1, {DOCUMENTS})"
        )
        shop.scan()
        yield shop


@pytest.mark.long
@pytest.mark.parametrize("kind", ["changes", "chunk"])
def test_documents_of_more_than_the_limit_are_written_within_it(kind: str, documents: Shop, tmp_path: Path) -> None:
    """Review, 5.6: a page of 100,000 documents of 100 KB was one list in memory; without the bounds, this one is."""
    reader = documents.changes("documents") if kind == "changes" else documents.chunk("documents")
    found = measured(documents, reader, tmp_path)
    assert found["rows"] == DOCUMENTS
    assert found["grown_mib"] < MOST_MIB


@pytest.mark.long
def test_a_huge_transaction_by_function_is_watched_within_the_memory_of_a_small_one(shop: Shop, tmp_path: Path) -> None:
    """Audit of issue 10, 3b: the guard of the order kept every key, 397 MiB for a million."""
    shop.create("many", "id int NOT NULL PRIMARY KEY")
    grown: list[float] = []
    for number, rows in enumerate((MANY // 3, MANY)):
        start = shop.scan()
        shop.run(f"INSERT dbo.many SELECT value + {number * MANY} FROM GENERATE_SERIES(1, {rows})")
        reader = shop.changes("many", from_=start)
        found = measured(shop, replace(reader, instance=replace(reader.instance, change_table=None)), tmp_path)
        assert found["rows"] == rows
        grown.append(found["grown_mib"])
    assert grown[1] < grown[0] + MANY_MIB


def measured(shop: Shop, reader: ChangeReader | ChunkReader, folder: Path) -> dict[str, float]:
    """The rows that a task writes in a process of its own, and by how many MiB the process grows."""
    schema = reader.instance.schema if isinstance(reader, ChangeReader) else reader.wanted.schema
    task = WriteTask(reader, schema, FileTarget(str(folder / "files")), 1, shop.connector)
    pickled = folder / "task"
    pickled.write_bytes(pickle.dumps(task))
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc_tests.sandbox_source.measured_task", str(pickled)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)
