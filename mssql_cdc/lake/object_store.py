"""The folder of a table as an object store, for what a Delta log needs: listing, reading, and putting if absent.

Data files go through `lake/storage.py`'s file systems, which cannot put if absent.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, UnknownConfigurationKeyError
from obstore.store import LocalStore, ObjectStore, from_url

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.storage import LOCAL, Storage, local_path, unreachable

_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "timeout",
    "user_agent",
}
_OF_DELTALAKE = ("delta_dynamo", "aws_s3_locking_provider", "aws_s3_allow_unsafe_rename", "allow_unsafe_rename")


class Folder:
    """One folder; paths are relative to it."""

    def __init__(self, uri: str, storage: Storage = LOCAL) -> None:
        self._uri = uri
        with _failures(uri):
            self._store = _store(uri, storage)

    def names(self, folder: str) -> list[str]:
        """The paths of all objects below `folder`."""
        with _failures(self._uri):
            return [found["path"] for page in obstore.list(self._store, prefix=folder) for found in page]

    def read(self, path: str) -> bytes | None:
        """The content of an object; None when there is none."""
        with _failures(self._uri):
            try:
                return bytes(obstore.get(self._store, path).bytes())
            except FileNotFoundError:
                return None

    def stamp(self, path: str) -> str | None:
        """What distinguishes the object from a later one at the same path; None when there is none."""
        with _failures(self._uri):
            try:
                found = obstore.head(self._store, path)
            except FileNotFoundError:
                return None
            return f"{found['e_tag']} {found['size']} {found['last_modified'].isoformat()}"

    def put(self, path: str, content: bytes) -> None:
        """Write the object with this content, atomically, over the one of before."""
        with _failures(self._uri):
            obstore.put(self._store, path, content)

    def put_new(self, path: str, content: bytes) -> bool:
        """Create the object with this content, atomically; False when it exists already."""
        with _failures(self._uri):
            try:
                obstore.put(self._store, path, content, mode="create")
            except AlreadyExistsError:
                return False
            return True


@contextmanager
def _failures(uri: str) -> Generator[None]:
    try:
        yield
    except UnknownConfigurationKeyError as error:
        said = str(error).partition("\n")[0]
        raise StorageError(f"delta.storage has an option that the store of {uri} does not know: {said}") from error
    except (BaseError, OSError) as error:
        raise unreachable(uri, error) from error


def _store(uri: str, storage: Storage) -> ObjectStore:
    local = local_path(uri)
    if local is not None:
        return LocalStore(local.absolute(), mkdir=True)
    config, client = split_options(storage.resolved() or {})
    return from_url(uri, config=config, client_options=client)  # type: ignore[arg-type]


def split_options(options: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split deltalake's storage options into those of the store and those of its HTTP client.

    deltalake takes both in one mapping, in any case, with options of its own that mean nothing here.
    """
    lower = {name.lower(): value for name, value in options.items()}
    plain = {name.removeprefix("aws_") if name == "aws_allow_http" else name: value for name, value in lower.items()}
    client = {name: value for name, value in plain.items() if name in _CLIENT_OPTIONS}
    config = {n: v for n, v in plain.items() if n not in _CLIENT_OPTIONS and not n.startswith(_OF_DELTALAKE)}
    return config, client
