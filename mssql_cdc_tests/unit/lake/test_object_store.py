"""A table's folder as an object store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.object_store import Folder, split_options
from mssql_cdc.lake.storage import Storage

S3 = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "eu-central-1",
    "AWS_ENDPOINT_URL": "http://localhost:9000",
    "AWS_ALLOW_HTTP": "true",
    "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    "timeout": "30s",
}


def test_put_new_creates_an_object_once(tmp_path: Path):
    folder = Folder(str(tmp_path / "ü $ x" / "new"))
    assert folder.read("_delta_log/0.json") is None
    assert folder.put_new("_delta_log/0.json", b"first")
    assert not folder.put_new("_delta_log/0.json", b"second")
    assert folder.read("_delta_log/0.json") == b"first"
    assert folder.names("_delta_log") == ["_delta_log/0.json"]


def test_of_many_who_put_the_same_object_one_succeeds(tmp_path: Path):
    folder = Folder(str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: folder.put_new("a/0.json", str(number).encode() * 10_000), range(40)))
    assert sum(done) == 1
    assert folder.read("a/0.json") == str(done.index(True)).encode() * 10_000


@pytest.mark.parametrize(
    ("uri", "options"),
    [("s3://bucket/path", S3), ("abfss://c@account.dfs.core.windows.net/path", {"azure_storage_account_key": "YWJj"})],
)
def test_deltalakes_options_open_the_store(uri: str, options: dict[str, str]):
    Folder(uri, Storage(options))


def test_options_are_split_into_the_stores_and_the_clients():
    config, client = split_options(S3)
    assert client == {"allow_http": "true", "timeout": "30s"}
    assert sorted(config) == ["aws_access_key_id", "aws_endpoint_url", "aws_region", "aws_secret_access_key"]


def test_an_unknown_option_is_named():
    with pytest.raises(StorageError, match="nonsense"):
        Folder("s3://bucket/path", Storage({"nonsense": "1"}))


def test_a_folder_that_cannot_be_read_is_a_storage_error(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be reached"):
        Folder(str(tmp_path / "file" / "below"))
