"""Deletion vectors in Delta's format."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pa_fs
import pytest
from deltalake.fs import DeltaStorageHandler
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.vectors import Vector, read_vector, write_vectors, z85_decode, z85_encode


@pytest.fixture
def folder(tmp_path: Path) -> pa_fs.FileSystem:
    return file_system(str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> pa_fs.FileSystem:
    """The folder as `deltalake` opens an object store."""
    return pa_fs.PyFileSystem(DeltaStorageHandler(tmp_path.as_uri()))


@given(st.binary(max_size=400).map(lambda data: data + bytes(-len(data) % 4)))
def test_z85_decodes_what_it_encoded(data: bytes):
    assert z85_decode(z85_encode(data)) == data


def test_z85_is_that_of_the_specification():
    assert z85_encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


@pytest.mark.parametrize("text", ["abcd", "ab cd", "#####"])
def test_text_that_is_not_z85_is_a_storage_error(text: str):
    with pytest.raises(StorageError, match="not Z85"):
        z85_decode(text)


def test_the_vector_of_the_protocols_example_is_read(folder: pa_fs.FileSystem):
    """The inline example of Delta's protocol: rows 3, 4, 7, 11, 18 and 29 are deleted."""
    found = Vector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
    assert list(read_vector(found, folder)) == [3, 4, 7, 11, 18, 29]


def test_the_vectors_of_a_commit_share_a_file(folder: pa_fs.FileSystem, tmp_path: Path):
    bitmaps = [BitMap64([1, 5, 2**33]), BitMap64(range(0, 200_000, 7)), BitMap64(range(1, 90_000, 3)), BitMap64([0])]
    vectors = write_vectors(bitmaps, folder)
    assert [path.name for path in tmp_path.iterdir()] == [vectors[0].path]
    assert len({vector.path for vector in vectors}) == 1
    assert [vector.cardinality for vector in vectors] == [len(bitmap) for bitmap in bitmaps]
    assert [read_vector(Vector.from_action(vector.to_action()), folder) for vector in vectors] == bitmaps
    assert len({vector.identity for vector in vectors}) == 4


@pytest.mark.parametrize("rows", [2, 300_000])
def test_vectors_are_written_to_an_object_store(store: pa_fs.FileSystem, rows: int):
    bitmaps = [BitMap64(range(0, 7 * rows, 7)), BitMap64([0, 2**33])]
    vectors = write_vectors(bitmaps, store)
    assert [read_vector(vector, store) for vector in vectors] == bitmaps


def test_no_vectors_make_no_file(folder: pa_fs.FileSystem, tmp_path: Path):
    assert write_vectors([], folder) == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_a_vector_has_no_deleted_rows(folder: pa_fs.FileSystem):
    assert not read_vector(None, folder)


def test_a_damaged_vector_file_is_a_storage_error(folder: pa_fs.FileSystem, tmp_path: Path):
    (vector,) = write_vectors([BitMap64(range(0, 200_000, 7))], folder)
    file = tmp_path / vector.path
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        read_vector(vector, folder)


def test_a_vector_of_another_folder_is_a_storage_error(folder: pa_fs.FileSystem):
    with pytest.raises(StorageError, match="folder"):
        read_vector(Vector("p", "s3://other/deletion_vector.bin", 40, 6, 1), folder)
