"""Warehouse folders: local paths, warnings about storage without atomic commits (rule A10)."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mssql_cdc.config import Secret
from mssql_cdc.lake.storage import LOCAL, Storage, file_system, local_path, storage_warning


def test_local_folders_are_paths_and_file_uris():
    assert local_path("/lake/a b") == Path("/lake/a b")
    assert local_path("file:///lake/a%20b") == Path("/lake/a b")
    assert local_path("abfss://c@a.dfs.core.windows.net/x") is None


def test_file_system_begins_at_the_folder_and_creates_it(tmp_path: Path):
    system = file_system(str(tmp_path / "x" / "y"))
    with system.open_output_stream("f") as sink:
        sink.write(b"1")
    assert (tmp_path / "x" / "y" / "f").read_bytes() == b"1"


def test_secrets_are_resolved_only_when_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KEY", "secret")
    storage = pickle.loads(pickle.dumps(Storage({"account_key": Secret("${env:KEY}")})))  # noqa: S301 (as a task)
    assert "secret" not in repr(storage)
    assert storage.resolved() == {"account_key": "secret"}
    assert LOCAL.resolved() is None


@pytest.mark.parametrize("uri", ["s3://bucket/lake", "s3a://bucket/lake", "//server/share", r"\\server\share"])
def test_storage_without_atomic_commits_causes_a_warning(uri: str):
    assert uri in (storage_warning(uri) or "")


def test_advice_for_s3_holds_for_every_writer_of_the_connector():
    """Delta's multi-cluster LogStore locks among its own users, of which `deltalake`, which commits ranges, is none."""
    warning = storage_warning("s3://bucket/lake")
    assert warning is not None
    assert "LogStore" not in warning
    assert "stop capture before `mssql-cdc maintain`" in warning


@pytest.mark.parametrize("uri", ["/lake", "file:///lake", "abfss://c@a/x", "gs://bucket/x", "hdfs://n/x"])
def test_storage_with_atomic_commits_causes_no_warning(uri: str):
    assert storage_warning(uri) is None
