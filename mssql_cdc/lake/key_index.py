"""An index of the keys of a large data file, so that a look-up does not read its `_key` column.

`_index/<data file>.idx` holds 16 bytes per row: 64 bits of a hash, sorted, 32 further bits, the row's number. It is a
pure cache of an immutable file: a missing or damaged one is rebuilt, and deletion vectors say which rows are live.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.fs as pa_fs
from numpy.typing import NDArray

from mssql_cdc.lake.data_file import DataFile
from mssql_cdc.lake.storage import LOCAL, Storage, file_system, local_path, write_bytes
from mssql_cdc.lake.table_log import load_log

INDEXED_ROWS = 20_000
"""Smaller files have no index."""
FOLDER = "_index"
_HEADER = struct.Struct("<8sQQ")
_MAGIC = b"mssqlidx"
_WORD = 8
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def index_path(name: str) -> str:
    """The path of a data file's index, relative to the table."""
    return f"{FOLDER}/{name}.idx"


def find(file: DataFile, keys: pa.Array, uri: str, system: pa_fs.FileSystem) -> tuple[Numbers, Numbers]:
    """The file's rows with one of these keys, ascending, and the keys' numbers; builds a missing index.

    Two different keys share all 96 bits of their hashes with a probability of 3e-15 for 200,000 keys in a table of a
    billion rows. The seed is random for each file, so that nobody can choose keys that collide.

    Args:
        file: a live file.
        keys: distinct keys.
        uri: the table's folder.
        system: the same folder as a file system.
    """
    content = _read(file, uri, system)
    if content is None:
        content = _build(file, uri, system)
    _, seed, count = _HEADER.unpack(bytes(content[: _HEADER.size]))
    places = content[_HEADER.size :]
    first = places[: 8 * count].view(np.uint64)
    second = places[8 * count : 12 * count].view(np.uint32)
    rows = places[12 * count :].view(np.uint32)
    wanted, more = key_hashes(keys, seed)
    found = np.searchsorted(first, wanted)
    hits: list[Numbers] = []
    numbers: list[Numbers] = []
    left = np.arange(len(keys), dtype=np.int64)
    # Rows that share the first 64 bits are adjacent: rows of another key, or rows that a user has written twice.
    while len(left):
        left = left[found[left] < count]
        left = left[first[found[left]] == wanted[left]]
        same = second[found[left]] == more[left]
        hits.append(rows[found[left[same]]].astype(np.int64))
        numbers.append(left[same])
        found[left] += 1
    together, which = np.concatenate(hits or [left]), np.concatenate(numbers or [left])
    order = np.argsort(together)
    return together[order], which[order]


def key_hashes(keys: pa.Array, seed: int) -> tuple[Hashes, NDArray[np.uint32]]:
    """64 bits and 32 further bits of a hash of each key; no key is NULL."""
    data, offsets = _bytes(keys)
    starts, lengths = offsets[:-1], np.diff(offsets)
    # The last word of a text extends beyond its end.
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    words = np.lib.stride_tricks.as_strided(padded.view(), (len(padded) - _WORD + 1, _WORD), (1, 1))
    base = np.uint64(seed)
    found = [lengths.astype(np.uint64) ^ base, lengths.astype(np.uint64) + base]
    for at in range(0, int(lengths.max(initial=0)), _WORD):
        longer = np.flatnonzero(lengths > at)
        word = words[starts[longer] + at].copy().view(np.uint64).reshape(-1)
        missing = np.clip(_WORD - (lengths[longer] - at), 0, _WORD - 1).astype(np.uint64)
        word &= np.uint64(0xFFFFFFFFFFFFFFFF) >> (missing * np.uint64(8))
        for number, factor in enumerate(_MIX):
            mixed = (found[number][longer] ^ word) * factor
            found[number][longer] = mixed ^ (mixed >> np.uint64(29 + number))
    for number, factor in enumerate(reversed(_MIX)):
        mixed = found[number] * factor
        found[number] = mixed ^ (mixed >> np.uint64(32))
    return found[0], (found[1] >> np.uint64(16)).astype(np.uint32)


def remove_unused(uri: str, *, retain_hours: int, storage: Storage = LOCAL) -> int:
    """Delete the indexes of files that are no longer live, if older than `retain_hours`; return how many.

    VACUUM leaves them: their folder's name begins with `_`.

    Args:
        uri: The folder of the table.
        retain_hours: The minimum age of what is deleted.
        storage: How to reach the folder.
    """
    system, before = file_system(uri, storage), datetime.now(UTC) - timedelta(hours=retain_hours)
    old = [name for name, modified in _listed(system) if modified < before]
    log = load_log(uri, storage) if old else None
    if log is None or log.unreadable:
        return 0
    live = {index_path(file.name) for file in log.files.values()}
    unused = [name for name in old if name not in live]
    for name in unused:
        system.delete_file(name)
    return len(unused)


def _listed(system: pa_fs.FileSystem) -> Iterator[tuple[str, datetime]]:
    # Other writers name folders after partitions.
    for found in system.get_file_info(pa_fs.FileSelector(FOLDER, allow_not_found=True, recursive=True)):
        if found.mtime is not None and found.type == pa_fs.FileType.File:
            yield found.path, found.mtime.astimezone(UTC)


def _bytes(keys: pa.Array) -> tuple[NDArray[np.uint8], Numbers]:
    """The texts' bytes and where each begins."""
    _, offsets, data = keys.buffers()
    places = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    begin, end = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
    return content[begin:end], places - begin


def _read(file: DataFile, uri: str, system: pa_fs.FileSystem) -> NDArray[np.uint8] | None:
    """The index's content; None if there is none, or it is not a complete index of this file."""
    path, local = index_path(file.file.name), local_path(uri)
    try:
        if local is not None:
            content = np.memmap(local / path, np.uint8, mode="r")
        else:
            with system.open_input_file(path) as source:
                content = np.frombuffer(source.read(), np.uint8)
    except (OSError, ValueError):
        return None
    whole = len(content) == _HEADER.size + 16 * file.rows
    return content if whole and bytes(content[: len(_MAGIC)]) == _MAGIC else None


def _build(file: DataFile, uri: str, system: pa_fs.FileSystem) -> NDArray[np.uint8]:
    keys = file.column("_key")
    seed = int.from_bytes(os.urandom(8), "little")
    hashed = [key_hashes(chunk, seed) for chunk in keys.chunks]
    first = np.concatenate([np.empty(0, np.uint64), *(one for one, _ in hashed)])
    second = np.concatenate([np.empty(0, np.uint32), *(more for _, more in hashed)])
    order = np.argsort(first, kind="stable")
    parts = [first[order], second[order], order.astype(np.uint32)]
    content = _HEADER.pack(_MAGIC, seed, len(keys)) + b"".join(part.tobytes() for part in parts)
    path = index_path(file.file.name)
    try:
        system.create_dir(path.rpartition("/")[0])
        # Another task may have mapped the index of a third task: that has another seed, and stays as it is. An object
        # store shows an object only once it is complete.
        local = local_path(uri)
        written = path if local is None else f"{path}.{uuid.uuid4()}"
        write_bytes(system, written, content)
        if local is not None:
            (local / written).replace(local / path)
    except OSError:
        pass  # It is a cache: without it, the next look-up rebuilds it.
    return np.frombuffer(content, np.uint8)
