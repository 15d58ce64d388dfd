"""The task that applies a section of the change log to a current table: fold, find the old rows, write (correctness D).

It runs on a Spark worker, or anywhere else, and needs no JVM. What it returns counts only once `lake/current.py` has
committed it; until then its files are garbage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
from numpy.typing import NDArray
from pyroaring import BitMap64

from mssql_cdc.lake.arrow_fold import NOWHERE, WINDOW_COLUMNS, Folded, OldRows, fold_rows, new_rows
from mssql_cdc.lake.data_file import DataFile, bounds, is_older
from mssql_cdc.lake.delta_schema import arrow_of, file_schema
from mssql_cdc.lake.files import DataFile as WrittenFile
from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.fold import plan_fold
from mssql_cdc.lake.key_index import INDEXED_ROWS, find
from mssql_cdc.lake.read import Window
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.table_log import LiveFile
from mssql_cdc.lake.vectors import write_vectors
from mssql_cdc.schema.tables import TableSchema

MOST_ROWS = 1_000_000
MOST_BYTES = 128 * 1024 * 1024
SMALL_ROWS = 30_000
"""Up to so many rows are rewritten rather than given a deletion vector, which fewer readers understand."""
_ABSORB = 2.0
_LARGE_ROWS = 500_000
_DENSE = 4
"""With more than one key for so many rows of a file, reading its keys is cheaper than an index."""
_WRITTEN_ROWS = 250_000

Numbers = NDArray[np.int64]
_NONE: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ApplyTask:
    """One section of one table's change log; picklable, holds no secret.

    `usable` are the versions with the present key. `live` are the files that may hold old rows: none when the table is
    created or replaced. `vectors`: true, the table has them; false, it must not; None, they are enabled when needed.
    """

    window: Window
    target: FileTarget
    usable: tuple[TableSchema, ...]
    live: tuple[LiveFile, ...] = ()
    vectors: bool | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What a task did: `adds` are actions, `removed` identities of live files, `rows` those of the section.

    `vectors`: a deletion vector was written. `too_large` says why the task did nothing: the work is Spark's.
    """

    adds: tuple[Mapping[str, Any], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    vectors: bool = False
    too_large: str | None = None

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Applied:
        """From what `apply_task` returned."""
        return cls(
            tuple(value["adds"]),
            tuple((path, vector) for path, vector in value["removed"]),
            value["rows"],
            value["vectors"],
            value["too_large"],
        )


@dataclass(slots=True)
class _Touched:
    """A live file and what the fold does to it: `gone` are the rows that it deletes."""

    file: DataFile
    gone: Numbers
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
class _Found:
    """The old rows of the section's keys."""

    files: list[_Touched] = field(default_factory=list["_Touched"])
    place: list[tuple[int, Numbers, Numbers]] = field(default_factory=list[tuple[int, Numbers, Numbers]])
    """For each file with old rows: its number in `files`, the keys' numbers, the rows' numbers."""
    stale: Numbers = field(default_factory=lambda: _NONE)
    """The keys whose row in the table is newer than the section."""


def apply_task(task: ApplyTask) -> dict[str, Any]:
    """Run one task; returns JSON-able facts (`Applied.from_value`)."""
    window = _window(task)
    if window is None or not window.num_rows:
        return _result()
    plan = plan_fold(
        task.usable,
        schemas=set(pc.unique(window.column("_schema")).to_pylist()),
        unavailable=set(pc.unique(pc.list_flatten(window.column("_unavailable"))).to_pylist()),
        stored=arrow_of(task.target.schema_json or "").names,
    )
    folded = fold_rows(window, plan)
    system = file_system(task.target.uri, task.target.storage)
    found = _find(task, folded, system)
    try:
        return _apply(task, folded, found)
    finally:
        for touched in found.files:
            touched.file.close()


def _apply(task: ApplyTask, folded: Folded, found: _Found) -> dict[str, Any]:
    written = ~folded.deleted
    written[found.stale] = False
    which = np.flatnonzero(written)
    vectors = _choose(task, found, len(which))
    rewritten = [touched for touched in found.files if touched.rewritten]
    if sum(touched.file.file.size for touched in rewritten) > MOST_BYTES:
        return _result(too_large=f"{len(rewritten)} files would have to be rewritten")
    schema = arrow_of(task.target.schema_json or "")
    rows = new_rows(folded, which, _old_rows(folded, found), schema)
    adds = [_add(file) for file in write_files(_batches(rows, rewritten), task.target)]
    marked = [touched for touched in found.files if len(touched.gone) and not touched.rewritten]
    system = file_system(task.target.uri, task.target.storage)
    stored = write_vectors([touched.deleted for touched in marked], system)
    for touched, vector in zip(marked, stored, strict=True):
        adds.append(touched.file.file.add(vector=vector, rows=touched.file.rows))
    removed = [touched.file.file.identity for touched in (*rewritten, *marked)]
    return _result(adds=adds, removed=removed, rows=folded.window.num_rows, vectors=vectors)


def _window(task: ApplyTask) -> pa.RecordBatch | None:
    numbers = pa.array([schema.version for schema in task.usable], pa.int32())
    batches: list[pa.RecordBatch] = []
    for batch in task.window.rows(WINDOW_COLUMNS):
        usable = pc.is_in(batch.column("_schema"), value_set=numbers)
        batches.append(batch if pc.all(usable).as_py() else batch.filter(usable))
    return pa.concat_batches(batches) if batches else None


def _find(task: ApplyTask, folded: Folded, system: pa_fs.FileSystem) -> _Found:
    """Find the old rows of the keys; each key has at most one live row in the table."""
    found, schema_json = _Found(), task.target.schema_json or ""
    files = [DataFile(file, schema_json, system) for file in task.live]
    schema = arrow_of(schema_json)
    names = {name: file_schema(schema_json, pa.schema([schema.field(name)])).field(0).name for name in ("_key", "_pos")}
    stale: list[Numbers] = []
    for number, file in enumerate(files):
        touched = _Touched(file, _NONE)
        found.files.append(touched)
        keys = _candidates(folded.keys, *bounds(file.file, names["_key"]))
        if not len(keys):
            continue
        if task.vectors and file.rows >= INDEXED_ROWS and len(keys) * _DENSE < file.rows:
            rows, matched = find(file, folded.keys.take(pa.array(keys)), task.target.uri, system)
            matched = keys[matched]
        else:
            rows, matched = _matches(file, folded.keys, keys)
        alive = ~np.fromiter((row in file.dead for row in rows.tolist()), bool, len(rows)) if file.dead else slice(None)
        rows, matched = rows[alive], matched[alive]
        if len(rows) and not is_older(file.file, names["_pos"], folded.positions):
            old = file.take(rows, ["_pos"]).column("_pos")
            newer = pc.greater(folded.positions.take(pa.array(matched)), old.combine_chunks())
            fresh = np.asarray(newer, dtype=bool)
            stale.append(matched[~fresh])
            rows, matched = rows[fresh], matched[fresh]
        if len(rows):
            found.place.append((number, matched, rows))
            touched.gone = rows
    if stale:
        found.stale = np.concatenate(stale)
    return found


def _candidates(keys: pa.Array, low: str | None, high: str | None) -> Numbers:
    """The numbers of the keys that a file with these bounds may hold."""
    if low is None or high is None:
        return np.arange(len(keys), dtype=np.int64)
    inside = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
    return np.flatnonzero(np.asarray(inside, dtype=bool))


def _matches(file: DataFile, keys: pa.Array, candidates: Numbers) -> tuple[Numbers, Numbers]:
    """The file's rows with one of these keys, ascending, and the keys' numbers."""
    places = pc.index_in(file.column("_key").combine_chunks(), value_set=keys.take(pa.array(candidates)))
    hits = np.flatnonzero(np.asarray(pc.is_valid(places), dtype=bool))
    return hits, candidates[np.asarray(places.take(pa.array(hits)), dtype=np.int64)]


def _choose(task: ApplyTask, found: _Found, new: int) -> bool:
    """Decide which files are rewritten, and return whether the others get vectors.

    Small files are absorbed geometrically, so that a table has few and a row is rewritten a few times only; so are
    files that are mostly deleted. A large file keeps its rows.
    """
    changed = [touched for touched in found.files if len(touched.gone)]
    vectors = bool(task.vectors)
    if task.vectors is None and sum(touched.left for touched in changed) > SMALL_ROWS:
        vectors = True
    for touched in changed:
        mostly_dead = touched.left < touched.file.rows / 2 and touched.left <= _LARGE_ROWS
        touched.rewritten = not vectors or not touched.left or mostly_dead
    room = new
    for touched in sorted(found.files, key=lambda touched: touched.left):
        if touched.rewritten:
            room += touched.left
        elif touched.left <= min(_ABSORB * room, _LARGE_ROWS):
            touched.rewritten = True
            room += touched.left
    return vectors and not all(touched.rewritten for touched in changed)


def _old_rows(folded: Folded, found: _Found) -> OldRows | None:
    """The old rows that some new row takes values from."""
    incomplete = folded.incomplete
    place = np.full(len(folded.last), NOWHERE, dtype=np.int64)
    columns = ["_exact", "_unavailable", *(folded.plan.names[name] for name in folded.plan.uncertain)]
    parts: list[pa.Table] = []
    count = 0
    for number, keys, rows in found.place:
        wanted = incomplete[keys]
        if wanted.any():
            part = found.files[number].file.take(rows[wanted], columns)
            place[keys[wanted]] = np.arange(count, count + part.num_rows)
            count += part.num_rows
            parts.append(part)
    return OldRows(pa.concat_tables(parts).combine_chunks(), place) if parts else None


def _batches(rows: pa.RecordBatch, absorbed: list[_Touched]) -> Iterator[pa.RecordBatch]:
    for touched in absorbed:
        if touched.left:
            yield from touched.file.remaining(touched.deleted).to_batches(max_chunksize=_WRITTEN_ROWS)
    for start in range(0, rows.num_rows, _WRITTEN_ROWS):
        yield rows.slice(start, _WRITTEN_ROWS)


def _add(file: WrittenFile) -> dict[str, Any]:
    return {
        "add": {
            "path": file.path,
            "partitionValues": {},
            "size": file.size,
            "modificationTime": file.modified,
            "dataChange": True,
            "stats": file.stats,
        }
    }


def _result(**found: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"adds": [], "removed": [], "rows": 0, "vectors": False, "too_large": None, **found}
    return result
