"""Data files: how few rows are stored, what a folder that cannot be written to says."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.files import DICTIONARY_ROWS, FileTarget, write_files


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may have more than 50 kB: as when the disk is full, but for the reason."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_names_the_folder_and_the_reason(tmp_path: Path, small_files: None):
    batch = pa.RecordBatch.from_pydict({"note": [os.urandom(100).hex() for _ in range(5_000)]})
    with pytest.raises(StorageError) as caught:
        write_files([batch], FileTarget(str(tmp_path / "t")))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 't'} cannot be written to: File too large. Nothing was committed.")


@pytest.mark.parametrize("rows", [100, DICTIONARY_ROWS - 1, DICTIONARY_ROWS])
def test_a_file_of_few_rows_has_no_dictionaries(tmp_path: Path, rows: int):
    batch = pa.RecordBatch.from_pydict({"note": [f"note {number % 7}" for number in range(rows)]})
    (file,) = write_files([batch], FileTarget(str(tmp_path)))
    facts = pq.read_metadata(tmp_path / file.path).row_group(0).column(0)
    assert facts.has_dictionary_page is (rows >= DICTIONARY_ROWS)
    assert pq.read_table(tmp_path / file.path).column(0).to_pylist() == batch.column(0).to_pylist()


def test_only_columns_whose_values_repeat_have_dictionaries(tmp_path: Path):
    rows = [
        {"id": number, "status": f"status {number % 3}", "image": {"id": number, "kind": number % 2, "note": None}}
        for number in range(DICTIONARY_ROWS)
    ]
    batch = pa.RecordBatch.from_pylist(rows)
    (file,) = write_files([batch], FileTarget(str(tmp_path)))
    group = pq.read_metadata(tmp_path / file.path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert [one.path_in_schema for one in columns if one.has_dictionary_page] == ["status", "image.kind"]
    assert pq.read_table(tmp_path / file.path).to_pylist() == rows


def test_a_folder_that_cannot_be_made_names_it(tmp_path: Path):
    (tmp_path / "t").write_text("a file in its place")
    batch = pa.RecordBatch.from_pydict({"note": ["one"]})
    with pytest.raises(StorageError, match=r"/t cannot be written to: File exists"):
        write_files([batch], FileTarget(str(tmp_path / "t")))
