"""Which of the rows that seem to differ do differ, on a source that keeps changing (correctness F31).

A key that no change has touched between the lake's state and a fence after the source was read had one value
throughout: its difference is real. The other keys are read again, a few at a time and locked, so that their rows are
exact at a log end E; the lake's row at E is the pinned one plus the changes up to E from the change log. Where the
source cannot seek rows by the texts of their keys, the whole table is locked and read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.capture.members import LakeTable
from mssql_cdc.check.compared import Compared
from mssql_cdc.check.fence import Fence
from mssql_cdc.check.keyed_table import KeyedTable, Suspects
from mssql_cdc.check.multiset import Difference
from mssql_cdc.check.sides import image_texts, names_elsewhere
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import cut_text
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import LogMark, Texts

KEYS_TOGETHER = 50
"""How many rows are locked at a time."""
_NEWEST = (1 << 62) - 1
_COLUMNS = ["_pos", "_batch", "op", "before", "after", "_unavailable", "_exact"]


@dataclass(frozen=True, slots=True)
class LakeRow:
    """A row of the lake: its position, its texts (None: deleted), and the columns that CDC never delivered."""

    pos: str
    texts: Texts | None
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change log: its key, and what becomes of that key's row."""

    pos: str
    op: str
    key: Texts
    texts: Texts | None
    unknown: frozenset[str]


def settle(
    table: KeyedTable, found: Suspects, *, fence: Fence, member: LakeTable, epoch: int, storage: Storage
) -> tuple[Difference, ...]:
    """The differences that are not due to changes made in the meantime.

    Args:
        table: what was compared.
        found: what seems to differ.
        fence: advances the change log past ends of the source's log.
        member: the table in the lake.
        epoch: the current epoch.
        storage: the options of the object store.

    Raises:
        SourceUnavailableError: the lake did not pass the fence in time, so nothing can be said.
    """
    suspects = {difference.key: difference for difference in found.differences}
    if not suspects:
        return ()
    fence.wait(fence.mark(), member)
    touched = changes_of(member.home.changes, table.compared, suspects, after=table.pinned.batch, storage=storage)
    certain = [difference for key, difference in suspects.items() if key not in touched]
    groups = _groups(list(touched), KEYS_TOGETHER if table.compared.sought_by_key else len(touched))
    with fence.database.session() as asked:
        held = [(group, *_held(table, group, asked)) for group in groups]
    if not held:
        return tuple(certain)
    _, _, last = held[-1]
    fence.wait(last, member)
    changes = changes_of(member.home.changes, table.compared, touched, after=table.pinned.batch, storage=storage)
    settled: list[Difference] = []
    for keys, rows, mark in held:
        bound = cut_text(epoch, mark.lsn)
        for key in keys:
            base = _base(found, suspects[key])
            row = at(base, changes.get(key, ()), bound, table.compared.names)
            difference = _difference(key, rows.get(key), row, table.compared)
            settled += [difference] if difference else []
    return (*certain, *settled)


def changes_of(
    uri: str, compared: Compared, keys: Collection[Texts], *, after: int, storage: Storage
) -> Mapping[Texts, Sequence[Change]]:
    """The change-log rows of these keys in commits later than `after`, in order of position.

    Args:
        uri: The change log.
        compared: The columns to compare.
        keys: The keys whose changes to read.
        after: The `_batch` after which to read.
        storage: The options of the object store.
    """
    found: dict[Texts, list[Change]] = {}
    batches = scan(uri, batches=BatchSlice(after, _NEWEST), columns=_COLUMNS, storage=storage)
    for batch in batches:
        for change in _changes(batch, compared):
            if change.key in keys:
                found.setdefault(change.key, []).append(change)
    return {key: sorted(changes, key=lambda one: one.pos) for key, changes in found.items()}


def at(base: LakeRow | None, changes: Sequence[Change], bound: str, names: Sequence[str]) -> LakeRow | None:
    """The lake's row of a key after all of its changes up to a position.

    Args:
        base: the row before these changes.
        changes: the changes, in order of position.
        bound: the position; later changes do not count.
        names: the columns of the texts.
    """
    row = base
    for change in changes:
        if change.pos > bound or (row is not None and change.pos <= row.pos):
            continue
        kept = row if change.op == "u" else None
        row = LakeRow(change.pos, *_merged(change, kept, names))
    return row


def _merged(change: Change, kept: LakeRow | None, names: Sequence[str]) -> tuple[Texts | None, frozenset[str]]:
    """The new texts; a cell that the change does not know keeps what was known about it."""
    if change.texts is None or kept is None or kept.texts is None or not change.unknown:
        return change.texts, change.unknown
    cells = zip(names, change.texts, kept.texts, strict=True)
    return tuple(old if name in change.unknown else new for name, new, old in cells), change.unknown & kept.unknown


def _changes(batch: pa.RecordBatch, compared: Compared) -> Iterator[Change]:
    positions, ops = batch.column("_pos").to_pylist(), batch.column("op").to_pylist()
    unavailable = batch.column("_unavailable").to_pylist()
    images = zip(
        image_texts(batch, "before", compared.columns), image_texts(batch, "after", compared.columns), strict=True
    )
    names = frozenset(compared.names)
    elsewhere = names_elsewhere(batch, "after", compared.columns)
    for pos, op, lacking, older, (before, after) in zip(positions, ops, unavailable, elsewhere, images, strict=True):
        unknown = older.union(lacking or ())
        named = before if op == "d" else after
        if named is None:
            continue
        yield Change(pos, op, compared.key(named), None if op == "d" else after, unknown & names)


def _base(found: Suspects, difference: Difference) -> LakeRow | None:
    if difference.lake is None and difference.key not in found.positions:
        return None
    return LakeRow(found.positions[difference.key], difference.lake, found.unknown.get(difference.key, frozenset()))


def _groups(keys: Sequence[Texts], together: int) -> Iterator[Sequence[Texts]]:
    for start in range(0, len(keys), max(together, 1)):
        yield keys[start : start + together]


def _held(table: KeyedTable, keys: Sequence[Texts], asked: SourceSession) -> tuple[dict[Texts, Texts], LogMark]:
    """The source's rows with these keys, and the end of the log while nobody could change them."""
    compared, wanted = table.compared, frozenset(keys)
    with table.session.held(compared.schema, keys if compared.sought_by_key else None) as rows:
        read = ((compared.key(texts), texts) for texts in table.fetched.counted(rows))
        found = {key: texts for key, texts in read if key in wanted}
        return found, asked.mark()


def _difference(key: Texts, source: Texts | None, lake: LakeRow | None, compared: Compared) -> Difference | None:
    stored = lake.texts if lake is not None else None
    if source is None and stored is None:
        return None
    if source is None:
        return Difference(key, "not in the source", compared.names, None, stored)
    if stored is None or lake is None:
        return Difference(key, "missing in the lake", compared.names, source, None)
    names = tuple(
        name
        for name, ours, theirs in zip(compared.names, source, stored, strict=True)
        if ours != theirs and name not in lake.unknown
    )
    return Difference(key, "differs", names, source, stored) if names else None
