"""Table-valued functions in FROM: the catalogue's (change functions), users', STRING_SPLIT and other built-ins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler, call_argument
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce
from mssql_sandbox.exec.methods import xml
from mssql_sandbox.exec.methods.xml_types import TYPED, xml_types
from mssql_sandbox.exec.plans import Operator, Slices
from mssql_sandbox.exec.query.operators import Opened, Rows
from mssql_sandbox.exec.query.user_functions import plan_table_function
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.tsql import ast


def plan_function(
    compiler: Compiler, node: ast.FunctionTable | ast.FullTextTable, parent: Scope | None
) -> Operator:  # fmt: skip
    """The plan of a call; arguments may refer to outer columns (APPLY). 208 for unknown names."""
    if isinstance(node, ast.FullTextTable):
        raise error(7609)
    level = 0 if parent is None else parent.level + 1
    scope = Scope((), compiler.fold, parent=parent, level=level)
    if node.name[:-1] and node.name[-1].lower() == "nodes":
        return _xml_nodes(compiler, node, scope)
    arguments = [call_argument(compiler, argument, scope) for argument in node.arguments]
    name = node.name[-1]
    alias = node.alias or name
    if len(node.name) == 1:
        maker = _BUILT_IN.get(name.upper())
        if maker is not None:
            return _qualified(maker(compiler, node, arguments), alias, node.columns)
    place = compiler.names.place(node.name)
    catalog = compiler.session.server.catalog
    found = None if catalog is None else catalog.table_function(place.database, place.schema, place.name)
    if found is not None:
        if found.depends_on is not None:
            compiler.names.find(found.depends_on)
        return _qualified(_system(compiler, found, node, arguments), alias, node.columns)
    module = compiler.names.find(node.name)
    if module is not None and module.type_code in ("IF", "TF"):
        return _qualified(plan_table_function(compiler, module, node, arguments), alias, node.columns)
    failure = error(208, name=".".join(node.name))
    failure.line = node.line
    raise failure


class Qualified:
    """A plan whose fields carry a table name."""

    __slots__ = ("_plan", "fields", "order")

    def __init__(self, plan: Operator, fields: Sequence[Field]) -> None:
        self._plan = plan
        self.fields = fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The plan's own slices."""
        return self._plan.open(context)


def _qualified(plan: Operator, alias: str, columns: Sequence[str]) -> Operator:
    names = columns or [field.name for field in plan.fields]
    fields = [replace(field, name=name, qualifier=(alias,)) for field, name in zip(plan.fields, names, strict=False)]
    return Qualified(plan, fields)


class SystemFunctionScan:
    """Slices of a function of the catalogue."""

    __slots__ = ("_arguments", "_found", "fields", "order")

    def __init__(self, found: Any, arguments: Sequence[Expr], fields: Sequence[Field]) -> None:
        self._found = found
        self._arguments = [argument.fn for argument in arguments]
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """Opened with the first `next`."""
        values = [fn((), context) for fn in self._arguments]
        return Opened(lambda: iter(self._found.slices(context.session, context.transaction, *values)))


def _system(compiler: Compiler, found: Any, node: ast.FunctionTable, arguments: list[Expr]) -> Operator:
    if len(arguments) != len(found.arguments):
        number = 313 if len(arguments) < len(found.arguments) else 8144
        if number == 8144:
            raise error(8144, name=".".join(node.name))
        raise error(313, name=".".join(node.name))
    typed = [coerce(argument, type_) for argument, type_ in zip(arguments, found.arguments, strict=True)]
    collation = compiler.collation
    fields = [
        Field(col.name, t.with_collation(col.type, col.type.collation or collation), col.nullable, (), col)
        for col in found.columns
    ]
    return SystemFunctionScan(found, typed, fields)


def _xml_nodes(compiler: Compiler, node: ast.FunctionTable, scope: Scope) -> Operator:
    """value.nodes(path) AS table(column), over a variable or an outer column."""
    parts = node.name[:-1]
    reference = ast.Variable(parts[0]) if parts[0].startswith("@") else ast.ColumnRef(parts, node.line)
    target = compiler.value(reference, scope)
    if target.type.name != "xml" or not node.alias or len(node.columns) != 1:
        raise SqlError(
            493, f"The method nodes() of '{'.'.join(parts)}' needs an xml value, and a table and a column alias."
        )
    types = xml_types(compiler, reference, scope)
    rows = xml.nodes(compiler, target, node.arguments, scope, types)
    special = "" if types is None else TYPED
    fields = [Field(node.columns[0], xml.XML, True, (node.alias,), special=special)]
    return Rows(fields, lambda context: rows((), context))


def _string_split(compiler: Compiler, _node: ast.FunctionTable, arguments: list[Expr]) -> Operator:
    if len(arguments) not in (2, 3):
        raise error(174, name="string_split", count=2)
    text = arguments[0].fn
    separator = arguments[1].fn
    wants_ordinal = len(arguments) == 3 and bool(arguments[2].value)
    length = arguments[0].type.length or 4000
    national = arguments[0].type.name in t.NATIONAL
    type_ = (t.nvarchar if national else t.varchar)(length, collation=compiler.collation)
    fields = [Field("value", type_, False), *([Field("ordinal", t.BIGINT, False)] if wants_ordinal else [])]

    def rows(context: Context) -> Iterable[tuple]:
        value, sign = text((), context), separator((), context)
        if value is None or sign is None:
            return
        if len(sign) != 1:
            raise error(214, name="separator", type="nchar(1)/nvarchar(1)")
        for number, part in enumerate(value.split(sign), 1):
            yield (part, number) if wants_ordinal else (part,)

    return Rows(fields, rows)


def _generate_series(_compiler: Compiler, _node: ast.FunctionTable, arguments: list[Expr]) -> Operator:
    if len(arguments) not in (2, 3):
        raise error(174, name="generate_series", count=2)
    type_ = arguments[0].type
    functions = [coerce(argument, type_).fn for argument in arguments]

    def rows(context: Context) -> Iterable[tuple]:
        found = [fn((), context) for fn in functions]
        if None in found:
            return
        start, stop = found[0], found[1]
        step = found[2] if len(found) == 3 else (1 if start <= stop else -1)
        if step == 0:
            raise SqlError(4199, "Argument value 0 is invalid for argument 3 of generate_series function.")
        value = start
        while value <= stop if step > 0 else value >= stop:
            yield (value,)
            value += step

    return Rows([Field("value", type_, False)], rows)


def _openjson(compiler: Compiler, node: ast.FunctionTable, arguments: list[Expr]) -> Operator:
    text = coerce(arguments[0], t.nvarchar(t.MAX, collation=compiler.collation)).fn
    path = arguments[1].fn if len(arguments) > 1 else None
    wide = t.nvarchar(t.MAX, collation=compiler.collation)
    schema = [(name, compiler.type_of(type_), where) for name, type_, where in node.schema]
    if schema:
        fields = [Field(name, type_) for name, type_, _ in schema]
    else:
        fields = [Field("key", t.nvarchar(4000, collation=compiler.collation), False), Field("value", wide),
                  Field("type", t.TINYINT, False)]  # fmt: skip

    def rows(context: Context) -> Iterable[tuple]:
        source = text((), context)
        if source is None:
            return
        value = at_path(parsed(source), "$" if path is None else path((), context))
        if schema:
            for item in value if isinstance(value, list) else [value] if value is not None else []:
                yield tuple(_member(item, type_, where, wide) for _, type_, where in schema)
            return
        pairs = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
        for key, item in pairs:
            yield str(key), _shown(item), _kind(item)

    return Rows(fields, rows)


def parsed(text: str) -> Any:
    """JSON text as Python values; 13609 for invalid JSON."""
    try:
        return json.loads(text)
    except ValueError as failure:
        place = getattr(failure, "pos", 0)
        sign = text[place : place + 1]
        raise SqlError(
            13609, f"JSON text is not properly formatted. Unexpected character '{sign}' is found at position {place}.",
            state=4,
        ) from failure  # fmt: skip


def at_path(value: Any, path: str) -> Any:
    """The value at `$.a.b[0]`; None if there is none."""
    body = path.strip().removeprefix("lax ").removeprefix("strict ").strip().removeprefix("$")
    for name, quoted, index in re.findall(r'\.([A-Za-z_]\w*)|\."([^"]*)"|\[(\d+)\]', body):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = value.get(name or quoted) if isinstance(value, dict) else None
    return value


def _member(item: Any, type_: t.SqlType, where: str, wide: t.SqlType) -> Any:
    if where.startswith("json:"):
        value = at_path(item, where.removeprefix("json:"))
        return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    value = at_path(item, where)
    if value is None or isinstance(value, (dict, list)):
        return None
    return convert(_shown(value), wide, type_)


def _shown(item: Any) -> str | None:
    if item is None or isinstance(item, str):
        return item
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def _kind(item: Any) -> int:
    for kind, types in ((3, bool), (0, type(None)), (1, str), (2, (int, float)), (4, list)):
        if isinstance(item, types):  # type: ignore[arg-type]
            return kind
    return 5


_BUILT_IN = {"STRING_SPLIT": _string_split, "GENERATE_SERIES": _generate_series, "OPENJSON": _openjson}
