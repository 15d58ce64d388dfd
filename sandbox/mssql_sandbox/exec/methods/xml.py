"""Methods of xml values: value(), query(), exist(), modify(), and the rows of nodes().

Queries are literals, so they are parsed when the statement is compiled; sql:variable and sql:column in them are
expressions of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.engine.xml import queries, syntax
from mssql_sandbox.engine.xml.atomics import Atomic, shown
from mssql_sandbox.engine.xml.changes import check
from mssql_sandbox.engine.xml.evaluation import Items, SqlValues
from mssql_sandbox.engine.xml.parsing import parsed
from mssql_sandbox.engine.xml.query_parser import parse_query
from mssql_sandbox.engine.xml.tree import Types
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, derived
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.parser import Parser

METHODS = frozenset({"value", "query", "exist", "modify"})
MODIFY = ".modify"
"""The name under which the parser passes `SET x.modify(…)`: modify() is not allowed elsewhere."""
XML = SqlType("xml")


@dataclass(frozen=True, slots=True)
class _Query:
    """A parsed query, the SQL values it uses, and the types that a schema gives to the nodes."""

    tree: syntax.Expr
    values: Callable[[tuple, Context], SqlValues]
    used: tuple[Expr, ...]
    types: Types | None


def call(
    compiler: Compiler, target: Expr, node: ast.MethodCall, scope: Scope, types: Types | None = None
) -> Expr:  # fmt: skip
    """A method of an xml expression."""
    name = "modify" if node.method == MODIFY else node.method.lower()
    if name not in METHODS:
        raise SqlError(6506, f"Could not find method '{node.method}' for type 'xml'.", state=10)
    if name == "modify" and node.method != MODIFY:
        raise SqlError(8137, "Incorrect use of the XML data type method 'modify'. A non-mutator method is expected in "
                       "this context.")  # fmt: skip
    wanted = 2 if name == "value" else 1
    if len(node.arguments) != wanted:
        raise error(174, name=name, count=wanted)
    query = _query(compiler, node.arguments[0], name, scope, types)
    if name == "modify":
        return _modified(target, node, query)
    type_, apply = _value(compiler, query, node) if name == "value" else _PLAIN[name]
    inner = target.fn

    def fn(row: tuple, context: Context) -> Any:
        text = inner(row, context)
        return None if text is None else apply(text, query.tree, query.values(row, context), query.types)

    return derived(type_, fn, target, *query.used, nullable=True)


_Apply = Callable[[str, syntax.Expr, SqlValues, Types | None], Any]
_PLAIN: dict[str, tuple[SqlType, _Apply]] = {
    "exist": (t.BIT, lambda *arguments: int(queries.exists(*arguments))),
    "query": (XML, queries.fragment),
}


def _literal(node: ast.Expression, method: str, place: int = 1) -> str:
    if not (isinstance(node, ast.Literal) and isinstance(node.value, str)):
        raise SqlError(8172, f'The argument {place} of the XML data type method "{method}" must be a string literal.')
    return node.value


def _query(compiler: Compiler, node: ast.Expression, method: str, scope: Scope, types: Types | None) -> _Query:
    tree = parse_query(_literal(node, method), method)
    if method == "query" and _bare_attribute(tree):
        raise SqlError(2396, "XQuery [query()]: Attribute may not appear outside of an element")
    found: dict[tuple[str, str], Expr] = {}
    for part in _sql_values(tree):
        reference = ast.Variable(part.name) if part.kind == "variable" else ast.ColumnRef(_column(part.name))
        found[part.kind, part.name] = compiler.value(reference, scope)
    items = tuple((key, expr.fn, expr.type) for key, expr in found.items())

    def values(row: tuple, context: Context) -> SqlValues:
        return {key: _item(fn(row, context), type_) for key, fn, type_ in items}

    return _Query(tree, values, tuple(found.values()), types)


def _column(written: str) -> ast.Name:
    """The parts of a name as in sql:column."""
    return Parser(written).name()


def _bare_attribute(tree: syntax.Expr) -> bool:
    while isinstance(tree, syntax.Filtered):
        tree = tree.source
    return isinstance(tree, syntax.Step) and tree.kind == "attribute"


def _sql_values(part: Any) -> Iterator[syntax.SqlValue]:
    """All sql:variable and sql:column inside a query."""
    if isinstance(part, syntax.SqlValue):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _sql_values(each)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _sql_values(getattr(part, field.name))


def _item(value: Any, type_: SqlType) -> Items:
    """A SQL value as a sequence; NULL is empty, an xml value its nodes."""
    if value is None:
        return []
    if type_.name == "xml":
        return [parsed(value)]
    if type_.name == "bit":
        return [bool(value)]
    if type_.name in t.INTEGERS or isinstance(value, Decimal):
        return [Decimal(value)]
    if isinstance(value, float):
        return [value]
    style = 126 if type_.name in t.DATES else None
    return [convert(value, type_, t.nvarchar(t.MAX), style=style)]


def _value(compiler: Compiler, query: _Query, node: ast.MethodCall) -> tuple[SqlType, _Apply]:
    """value(): 2389 if more than one item is possible, unless a schema might exclude it."""
    type_ = compiler.type_of(Parser(_literal(node.arguments[1], "value", 2)).type_name(), cast=True)
    if query.types is None and query.tree.many:
        raise queries.several("value")
    wide = t.nvarchar(t.MAX, collation=compiler.collation)

    def apply(text: str, tree: syntax.Expr, values: SqlValues, types: Types | None) -> Any:
        found: Atomic | None = queries.single_value(text, tree, values, types)
        if found is None:
            return None
        if isinstance(found, float):
            return convert(found, t.FLOAT, type_)
        return convert(shown(found), wide, type_)

    return type_, apply


def _modified(target: Expr, node: ast.MethodCall, query: _Query) -> Expr:
    """The value after modify(); 5302 for NULL."""
    check(query.tree, typed=query.types is not None)
    shown_target = node.target.name if isinstance(node.target, ast.Variable) else "xml"
    if isinstance(node.target, ast.ColumnRef):
        shown_target = node.target.parts[-1]
    inner = target.fn

    def fn(row: tuple, context: Context) -> Any:
        text = inner(row, context)
        if text is None:
            raise SqlError(5302, f"Mutator 'modify()' on '{shown_target}' cannot be called on a null value.")
        return queries.modified(text, query.tree, query.values(row, context), query.types)

    return derived(XML, fn, target, *query.used, nullable=False)


def nodes(
    compiler: Compiler, target: Expr, arguments: tuple[ast.Expression, ...], scope: Scope, types: Types | None = None
) -> Callable[[tuple, Context], Iterable[tuple]]:
    """The rows of xml.nodes(path): one xml value per node, at which paths start."""
    if len(arguments) != 1:
        raise error(174, name="nodes", count=1)
    query = _query(compiler, arguments[0], "nodes", scope, types)
    inner = target.fn

    def rows(row: tuple, context: Context) -> Iterable[tuple]:
        text = inner(row, context)
        if text is None:
            return []
        return [(node,) for node in queries.references(text, query.tree, query.values(row, context), query.types)]

    return rows
