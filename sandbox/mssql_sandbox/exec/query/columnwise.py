"""Projections of large reads: conversions of single columns, computed for a slice column by column.

A chain (`Expr.chain`) is a column and the functions applied to it as a whole. What several expressions share, such as a
value and its length, is computed once. Small slices and other expressions go row by row (operators.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Chain, Expr, Fn, chain_of

FEW_ROWS = 8
_TRANSPOSED_SHARE = 4


class ColumnPlan:
    """How the columns of a projection are computed from the columns of its source."""

    def __init__(self, exprs: Sequence[Expr], width: int) -> None:
        self._outputs: list[Chain | Callable[[Sequence[tuple], Context], Any]] = []
        self._steps: dict[Chain, Chain] = {}
        for expr in exprs:
            chain = chain_of(expr)
            if chain is None:
                self._outputs.append(_once(expr.fn) if expr.constant else _by_rows(expr.fn))
                continue
            self._outputs.append(chain)
            place, functions = chain
            for count in range(1, len(functions) + 1):
                self._steps[place, functions[:count]] = (place, functions[: count - 1])
        places = {chain[0] for chain in self._outputs if isinstance(chain, tuple)}
        self._places = sorted(places)
        self._transposed = len(places) * _TRANSPOSED_SHARE >= width

    def __call__(self, rows: Sequence[tuple], context: Context) -> list[tuple]:
        """The new rows of a non-empty slice."""
        made: dict[Chain, Sequence[Any]] = {}
        if self._transposed:
            columns = list(zip(*rows, strict=True))
            made.update(((place, ()), columns[place]) for place in self._places)
        else:
            made.update(((place, ()), list(map(itemgetter(place), rows))) for place in self._places)
        for chain, before in self._steps.items():
            made[chain] = chain[1][-1](made[before])
        outputs = [made[one] if isinstance(one, tuple) else one(rows, context) for one in self._outputs]
        return list(zip(*outputs))  # noqa: B905 - constants have no end


def _once(fn: Fn) -> Callable[[Sequence[tuple], Context], Any]:
    return lambda rows, context: repeat(fn(rows[0], context))


def _by_rows(fn: Fn) -> Callable[[Sequence[tuple], Context], Any]:
    return lambda rows, context: [fn(row, context) for row in rows]


def column_plan(exprs: Sequence[Expr], width: int) -> ColumnPlan | None:
    """The columnwise plan of a projection from rows of `width` columns; None if it must, or may as well, go by rows.

    An expression that varies from call to call keeps the rows' order of evaluation.
    """
    if any(expr.varying for expr in exprs) or not any(expr.chain for expr in exprs):
        return None
    return ColumnPlan(exprs, width)
