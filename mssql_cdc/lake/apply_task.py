"""The task that applies a section of the change log to a current table: fold, find the old rows, write (correctness D).

It runs on a Spark worker or anywhere else, and needs no JVM. Its result counts only once `lake/current.py` has
committed it; until then its files are garbage. `lake/shares.py` divides a large task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs

from mssql_cdc.lake.arrow_fold import WINDOW_COLUMNS, Folded, Numbers, OldRows, fold_rows, new_rows
from mssql_cdc.lake.data_file import is_older
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.fold import FoldPlan, plan_fold
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.look_up import Found, Keys, Touched, look_up, old_rows, stored_names
from mssql_cdc.lake.partitions import Values, by_partition, folder_of, without_empty_texts
from mssql_cdc.lake.section_rows import TooWide, rows_to_fold, usable_rows
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.table_layout import stored
from mssql_cdc.lake.unknown_columns import ALL_KNOWN, UnknownColumns
from mssql_cdc.lake.vectors import write_vectors
from mssql_cdc.lake.window import Window
from mssql_cdc.schema.arrow import current_names
from mssql_cdc.schema.tables import TableSchema

MOST_ROWS = 1_000_000
MOST_BYTES = 128 * 1024 * 1024
SMALL_ROWS = 30_000
"""Up to this many rows are rewritten rather than given a deletion vector, which fewer readers support.

Vectors are cheaper from 3,000 rows on; at this size, rewriting costs 2.5 times the CPU (docs/benchmarks.md).
"""
LARGE_ROWS = 500_000
"""A file with more rows keeps them: an update rewrites only smaller files."""
_ABSORB = 2.0
_WRITTEN_ROWS = 250_000
_WRITTEN_BYTES = 128 * 1024 * 1024
_HELD_ROWS = 1_000_000
"""How many rows of rewritten files are held, to be written together with others of their partition."""


@dataclass(frozen=True, slots=True)
class ApplyTask:
    """A table's update, or a share of it; picklable, contains no secrets.

    It writes the new rows of the `window` and deletes old ones from `live`. `usable` are the versions with the present
    key. `vectors`: true if the table has them, false if it must not, None if they are enabled when needed.

    The table is partitioned by `partition_by` from now on; with `rewrites`, all rows are written to new files. The rows
    of `live` do not know the `unknown` columns, which are new.

    In a whole update, `live` has all files that may hold old rows: none if the table is created or replaced. In a
    share, `section` has all changes to keys that `live` may hold, and `others` the live files of other shares.
    """

    window: Window
    target: FileTarget
    usable: tuple[TableSchema, ...]
    live: tuple[LiveFile, ...] = ()
    vectors: bool | None = None
    partition_by: tuple[str, ...] = ()
    rewrites: bool = False
    unknown: UnknownColumns = ALL_KNOWN
    section: Window | None = None
    others: tuple[LiveFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a task did: `adds` are actions, `removed` identities of live files, `rows` the section's row count.

    `vectors`: a deletion vector was written. `too_large` says why the task did nothing and Spark must do the work.
    """

    adds: tuple[Mapping[str, Any], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    vectors: bool = False
    too_large: str | None = None

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Applied:
        """Build an instance from what `apply_task` returned."""
        return cls(
            tuple(value["adds"]),
            tuple((path, vector) for path, vector in value["removed"]),
            value["rows"],
            value["vectors"],
            value["too_large"],
        )

    @classmethod
    def together(cls, shares: Sequence[Applied]) -> Applied:
        """Combine what the shares of one update did."""
        return cls(
            tuple(add for share in shares for add in share.adds),
            tuple(identity for share in shares for identity in share.removed),
            sum(share.rows for share in shares),
            any(share.vectors for share in shares),
            next((share.too_large for share in shares if share.too_large), None),
        )


def apply_task(task: ApplyTask) -> dict[str, Any]:
    """Run one task; return JSON-serializable facts (`Applied.from_value`)."""
    try:
        return _applied(task)
    except TooWide as wide:
        parts = _divided(task, wide.parts)
    if len(parts) == 1:
        return _applied(task, bounded=False)
    return asdict(Applied.together([Applied.from_value(apply_task(part)) for part in parts]))


def _divided(task: ApplyTask, parts: int) -> list[ApplyTask]:
    """Divide the task into shares that run one after another; the first one deletes all old rows."""
    windows = task.window.divided(max(1, task.window.most_rows // parts))
    if len(windows) == 1:
        return [task]
    first = replace(task, window=windows[0], section=task.section or task.window)
    nothing, files = replace(task.window, files=()), (*task.live, *task.others)
    return [first, *(replace(task, window=one, live=(), section=nothing, others=files) for one in windows[1:])]


def _applied(task: ApplyTask, *, bounded: bool = True) -> dict[str, Any]:
    batches = usable_rows(task.window, task.usable, WINDOW_COLUMNS)
    rows, count = rows_to_fold(batches, partial(_plan, task), rows=task.window.most_rows, bounded=bounded)
    folded = fold_rows(rows, _plan(task, rows)) if rows is not None else None
    if folded is None and task.section is None:
        return _result()
    system = file_system(task.target.uri, task.target.storage)
    opened: list[Found] = []
    try:
        if task.section is None:
            deleted = source = _look_up(task, task.live, _keys(folded), system, opened)
        else:
            deleted = _look_up(task, task.live, _section_keys(task), system, opened)
            source = _old_rows_of_a_share(task, folded, system, opened)
        old = old_rows(folded, source, bounded=bounded) if folded is not None else None
        return _apply(task, folded, old, source.stale, deleted, system) | {"rows": count}
    finally:
        for found in opened:
            found.close()


def _apply(
    task: ApplyTask,
    folded: Folded | None,
    old: OldRows | None,
    stale: Numbers,
    deleted: Found,
    system: pa_fs.FileSystem,
) -> dict[str, Any]:
    new: dict[Values, pa.RecordBatch] = {}
    if folded is not None:
        written = ~folded.deleted
        written[stale] = False
        rows = new_rows(folded, np.flatnonzero(written), old, arrow_of(task.target.schema_json or ""))
        new = by_partition(without_empty_texts(rows, task.partition_by, folded.plan.names), task.partition_by)
    vectors = _choose(task, deleted, {values: rows.num_rows for values, rows in new.items()})
    rewritten = [touched for touched in deleted.files if touched.rewritten]
    if not task.rewrites and sum(touched.file.file.size for touched in rewritten) > MOST_BYTES:
        return _result(too_large=f"{len(rewritten)} files would have to be rewritten")
    adds = list(_written(task, new, rewritten))
    marked = [touched for touched in deleted.files if len(touched.gone) and not touched.rewritten]
    marks = write_vectors([touched.deleted for touched in marked], system)
    for touched, vector in zip(marked, marks, strict=True):
        adds.append(touched.file.file.add(vector=vector, rows=touched.file.rows))
    removed = [touched.file.file.identity for touched in (*rewritten, *marked)]
    return _result(adds=adds, removed=removed, vectors=vectors and bool(marked))


def _rows(window: Window, usable: Sequence[TableSchema], columns: Sequence[str]) -> pa.RecordBatch | None:
    """The window's rows of usable versions; None if there are none."""
    batches = list(usable_rows(window, usable, columns))
    return pa.concat_batches(batches) if batches else None


def _plan(task: ApplyTask, rows: pa.RecordBatch) -> FoldPlan:
    return plan_fold(
        task.usable,
        schemas=set(pc.unique(rows.column("_schema")).to_pylist()),
        unavailable=set(pc.unique(pc.list_flatten(rows.column("_unavailable"))).to_pylist()),
        stored=arrow_of(task.target.schema_json or "").names,
        logged=[field.name for field in rows.schema.field("after").type],
    )


def _look_up(
    task: ApplyTask, live: Sequence[LiveFile], wanted: Keys, system: pa_fs.FileSystem, opened: list[Found]
) -> Found:
    found = look_up(live, wanted, task.target, system, index=bool(task.vectors), unknown=task.unknown)
    opened.append(found)
    return found


def _keys(folded: Folded | None) -> Keys:
    return Keys(pa.array([], pa.string()), None) if folded is None else Keys(folded.keys, folded.positions)


def _section_keys(task: ApplyTask) -> Keys:
    """The keys of a share's section, with their positions only if a file may hold newer rows."""
    assert task.section is not None, "a share has a section"
    if not task.live or not task.section.files:
        return _keys(None)
    if _all_older(task, task.live, task.section.first_position):
        rows = _rows(task.section, task.usable, ("_key", "_schema"))
        return _keys(None) if rows is None else Keys(pc.unique(rows.column("_key")), None)
    rows = _rows(task.section, task.usable, ("_key", "_pos", "_schema", "op"))
    return _keys(None if rows is None else fold_rows(rows, FoldPlan(task.usable[-1], frozenset(), {})))


def _old_rows_of_a_share(
    task: ApplyTask, folded: Folded | None, system: pa_fs.FileSystem, opened: list[Found]
) -> Found:
    """The old rows that determine what a share writes: of keys that may be stale, or whose new row is incomplete."""
    if folded is None:
        return Found()
    live = (*task.live, *task.others)
    first: str = pc.min(folded.positions).as_py()
    which = np.flatnonzero(folded.incomplete) if _all_older(task, live, first) else np.arange(len(folded.keys))
    if not len(which):
        return Found()
    numbers = pa.array(which)
    wanted = Keys(folded.keys.take(numbers), folded.positions.take(numbers))
    found = _look_up(task, live, wanted, system, opened)
    found.stale = which[found.stale]
    found.place = [(number, which[keys], rows) for number, keys, rows in found.place]
    return found


def _all_older(task: ApplyTask, live: Sequence[LiveFile], first: str | None) -> bool:
    """Whether the statistics prove that all rows of these files precede this position."""
    if first is None:
        return False
    position_name, positions = stored_names(task.target.schema_json or "")[1], pa.array([first])
    return all(is_older(file, position_name, positions) for file in live)


def _choose(task: ApplyTask, found: Found, new: Mapping[Values, int]) -> bool:
    """Decide which files are rewritten, and return whether the others get vectors; `new` counts new rows by partition.

    Small files are absorbed geometrically, so that a table has few of them and a row is rewritten only a few times;
    files whose rows are mostly deleted are absorbed, too. A large file keeps its rows.
    """
    if task.rewrites:
        for touched in found.files:
            touched.rewritten = True
        return False
    changed = [touched for touched in found.files if len(touched.gone)]
    vectors = bool(task.vectors)
    if task.vectors is None and sum(touched.left for touched in changed) > SMALL_ROWS:
        vectors = True
    for touched in changed:
        mostly_dead = touched.left < touched.file.rows / 2 and touched.left <= LARGE_ROWS
        touched.rewritten = not vectors or not touched.left or mostly_dead
    names, room = stored(task.target.schema_json or "", task.partition_by), dict(new)
    for touched in sorted(found.files, key=lambda touched: touched.left):
        values = tuple(touched.file.partition.get(name) for name in names)
        if not touched.rewritten:
            touched.rewritten = touched.left <= min(_ABSORB * room.get(values, 0), LARGE_ROWS)
        if touched.rewritten:
            room[values] = room.get(values, 0) + touched.left
    return vectors


def _written(
    task: ApplyTask, new: Mapping[Values, pa.RecordBatch], absorbed: Sequence[Touched]
) -> Iterator[dict[str, Any]]:
    """Write the new rows and those of the absorbed files, each partition to its own files; yield the `add` actions."""
    names, held = stored(task.target.schema_json or "", task.partition_by), dict[Values, list[pa.RecordBatch]]()

    def write(values: Values, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        target = replace(task.target, folder=folder_of(names, values))
        for file in write_files(batches, target):
            yield file.add(dict(zip(names, values, strict=True)))

    sources = {name: name for name in task.partition_by} | current_names(task.usable[-1])
    if not task.partition_by:
        yield from write((), chain(_remaining(absorbed), *(_sliced(rows) for rows in new.values())))
        return
    for values, rows in new.items():
        held[values] = list(_sliced(rows))
    count = 0
    for batch in _remaining(absorbed):
        kept = without_empty_texts(batch, task.partition_by, sources)
        for values, rows in by_partition(kept, task.partition_by).items():
            held.setdefault(values, []).append(rows)
        count += batch.num_rows
        if count >= _HELD_ROWS:
            for values in list(held):
                yield from write(values, held.pop(values))
            count = 0
    for values, batches in held.items():
        yield from write(values, batches)


def _remaining(absorbed: Sequence[Touched]) -> Iterator[pa.RecordBatch]:
    for touched in absorbed:
        if touched.left:
            for rows in touched.file.remaining(touched.deleted):
                yield from rows.to_batches(max_chunksize=_WRITTEN_ROWS)


def _sliced(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    # A row group is read as a whole.
    step = max(1, min(_WRITTEN_ROWS, rows.num_rows * _WRITTEN_BYTES // max(1, rows.nbytes)))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)


def _result(**found: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"adds": [], "removed": [], "rows": 0, "vectors": False, "too_large": None, **found}
    return result
