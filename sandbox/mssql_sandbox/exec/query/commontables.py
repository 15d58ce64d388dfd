"""Common table expressions, recursive ones included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.plans import Operator, Slice, Slices
from mssql_sandbox.exec.query.alignment import as_types
from mssql_sandbox.exec.query.limits import refuse_order
from mssql_sandbox.exec.query.operators import Rows, Whole, gather
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A defined name: its query is compiled at each use, like a view; `recursive` names give their own rows."""

    node: ast.CommonTable
    scope: Scope | None
    around: dict
    maximum: int
    rows: Rows | None = None


def define(compiler: Compiler, node: ast.CommonTable, parent: Scope | None, query: ast.Query) -> None:
    """Make the name visible to what follows."""
    maximum = next((number for word, number in query.options if word == "MAXRECURSION" and number is not None), 100)
    refuse_order(node.query)
    if any(table is not node and compiler.fold(table.name) == compiler.fold(node.name) for table in query.ctes):
        raise error(239, name=node.name)
    around = dict(compiler.common_tables)
    compiler.common_tables[compiler.fold(node.name)] = CommonTable(node, parent, around, maximum)


@contextmanager
def with_common_tables(compiler: Compiler, ctes: Sequence[ast.CommonTable]) -> Iterator[None]:
    """Make WITH's names visible to a statement that changes rows."""
    outside = dict(compiler.common_tables)
    try:
        for table in ctes:
            define(compiler, table, None, ast.Query(ast.Values(())))
        yield
    finally:
        compiler.common_tables = outside


def plan_common(compiler: Compiler, table: CommonTable, alias: str, parent: Scope | None) -> Operator:
    """The plan of one reference to a common table expression, in a query whose enclosing scope is `parent`."""
    if table.rows is not None:
        fields = [replace(field, qualifier=(alias,)) for field in table.rows.fields]
        return Renamed(table.rows, fields)
    inside = compiler.common_tables
    compiler.common_tables = dict(table.around)
    try:
        name = table.node.name
        if _mentions(compiler, table.node.query, name):
            plan = _recursive(compiler, table)
        else:
            plan = compiler.query(table.node.query, table.scope)
        if parent is not None and table.scope is None:
            plan = Kept(plan)
    finally:
        compiler.common_tables = inside
    return Renamed(plan, named(plan.fields, table.node.columns, alias, table.node.name))


def named(fields: Sequence[Field], columns: Sequence[str], alias: str, table: str) -> list[Field]:
    """Fields of a derived table: column list, alias; 8155 if a column has no name, 8158/8159 for a wrong list."""
    if columns and len(columns) != len(fields):
        word, number = ("fewer", 8159) if len(columns) > len(fields) else ("more", 8158)
        raise SqlError(number, f"'{table}' has {word} columns than were specified in the column list.")
    result = []
    for place, field in enumerate(fields):
        name = columns[place] if columns else field.name
        if not name:
            raise SqlError(8155, f"No column name was specified for column {place + 1} of '{table}'.", state=2)
        result.append(replace(field, name=name, qualifier=(alias,), hidden=False))
    return result


class Kept:
    """Rows of an uncorrelated plan, computed once per statement for subqueries that read them again."""

    __slots__ = ("_plan", "fields", "order")

    def __init__(self, plan: Operator) -> None:
        self._plan = plan
        self.fields = plan.fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The rows of the first execution."""
        return Whole(lambda: context.once(self, lambda: gather(self._plan.open(context))))


class Renamed:
    """A plan under other names."""

    __slots__ = ("_plan", "fields", "order")

    def __init__(self, plan: Operator, fields: Sequence[Field]) -> None:
        self._plan = plan
        self.fields = fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The plan's own slices."""
        return self._plan.open(context)


def _mentions(compiler: Compiler, query: ast.Query, name: str) -> bool:
    fold = compiler.fold
    return any(
        isinstance(part, ast.NamedTable) and len(part.name) == 1 and fold(part.name[0]) == fold(name)
        for part in walk(query)
    )


def _recursive(compiler: Compiler, table: CommonTable) -> Operator:
    """Anchor members, then recursive members over the rows of the previous round, until there are none."""
    body = table.node.query.body
    members = _members(body)
    name = table.node.name
    anchors = [m for m in members if not _body_mentions(compiler, m, name)]
    steps = [m for m in members if _body_mentions(compiler, m, name)]
    if not anchors or not steps:
        raise SqlError(
            252, f"Recursive common table expression '{name}' does not contain a top-level UNION ALL operator."
        )
    first = [compiler.query(ast.Query(anchor), table.scope) for anchor in anchors]
    fields = named(first[0].fields, table.node.columns, name, name)
    current: list[Slice] = [[]]
    source = Rows([replace(field, nullable=True) for field in fields], lambda _context: current[0])
    compiler.common_tables[compiler.fold(name)] = replace(table, rows=source)
    later = []
    for step in steps:
        plan = compiler.query(ast.Query(step), table.scope)
        for have, want in zip(plan.fields, fields, strict=True):
            if have.type.name != want.type.name and have.special != "null":
                raise SqlError(
                    240, f"Types don't match between the anchor and the recursive part in column \"{want.name}\" of "
                    f'recursive query "{name}".'
                )  # fmt: skip
        later.append(as_types(plan, fields))
    anchors_typed = [as_types(plan, fields) for plan in first]

    def rows(context: Context) -> Iterable[tuple]:
        found = [row for plan in anchors_typed for row in gather(plan.open(context))]
        result = list(found)
        rounds = 0
        while found:
            rounds += 1
            outside, current[0] = current[0], found
            fresh = [row for plan in later for row in gather(plan.open(context))]
            current[0] = outside
            if fresh and table.maximum and rounds > table.maximum:
                raise error(530, count=table.maximum)
            result.extend(fresh)
            found = fresh
        return result

    return Rows([replace(field, nullable=True) for field in fields], rows)


def _members(body: ast.QueryBody) -> list[ast.QueryBody]:
    """The operands of the UNION ALLs at the end of a chain; a UNION before them is one operand."""
    later = []
    while isinstance(body, ast.SetOperation) and body.operator == "UNION ALL":
        later.append(body.right)
        body = body.left
    return [body, *reversed(later)]


def _body_mentions(compiler: Compiler, body: ast.QueryBody, name: str) -> bool:
    return _mentions(compiler, ast.Query(body), name)
