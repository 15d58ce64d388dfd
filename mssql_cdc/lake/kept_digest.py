"""The digest of `_offsets`, kept next to the table, so that a new process folds only the rows added since (rule A5).

It is a copy of what the rows amount to, and can be deleted at any time. It is used only if the log of the table still
has the commit at which it was made, only appends since, and as many rows as were written (`SmallTable.read`), and if
the code that folds rows is the same.
"""

from __future__ import annotations

import hashlib
import inspect
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from pydantic import TypeAdapter, ValidationError

from mssql_cdc.errors import StorageError
from mssql_cdc.lake import offset_digest, offset_entries, offset_rows, steps
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.offset_digest import Digest
from mssql_cdc.lake.small_tables import ReadAt
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.lake.storage import LOCAL, Storage

KEEP_EVERY = 256
"""It is kept once per this many rows: with 300 tables it has 0.5 MB, and writing it took 3 ms of CPU (2026-11-27)."""
MOST_BYTES = 32 * 1024 * 1024
"""A larger digest, such as thousands of snapshots produce, is not kept: each start would parse it."""
_PATH = "_digest.json"


def _code() -> str | None:
    """A hash of the code that folds rows: another version of the code may come to other results.

    None: the package has no source files, and nothing is kept.
    """
    modules = (offset_digest, offset_entries, offset_rows, steps)
    try:
        return hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()
    except OSError:
        return None


_CODE = _code()
"""As it was imported: an upgrade may replace the files under a running process."""


@dataclass(frozen=True, slots=True)
class KeptDigest:
    """A digest, and the commit of the table at which it was made.

    Mappings whose keys JSON cannot represent are lists here.
    """

    code: str
    at: ReadAt
    digest: Digest
    furthest: tuple[tuple[str, int, str], ...]
    ended: tuple[tuple[int | str, int, SnapshotEnded], ...]


def keep_digest(uri: str, digest: Digest, at: ReadAt, storage: Storage = LOCAL) -> None:
    """Keep a digest in place of the previous one; if the store refuses it, nothing is lost.

    Args:
        uri: The folder of `_offsets`.
        digest: What its rows amount to.
        at: The last commit whose rows it includes.
        storage: How to reach the folder.
    """
    if _CODE is None:
        return
    kept = KeptDigest(
        _CODE,
        at,
        replace(digest, furthest={}, ended={}),
        tuple((name, epoch, to) for (name, epoch), to in digest.furthest.items()),
        tuple((one, number, facts) for one, (number, facts) in digest.ended.items()),
    )
    content = _adapter().dump_json(kept)
    if len(content) > MOST_BYTES:
        return
    with suppress(StorageError):
        Folder(uri, storage).put(_PATH, content)


def load_digest(uri: str, storage: Storage = LOCAL) -> tuple[Digest, ReadAt] | None:
    """Return the kept digest, and the commit at which it was made; None if there is none that this code can use.

    Args:
        uri: The folder of `_offsets`.
        storage: How to reach the folder.
    """
    content = Folder(uri, storage).read(_PATH) if _CODE is not None else None
    if content is None:
        return None
    try:
        kept = _adapter().validate_json(content)
    except ValidationError:
        return None
    if kept.code != _CODE:
        return None
    furthest = {(name, epoch): to for name, epoch, to in kept.furthest}
    ended = {one: (number, facts) for one, number, facts in kept.ended}
    return replace(kept.digest, furthest=furthest, ended=ended), kept.at


@cache
def _adapter() -> TypeAdapter[KeptDigest]:
    return TypeAdapter(KeptDigest)
