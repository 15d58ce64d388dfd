"""Joins: nested loops, hashing, index seeks, APPLY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.plans import Operator, Slice, Slices
from mssql_sandbox.exec.query.operators import Stage, Whole, gather
from mssql_sandbox.exec.scope import Field

Condition = Callable[[tuple, Context], bool | None]
Key = Callable[[tuple, Context], Any]


class LoopJoin:
    """INNER, LEFT or CROSS join by comparing all pairs; the right side is read once."""

    __slots__ = ("_condition", "_left", "_outer", "_right", "fields", "order")

    def __init__(self, left: Operator, right: Operator, condition: Condition | None, *, outer: bool) -> None:
        self._left = left
        self._right = right
        self._condition = condition
        self._outer = outer
        self.fields: Sequence[Field] = (*left.fields, *right.fields)
        self.order = left.order

    def open(self, context: Context) -> Slices:
        """Slices of joined rows."""
        condition = self._condition
        nulls = (None,) * len(self._right.fields) if self._outer else None
        held: list[Slice] = []

        def join(rows: Slice) -> Slice:
            if not held:
                held.append(gather(self._right.open(context)))
            right = held[0]
            out: Slice = []
            for row in rows:
                pairs = [row + other for other in right]
                if condition is not None:
                    pairs = [pair for pair in pairs if condition(pair, context) is True]
                if pairs:
                    out.extend(pairs)
                elif nulls is not None:
                    out.append(row + nulls)
            return out

        return Stage(self._left.open(context), join)


class HashJoin:
    """INNER or LEFT join on equal keys; `key` functions give None for NULL, which never matches.

    `seek`, where given, finds right rows by key values without reading the whole right side; it is used until it has
    been probed so often that reading everything is cheaper.
    """

    __slots__ = (
        "_left",
        "_left_key",
        "_outer",
        "_residual",
        "_right",
        "_right_key",
        "_seek",
        "_worth",
        "fields",
        "order",
    )

    def __init__(
        self,
        left: Operator,
        right: Operator,
        left_key: Key,
        right_key: Key,
        residual: Condition | None,
        *,
        outer: bool,
        seek: Callable[[tuple, Context], Slice] | None = None,
        worth: Callable[[], int] | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._left_key = left_key
        self._right_key = right_key
        self._residual = residual
        self._outer = outer
        self._seek = seek
        self._worth = worth
        self.fields: Sequence[Field] = (*left.fields, *right.fields)
        self.order = left.order

    def _build(self, context: Context) -> dict[Any, Slice]:
        table: dict[Any, Slice] = {}
        key = self._right_key
        for slice_ in self._right.open(context):
            for row in slice_:
                value = key(row, context)
                if value is not None:
                    table.setdefault(value, []).append(row)
        return table

    def open(self, context: Context) -> Slices:
        """Slices of joined rows, in the order of the left side."""
        key, residual, seek = self._left_key, self._residual, self._seek
        nulls = (None,) * len(self._right.fields) if self._outer else None
        found: dict[Any, Slice] = {}
        budget = self._worth() if seek is not None and self._worth is not None else 0
        state = {"seeks": 0, "whole": seek is None}

        def matches(row: tuple, value: Any) -> Slice:
            known = found.get(value)
            if known is not None or state["whole"]:
                return known or []
            assert seek is not None
            state["seeks"] += 1
            if state["seeks"] > budget:
                whole = self._build(context)
                found.clear()
                found.update(whole)
                state["whole"] = True
                return found.get(value, [])
            rows = found[value] = seek(row, context)
            return rows

        def join(rows: Slice) -> Slice:
            if state["whole"] and not found and seek is None:
                found.update(self._build(context))
            out: Slice = []
            for row in rows:
                value = key(row, context)
                others = matches(row, value) if value is not None else []
                if residual is not None:
                    others = [other for other in others if residual(row + other, context) is True]
                if others:
                    out.extend([row + other for other in others])
                elif nulls is not None:
                    out.append(row + nulls)
            return out

        return Stage(self._left.open(context), join)


class FullJoin:
    """RIGHT and FULL joins: everything is read, unmatched right rows come last."""

    __slots__ = ("_condition", "_full", "_left", "_right", "fields", "order")

    def __init__(self, left: Operator, right: Operator, condition: Condition, *, full: bool) -> None:
        self._left = left
        self._right = right
        self._condition = condition
        self._full = full
        self.fields: Sequence[Field] = (*left.fields, *right.fields)
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """All joined rows."""
        return Whole(lambda: self._joined(context))

    def _joined(self, context: Context) -> Slice:
        left, right = gather(self._left.open(context)), gather(self._right.open(context))
        condition = self._condition
        matched: set[int] = set()
        out: Slice = []
        missing = (None,) * len(self._right.fields)
        for row in left:
            hit = False
            for place, other in enumerate(right):
                if condition(row + other, context) is True:
                    out.append(row + other)
                    matched.add(place)
                    hit = True
            if not hit and self._full:
                out.append(row + missing)
        nulls = (None,) * len(self._left.fields)
        out.extend(nulls + other for place, other in enumerate(right) if place not in matched)
        return out


class Apply:
    """CROSS and OUTER APPLY: the right side is opened for every left row, its outer row."""

    __slots__ = ("_left", "_level", "_outer", "_right", "fields", "order")

    def __init__(self, left: Operator, right: Operator, *, level: int, outer: bool) -> None:
        self._left = left
        self._right = right
        self._level = level
        self._outer = outer
        self.fields: Sequence[Field] = (*left.fields, *right.fields)
        self.order = left.order

    def open(self, context: Context) -> Slices:
        """Slices of joined rows."""
        nulls = (None,) * len(self._right.fields)
        level = self._level

        def join(rows: Slice) -> Slice:
            out: Slice = []
            for row in rows:
                context.outer[level] = row
                others = gather(self._right.open(context))
                if others:
                    out.extend([row + other for other in others])
                elif self._outer:
                    out.append(row + nulls)
            return out

        return Stage(self._left.open(context), join)
