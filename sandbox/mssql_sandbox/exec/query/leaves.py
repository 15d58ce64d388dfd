"""Single sources of FROM before they enter a scope: stored tables, and operators for everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.plans import Operator, Slice
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast


@dataclass(slots=True)
class Leaf:
    """A source with several access paths: `plan` makes its operator once conditions are known."""

    fields: Sequence[Field]
    table: Table | None = None
    hints: frozenset[str] = frozenset()
    operator: Operator | None = None
    rename: Callable[[Operator], Operator] | None = None
    filters: list[ast.Expression] = field(default_factory=list)
    narrow: tuple[int, Callable[[Fn], Operator]] | None = None
    """A column, and how to make the operator for rows with one value of it, if that is cheaper."""


def view_leaf(view: Any, fields: Sequence[Field]) -> Leaf:
    """A catalogue view, which gives all its rows or, if it can, those about one table."""

    def rows(context: Context) -> Iterable[tuple]:
        return view.rows(context.session, context.transaction)

    def about(value: Fn) -> Operator:
        def some(context: Context) -> Iterable[tuple]:
            object_id = value((), context)
            return () if object_id is None else view.rows(context.session, context.transaction, object_id=object_id)

        return Rows(fields, some)

    place = next((number for number, one in enumerate(fields) if one.name == view.about), None)
    return Leaf(fields, operator=Rows(fields, rows), narrow=None if place is None else (place, about))


def computed_values(table: Table) -> Callable[[Slice, Context], Slice] | None:
    """Computes columns that are not stored because they are not deterministic."""
    places = [
        (place, col.computed.evaluate) for place, col in enumerate(table.columns)
        if col.computed is not None and not col.computed.stored
    ]  # fmt: skip
    if not places:
        return None

    def fill(rows: Slice, _context: Context) -> Slice:
        out = []
        for row in rows:
            cells = list(row)
            for place, evaluate in places:
                cells[place] = evaluate(row)
            out.append(tuple(cells))
        return out

    return fill
