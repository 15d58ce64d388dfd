"""Access to a folder of the warehouse, local or remote: options, file systems, existence.

Secrets stay references until they are used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlparse

import pyarrow.fs as pa_fs

from mssql_cdc.config import Secret, reveal
from mssql_cdc.errors import StorageError


@dataclass(frozen=True, slots=True)
class Storage:
    """Options of the object store.

    Instances travel to Spark workers, which resolve the secrets there: no secret is ever part of a plan.
    """

    options: Mapping[str, str | Secret] = field(default_factory=dict[str, str | Secret])

    def resolved(self) -> dict[str, str] | None:
        """The options as `deltalake` expects them."""
        return {name: reveal(value) for name, value in self.options.items()} or None


LOCAL = Storage()
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|↳")


def storage_warning(uri: str) -> str | None:
    """Return the external precondition for atomic commits; None if the storage itself guarantees them (A10)."""
    scheme = urlparse(uri).scheme.lower()
    if scheme in {"s3", "s3a", "s3n"}:
        return (
            f"{uri}: Spark commits to S3 safely from one driver only, and can replace what another writer has just "
            "committed. Run one connector per warehouse and nothing else that writes there, and stop capture before "
            "`mssql-cdc maintain`"
        )
    if uri.startswith(("//", "\\\\")) or scheme in {"smb", "nfs"}:
        return f"{uri}: a shared folder may not create files atomically; use a local disk or an object store"
    return None


def local_path(uri: str) -> Path | None:
    """The path of a local folder, given as a path or `file:` URI; None for anything remote."""
    if uri[:5].lower() == "file:":
        return Path(unquote(urlparse(uri).path))
    return None if "://" in uri else Path(uri)


def _causes(text: str) -> list[str]:
    """The lines of a deltalake error, each the cause of the one before, without colors and arrows."""
    lines = (_DECORATION.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line] or [text]


def unwritable(uri: str, error: OSError) -> StorageError:
    """The error for a folder that is read-only or on a full disk, or whose name is taken by a file."""
    said = _causes(error.strerror or str(error))[-1].rpartition("] ")[2]
    return StorageError(
        f"{uri} cannot be written to: {said}. Nothing was committed. Free space, or correct the rights of the folder, "
        "and run again"
    )


def unreachable(uri: str, error: Exception) -> StorageError:
    """The error for a store that does not answer, or refuses the login."""
    said = _causes(str(error))[0]
    return StorageError(
        f"{uri} cannot be reached: {said}. Check delta.warehouse and the object store's options, delta.storage.*"
    )


def file_system(uri: str, storage: Storage = LOCAL) -> pa_fs.FileSystem:
    """A file system whose root is the folder `uri`; creates the folder where folders exist.

    Raises:
        StorageError: the folder cannot be created.
    """
    local = local_path(uri)
    if local is not None:
        try:
            local.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(uri, error) from error
        return pa_fs.SubTreeFileSystem(str(local), pa_fs.LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler

    return pa_fs.PyFileSystem(DeltaStorageHandler(uri, options=storage.resolved()))


def write_bytes(system: pa_fs.FileSystem, path: str, content: bytes) -> None:
    """Write a file with this content.

    Args:
        system: A folder, local or in an object store.
        path: The file in it.
        content: All bytes.
    """
    # An object store's stream accepts only `bytes` (deltalake 1.6.6). pyarrow passes it those of an intermediate buffer
    # if that is larger than what is written, and otherwise an object of its own.
    with cast("Any", system).open_output_stream(path, buffer_size=len(content) + 1) as sink:
        sink.write(content)
