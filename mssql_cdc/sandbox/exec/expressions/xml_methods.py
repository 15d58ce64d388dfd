"""Methods of xml values: value(), query(), exist(); the rows of nodes(). modify() is not known and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import converter
from mssql_cdc.sandbox.engine.types import SqlType
from mssql_cdc.sandbox.engine.xml_paths import XmlNode, select, serialised, string_value
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import Expr, derived
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql.parser import Parser

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler

METHODS = frozenset({"value", "query", "exist"})
XML = SqlType("xml")


def _literal(node: ast.Expression, method: str) -> str:
    if not (isinstance(node, ast.Literal) and isinstance(node.value, str)):
        raise SqlError(8172, f'The argument 1 of the XML data type method "{method}" must be a string literal.')
    return node.value


def call(compiler: Compiler, target: Expr, method: str, arguments: tuple[ast.Expression, ...]) -> Expr:
    """A method of an xml expression."""
    name = method.lower()
    if name not in METHODS:
        raise SqlError(
            6506, f"Could not find method '{method}' for type 'xml': this server knows value, query, exist and nodes.",
            state=10,
        )  # fmt: skip
    if len(arguments) != (2 if name == "value" else 1):
        raise error(174, name=name, count=2 if name == "value" else 1)
    path = _literal(arguments[0], name)
    inner = target.fn
    apply: Callable[[str], Any]
    if name == "value":
        type_, apply = _value(compiler, path, _literal(arguments[1], name))
    elif name == "exist":
        type_, apply = t.BIT, lambda text: int(bool(select(text, path, "exist")))
    else:
        type_, apply = XML, lambda text: "".join(serialised(node) for node in select(text, path, "query"))

    def fn(row: tuple, context: Context) -> Any:
        text = inner(row, context)
        return None if text is None else apply(text)

    return derived(type_, fn, target, nullable=True)


def _value(compiler: Compiler, path: str, written: str) -> tuple[SqlType, Callable[[str], Any]]:
    type_ = compiler.type_of(Parser(written).type_name(), cast=True)
    convert = converter(t.nvarchar(t.MAX, collation=compiler.collation), type_)

    def apply(text: str) -> Any:
        found = select(text, path, "value")
        if len(found) > 1:
            raise SqlError(
                2389, "XQuery [value()]: 'value()' requires a singleton (or empty sequence), found operand of type "
                "'xdt:untypedAtomic *'"
            )  # fmt: skip
        return convert(string_value(found[0])) if found else None

    return type_, apply


def nodes(target: Expr, arguments: tuple[ast.Expression, ...]) -> Callable[[tuple, Context], Iterable[tuple]]:
    """The rows of xml.nodes(path): one xml value per node, which paths enter at that node."""
    if len(arguments) != 1:
        raise error(174, name="nodes", count=1)
    path = _literal(arguments[0], "nodes")
    inner = target.fn

    def rows(row: tuple, context: Context) -> Iterable[tuple]:
        text = inner(row, context)
        return [] if text is None else [(XmlNode(serialised(node)),) for node in select(text, path, "nodes")]

    return rows
