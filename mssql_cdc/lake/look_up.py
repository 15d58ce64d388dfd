"""Finds the rows of a current table that have one of the given keys, by statistics, key indexes or the files' own keys.

`lake/apply_task.py` decides what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
from numpy.typing import NDArray
from pyroaring import BitMap64

from mssql_cdc.lake.arrow_fold import NOWHERE, Folded, OldRows
from mssql_cdc.lake.data_file import DataFile, bounds, is_older
from mssql_cdc.lake.delta_schema import arrow_of, file_schema
from mssql_cdc.lake.files import FileTarget
from mssql_cdc.lake.key_index import INDEXED_ROWS, find
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.section_rows import MOST_PLAIN_BYTES, TooWide
from mssql_cdc.lake.unknown_columns import ALL_KNOWN, UnknownColumns

DENSE = 4
"""With more than one key per this many rows of a file, reading its keys is cheaper than an index."""

Numbers = NDArray[np.int64]
NO_ROWS: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct keys, and for each the `_pos` of its newest change; `positions` is None if all old rows are older."""

    keys: pa.Array
    positions: pa.Array | None


@dataclass(slots=True)
class Touched:
    """A live file and what the fold does to it: `gone` are the rows that it deletes."""

    file: DataFile
    gone: Numbers = field(default_factory=lambda: NO_ROWS)
    rewritten: bool = False

    @property
    def left(self) -> int:
        """Rows that stay."""
        return self.file.live - len(self.gone)

    @property
    def deleted(self) -> BitMap64:
        """All deleted rows."""
        return self.file.dead | BitMap64(self.gone.tolist())


@dataclass(slots=True)
class Found:
    """The old rows of some keys."""

    files: list[Touched] = field(default_factory=list[Touched])
    place: list[tuple[int, Numbers, Numbers]] = field(default_factory=list[tuple[int, Numbers, Numbers]])
    """For each file with old rows: its number in `files`, the keys' numbers, the rows' numbers."""
    stale: Numbers = field(default_factory=lambda: NO_ROWS)
    """The keys whose row in the table is not older than their change."""

    def close(self) -> None:
        """Close the files."""
        for touched in self.files:
            touched.file.close()


def look_up(
    live: Sequence[LiveFile],
    wanted: Keys,
    target: FileTarget,
    system: pa_fs.FileSystem,
    *,
    index: bool,
    unknown: UnknownColumns = ALL_KNOWN,
) -> Found:
    """Find the old rows of the keys; each key has at most one live row in the table.

    Args:
        live: The files to search.
        wanted: The keys.
        target: The table.
        system: Its folder.
        index: Whether key indexes pay off: not for a table whose files are rewritten by each update.
        unknown: Columns that the files' rows do not know.
    """
    found, schema_json = Found(), target.schema_json or ""
    key_name, position_name = stored_names(schema_json)
    stale: list[Numbers] = []
    for number, live_file in enumerate(live):
        file = DataFile(live_file, schema_json, system, unknown)
        touched = Touched(file)
        found.files.append(touched)
        keys = _candidates(wanted.keys, *bounds(live_file, key_name))
        if not len(keys):
            continue
        if index and file.rows >= INDEXED_ROWS and len(keys) * DENSE < file.rows:
            rows, matched = find(file, wanted.keys.take(pa.array(keys)), target.uri, system)
            matched = keys[matched]
        else:
            rows, matched = _matches(file, wanted.keys, keys)
        alive = ~np.fromiter((row in file.dead for row in rows.tolist()), bool, len(rows)) if file.dead else slice(None)
        rows, matched = rows[alive], matched[alive]
        if len(rows) and wanted.positions is not None and not is_older(live_file, position_name, wanted.positions):
            old = file.take(rows, ["_pos"]).column("_pos")
            newer = pc.greater(wanted.positions.take(pa.array(matched)), old.combine_chunks())
            fresh = np.asarray(newer, dtype=bool)
            stale.append(matched[~fresh])
            rows, matched = rows[fresh], matched[fresh]
        if len(rows):
            found.place.append((number, matched, rows))
            touched.gone = rows
    if stale:
        found.stale = np.concatenate(stale)
    return found


def stored_names(schema_json: str) -> tuple[str, str]:
    """The names under which files of the table store `_key` and `_pos`."""
    schema = arrow_of(schema_json)
    key, position = file_schema(schema_json, pa.schema([schema.field("_key"), schema.field("_pos")])).names
    return key, position


def old_rows(folded: Folded, found: Found, *, bounded: bool = True) -> OldRows | None:
    """The old rows from which some new row takes values.

    Args:
        folded: The section.
        found: The old rows of its keys.
        bounded: Whether too many bytes are refused.

    Raises:
        TooWide: They have too many bytes.
    """
    incomplete = folded.incomplete
    place = np.full(len(folded.last), NOWHERE, dtype=np.int64)
    plan = folded.plan
    former = (target for name in plan.uncertain for target in plan.former.get(name, {}).values())
    columns = ["_exact", "_unavailable", *(plan.names[name] for name in plan.uncertain), *former]
    parts: list[pa.Table] = []
    count = size = 0
    for number, keys, rows in found.place:
        wanted = incomplete[keys]
        if wanted.any():
            part = found.files[number].file.take(rows[wanted], columns)
            size += part.nbytes
            if bounded and size > MOST_PLAIN_BYTES:
                raise TooWide(2)
            place[keys[wanted]] = np.arange(count, count + part.num_rows)
            count += part.num_rows
            parts.append(part)
    return OldRows(pa.concat_tables(parts).combine_chunks(), place) if parts else None


def _candidates(keys: pa.Array, low: str | None, high: str | None) -> Numbers:
    """The numbers of the keys that a file with these bounds may hold."""
    if low is None or high is None:
        return np.arange(len(keys), dtype=np.int64)
    inside = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
    return np.flatnonzero(np.asarray(inside, dtype=bool))


def _matches(file: DataFile, keys: pa.Array, candidates: Numbers) -> tuple[Numbers, Numbers]:
    """The file's rows with one of these keys, ascending, and the keys' numbers."""
    # In chunks, as they are read: the keys of a large file may have too many bytes for one array.
    places = pc.index_in(file.column("_key"), value_set=keys.take(pa.array(candidates)))
    hits = np.flatnonzero(np.asarray(pc.is_valid(places), dtype=bool))
    return hits, candidates[np.asarray(places.take(pa.array(hits)), dtype=np.int64)]
