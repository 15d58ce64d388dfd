"""A table's folder as an object store, with what a Delta log needs: listing, reading, and put-if-absent.

Data files go through `lake/storage.py`'s file systems, which have no put-if-absent.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, UnknownConfigurationKeyError
from obstore.store import LocalStore, ObjectStore, from_url

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.storage import LOCAL, Storage, local_path, unreachable
from mssql_cdc.lake.store_options import split_options


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
        """A stamp that distinguishes the object from a later one at the same path; None when there is no object."""
        with _failures(self._uri):
            try:
                found = obstore.head(self._store, path)
            except FileNotFoundError:
                return None
            return f"{found['e_tag']} {found['size']} {found['last_modified'].isoformat()}"

    def put(self, path: str, content: bytes) -> None:
        """Write an object with this content atomically, replacing any existing one."""
        with _failures(self._uri):
            obstore.put(self._store, path, content)

    def put_new(self, path: str, content: bytes) -> bool:
        """Create an object with this content atomically; False if it already exists."""
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
    options = split_options(storage.resolved() or {})
    return from_url(  # type: ignore[call-overload]
        uri,
        config=options.store,  # type: ignore[arg-type]
        client_options=options.client,  # type: ignore[arg-type]
        retry_config=options.retry,
    )
