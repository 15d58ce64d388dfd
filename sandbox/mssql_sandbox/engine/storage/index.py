"""Indexes and keys: how a row becomes a sort key, and the sorted entries of an index.

What does not belong here: visibility of rows and duplicate errors (table.py, writing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.rows import row_getter
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.sorted_keys import TOP, SortedKeys, Top


class Descending:
    """Reverses the order of a key."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending | Top) -> bool:
        return isinstance(other, Top) or other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of keys; None is open."""

    low: Any = None
    after: bool = False
    high: Any = None
    through: bool = True


@dataclass(slots=True, eq=False)
class Index:
    """An index: columns by name with direction, uniqueness, filter and its entries.

    `constraint` is 'PRIMARY KEY' or 'UNIQUE' when the index carries one; `predicate` is a filtered index's condition as
    a function of the row. `key` gives the sort key of a row: the bare value for a unique single-column index, else a
    tuple; non-unique indexes append the row id. A `hypothetical` index is shown, and never kept: it is `disabled`, too.
    """

    name: str
    index_id: int
    columns: tuple[tuple[str, bool], ...]
    unique: bool = False
    clustered: bool = False
    constraint: str = ""
    object_id: int = 0
    included: tuple[str, ...] = ()
    predicate: Callable[[tuple], bool | None] | None = None
    predicate_text: str = ""
    ignore_duplicates: bool = False
    disabled: bool = False
    system_named: bool = False
    hypothetical: bool = False
    entries: SortedKeys = field(default_factory=SortedKeys)
    ordinals: tuple[int, ...] = ()
    key: Callable[[tuple], Any] = field(default=itemgetter(0))
    _parts: tuple[Callable[[Any], Any], ...] = ()

    def bind(self, columns: Sequence[Column]) -> None:
        """Compute the columns' positions in the row and the key functions; called again after every ALTER TABLE."""
        places = {column.name: place for place, column in enumerate(columns)}
        self.ordinals = tuple(places[name] for name, _ in self.columns)
        parts = [
            _part(columns[place], descending=down) for place, (_, down) in zip(self.ordinals, self.columns, strict=True)
        ]
        self._parts = tuple(part or _same for part in parts)
        ordinals = self.ordinals
        if all(part is None for part in parts):
            self.key = itemgetter(*ordinals) if self.scalar else row_getter(ordinals)
        elif self.scalar:
            place, part = ordinals[0], self._parts[0]
            self.key = lambda row: part(row[place])
        else:
            self.key = _key_function(ordinals, parts)

    @property
    def scalar(self) -> bool:
        """Whether keys are bare values instead of tuples."""
        return self.unique and len(self.columns) == 1

    def covers(self, row: tuple) -> bool:
        """Whether the row has an entry here (filtered indexes leave rows out)."""
        return self.predicate is None or self.predicate(row) is True

    def entry_key(self, row: tuple, rowid: int) -> Any:
        """The key that the row's entry has in `entries`."""
        key = self.key(row)
        return key if self.unique else (*key, rowid)

    def add(self, row: tuple, rowid: int) -> None:
        """Add a row."""
        key = self.key(row)
        self.entries.add(key if self.unique else (*key, rowid), rowid)

    def discard(self, key: Any, rowid: int) -> None:
        """Remove a row's entry by its key."""
        self.entries.discard(key if self.unique else (*key, rowid), rowid)

    def prefix(self, values: Sequence[object]) -> Any:
        """The key (or key prefix) of column values in storage form."""
        key = tuple(part(value) for part, value in zip(self._parts, values, strict=False))
        return next(iter(key)) if self.scalar else key

    def bounds(
        self,
        low: Sequence[object] | None,
        high: Sequence[object] | None,
        *,
        low_inclusive: bool,
        high_inclusive: bool,
    ) -> Bounds:
        """The range of keys between two prefixes of column values, in index order."""
        start = None if low is None else self.prefix(low)
        stop = None if high is None else self.prefix(high)
        if not self.scalar:
            # A prefix sorts before all its extensions: (prefix, TOP) is the position after them.
            if start is not None and not low_inclusive:
                start = (*start, TOP)
            if stop is not None and high_inclusive:
                stop = (*stop, TOP)
        return Bounds(start, not low_inclusive, stop, high_inclusive)


def _part(column: Column, *, descending: bool) -> Callable[[Any], Any] | None:
    """Key of one column's value; None if the value is its own key. NULL sorts lowest: `()` before `(key,)`."""
    own = sort_key(column.type)
    if not column.nullable and not descending:
        return own
    if own is None and not descending:
        return _nullable

    def part(value: Any) -> Any:
        key = value if own is None or value is None else own(value)
        if column.nullable:
            key = () if value is None else (key,)
        return Descending(key) if descending else key

    return part


def _key_function(places: Sequence[int], parts: Sequence[Callable[[Any], Any] | None]) -> Callable[[tuple], tuple]:
    """`(part(row[place]), …)` as one compiled expression: a loop would cost twice as much for every row written."""
    cells = []
    for number, (place, part) in enumerate(zip(places, parts, strict=True)):
        if part is None:
            cells.append(f"row[{place}]")
        elif part is _nullable:
            cells.append(f"(() if row[{place}] is None else (row[{place}],))")
        else:
            cells.append(f"part{number}(row[{place}])")
    environment = {f"part{number}": part for number, part in enumerate(parts)}
    return eval(f"lambda row: ({', '.join(cells)},)", environment)  # noqa: S307 - our own source


def _nullable(value: Any) -> tuple:
    return () if value is None else (value,)


def _same(value: Any) -> Any:
    return value
