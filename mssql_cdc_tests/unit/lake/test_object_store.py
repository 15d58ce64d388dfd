"""A table's folder as an object store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.store_options import StoreOptions, split_options

if TYPE_CHECKING:
    from obstore.store import RetryConfig

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
    options = split_options(S3)
    assert options.client == {"allow_http": "true", "timeout": "30s"}
    assert sorted(options.store) == ["aws_access_key_id", "aws_endpoint_url", "aws_region", "aws_secret_access_key"]


OF_DELTALAKE = {
    "AWS_FORCE_CREDENTIAL_LOAD": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
    "OBJECT_STORE_CONCURRENCY_LIMIT": "8",
    "MOUNT_ALLOW_UNSAFE_RENAME": "true",
    "AWS_S3_LOCKING_PROVIDER": "dynamodb",
    "max_retries": "3",
    "retry_timeout": "10s",
    "backoff_config.init_backoff": "100ms",
    "backoff_config.max_backoff": "1m 30s",
    "BACKOFF_CONFIG.BASE": "1.5",
}


def test_options_that_only_deltalake_knows_are_taken():
    """Each of them ended every command: whoever needed one for deltalake could not use the lake."""
    Folder("s3://bucket/path", Storage(S3 | OF_DELTALAKE))
    retry: RetryConfig = {
        "max_retries": 3,
        "retry_timeout": timedelta(seconds=10),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=90), "base": 1.5},
    }
    assert split_options(OF_DELTALAKE) == StoreOptions({}, {}, retry)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("AWS_IAM_ROLE_ARN", "arn:aws:iam::1:role/x", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("retry_timeout", "soon", "such as 500ms"),
        ("max_retries", "many", "many"),
    ],
)
def test_an_option_that_cannot_be_followed_is_named(option: str, value: str, said: str):
    with pytest.raises(StorageError, match=rf"delta\.storage\.{option}: .*{said}"):
        Folder("s3://bucket/path", Storage({option: value}))


def test_an_unknown_option_is_named():
    with pytest.raises(StorageError, match="nonsense"):
        Folder("s3://bucket/path", Storage({"nonsense": "1"}))


def test_a_folder_that_cannot_be_read_is_a_storage_error(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be reached"):
        Folder(str(tmp_path / "file" / "below"))
