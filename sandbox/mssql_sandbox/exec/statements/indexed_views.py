"""Indexes of views: which views may have them, and that their unique keys stay unique.

No rows are kept: an indexed view is read like any other, and read again after each statement that changes one of its
tables, to find duplicates (2601). That costs what the view costs, so it is meant for small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.view_indexes import ViewIndex, keep, view_indexes, views_over
from mssql_sandbox.engine.text import display
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.query.views import plan_view
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_sandbox.exec.compiler import Compiler
    from mssql_sandbox.exec.routine import Frame

_CLUSTERED_ID = 1
_OUTER = ("LEFT", "RIGHT", "FULL")
_SUBQUERIES = (ast.ScalarSubquery, ast.Exists, ast.DerivedTable)
_REFUSED = {
    1941: "only unique clustered indexes are allowed. Consider creating unique clustered index instead.",
    10100: "it contains the DISTINCT keyword. Consider removing DISTINCT from the view or not indexing the view. "
    "Alternatively, consider replacing DISTINCT with GROUP BY or COUNT_BIG(*) to simulate DISTINCT on grouping "
    "columns.",
    10101: "it contains the TOP or OFFSET keyword. Consider removing TOP or OFFSET or not indexing the view.",
    10113: "it uses a LEFT, RIGHT, or FULL OUTER join, and no OUTER joins are allowed in indexed views. Consider using "
    "an INNER join instead.",
    10116: "it contains one or more UNION, INTERSECT, or EXCEPT operators. Consider creating a separate indexed view "
    "for each query that is an input to the UNION, INTERSECT, or EXCEPT operators of the original view.",
    10127: "it contains one or more subqueries. Consider changing the view to use only joins instead of subqueries. "
    "Alternatively, consider not indexing this view.",
    10138: "its select list does not include a proper use of COUNT_BIG. Consider adding COUNT_BIG(*) to select list.",
}


def create(
    frame: Frame, compiler: Compiler, transaction: Transaction, view: SchemaObject, node: st.CreateIndex
) -> None:  # fmt: skip
    """CREATE INDEX on a view.

    Raises:
        SqlError: 1939, 1940, 1941 and others for views that cannot have it, 1505 for duplicates.
    """
    definition = view.definition.node
    if "SCHEMABINDING" not in definition.options:
        raise SqlError(1939, f"Cannot create index on view '{view.name}' because the view is not schema bound.")
    known, index = view_indexes(view), node.index
    if any(each.name.casefold() == index.name.casefold() for each in known):
        raise error(1913, index=index.name, table=f"{view.schema.name}.{view.name}")
    if not known and index.clustered and not index.unique:
        raise SqlError(1941, f"Cannot create nonunique clustered index on view '{view.name}' because {_REFUSED[1941]}")
    if not known and not index.clustered:
        raise SqlError(1940, f"Cannot create index on view '{view.name}'. It does not have a unique clustered index.")
    if known and index.clustered:
        raise error(1902, table=f"{view.schema.name}.{view.name}", index=known[0].name)
    _check_query(view, definition.query)
    number = _CLUSTERED_ID if index.clustered else max(each.index_id for each in known) + 1
    columns = tuple((column.name, column.descending) for column in index.columns)
    made = ViewIndex(index.name, number, columns, index.unique, index.clustered, index.include)
    duplicate = _duplicate(frame, compiler, transaction, view, made)
    if duplicate is not None:
        raise error(1505, table=f"{view.schema.name}.{view.name}", index=made.name, values=duplicate)
    keep(view, transaction, (*known, made), _tables(compiler, definition.query))


def drop(compiler: Compiler, transaction: Transaction, view: SchemaObject, name: str) -> bool:
    """DROP INDEX of a view; with the clustered index go all others. False when the name is none."""
    known = view_indexes(view)
    found = next((each for each in known if each.name.casefold() == name.casefold()), None)
    if found is None:
        return False
    kept = () if found.clustered else tuple(each for each in known if each is not found)
    keep(view, transaction, kept, _tables(compiler, view.definition.node.query))
    return True


def forget(compiler: Compiler, transaction: Transaction, view: SchemaObject) -> None:
    """ALTER VIEW and DROP VIEW take the indexes away."""
    if view_indexes(view):
        keep(view, transaction, (), _tables(compiler, view.definition.node.query))


def check(frame: Frame, table: Table) -> Steps:
    """Error 2601 where a change of a table has made a row of an indexed view twice."""
    for view in views_over(table):
        for index in view_indexes(view):
            if not index.unique:
                continue

            def work(transaction: Transaction, view: SchemaObject = view, index: ViewIndex = index) -> None:
                duplicate = _duplicate(frame, frame.compiler(), transaction, view, index)
                if duplicate is not None:
                    raise error(2601, table=f"{view.schema.name}.{view.name}", index=index.name, values=duplicate)

            yield from frame.session.transactions.run(work)
    return None


def _check_query(view: SchemaObject, query: ast.Query) -> None:
    """Queries that an indexed view cannot have."""
    body = query.body
    found = (
        (10116, isinstance(body, ast.SetOperation)),
        (10100, isinstance(body, ast.Select) and body.distinct),
        (10101, isinstance(body, ast.Select) and (body.top is not None or query.offset is not None)),
        (10113, any(isinstance(part, ast.Join) and part.kind in _OUTER for part in walk(body))),
        (10127, any(isinstance(part, _SUBQUERIES) for part in walk(body))),
        (10138, isinstance(body, ast.Select) and bool(body.group_by) and not any(map(_counts, walk(body.items)))),
    )
    for number, refused in found:
        if refused:
            raise SqlError(number, f"Cannot create index on view '{view.name}' because {_REFUSED[number]}")


def _counts(part: Any) -> bool:
    return isinstance(part, ast.Function) and part.name[-1].upper() == "COUNT_BIG" and part.star


def _tables(compiler: Compiler, query: ast.Query) -> set[Table]:
    found = (compiler.names.find(part.name) for part in walk(query) if isinstance(part, ast.NamedTable))
    return {table for table in found if isinstance(table, Table)}


def _duplicate(
    frame: Frame, compiler: Compiler, transaction: Transaction, view: SchemaObject, index: ViewIndex
) -> str | None:
    """The first key of a unique index that two rows of the view have, as errors show it."""
    plan = plan_view(compiler, view)
    places = [_place(plan.fields, name) for name, _ in index.columns]
    if not index.unique:
        return None
    keys: list[Callable[[Any], Any] | None] = [sort_key(plan.fields[place].type) for place in places]
    seen: set[tuple] = set()
    for row in gather(plan.open(frame.context(transaction))):
        values = [row[place] for place in places]
        key = tuple(
            value if value is None or make is None else make(value) for value, make in zip(values, keys, strict=True)
        )
        if key in seen:
            return f"({', '.join(_shown(row[place], plan.fields[place]) for place in places)})"
        seen.add(key)
    return None


def _shown(value: Any, field: Field) -> str:
    return "<NULL>" if value is None else display(value, field.type)


def _place(fields: Sequence[Field], name: str) -> int:
    for place, field in enumerate(fields):
        if field.name.casefold() == name.casefold():
            return place
    raise error(1911, column=name)
