"""FOR JSON PATH and AUTO."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.plans import Operator, Slice
from mssql_sandbox.exec.query.operators import Rows, gather
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast

Node = dict[str, Any]
"""A JSON object: names to texts that are JSON already, or to objects."""
_BINARY = frozenset({"binary", "varbinary", "image", "rowversion"})


def for_json(plan: Operator, clause: ast.ForClause) -> Operator:
    """The rows of a plan as one text in one row; no row if there are none."""
    write = _writer(plan.fields, clause)
    field = Field("JSON_F52E2B61-18A1-11d1-B105-00805F49916B", t.nvarchar(t.MAX), special="json")

    def rows(context: Context) -> Iterable[tuple]:
        text = write(gather(plan.open(context)))
        return [] if text is None else [(text,)]

    return Rows([field], rows)


def _writer(fields: Sequence[Field], clause: ast.ForClause) -> Callable[[Slice], str | None]:
    """A writer of all rows as one text; None if there are no rows. 13601, 13605 for invalid names."""
    options = dict(clause.options)
    nulls = "INCLUDE_NULL_VALUES" in options
    bare = "WITHOUT_ARRAY_WRAPPER" in options
    if bare and "ROOT" in options:
        raise SqlError(
            13620, "ROOT option and WITHOUT_ARRAY_WRAPPER option cannot be used together in FOR JSON. Remove one "
            "of these options."
        )  # fmt: skip
    _check_names(fields)
    levels = _auto_levels(fields) if clause.mode == "AUTO" else [("", list(range(len(fields))))]

    def write(rows: Slice) -> str | None:
        if not rows:
            return None
        objects = _objects(rows, fields, levels, nulls=nulls, nested=clause.mode == "PATH")
        text = ",".join(_rendered(one) for one in objects)
        text = text if bare else f"[{text}]"
        return f"{{{json_string(options['ROOT'])}:{text}}}" if "ROOT" in options else text

    return write


def _check_names(fields: Sequence[Field]) -> None:
    for field in fields:
        if not field.name:
            raise SqlError(
                13605, "Column expressions and data sources without names or aliases cannot be formatted as JSON "
                "text using FOR JSON clause. Add alias to the unnamed column or table."
            )  # fmt: skip


def _objects(
    rows: Slice, fields: Sequence[Field], levels: list[tuple[str, list[int]]], *, nulls: bool, nested: bool
) -> list[Node]:
    (_, places), *deeper = levels
    found = []
    for cells, group in _same_parents(rows, places) if deeper else ((_pick(row, places), [row]) for row in rows):
        node = _object(cells, [fields[place] for place in places], nulls=nulls, nested=nested)
        if deeper:
            inner = _objects(group, fields, deeper, nulls=nulls, nested=nested)
            node[deeper[0][0]] = f"[{','.join(_rendered(one) for one in inner)}]"
        found.append(node)
    return found


def _pick(row: tuple, places: Sequence[int]) -> tuple:
    return tuple(row[place] for place in places)


def _object(cells: Sequence[Any], fields: Sequence[Field], *, nulls: bool, nested: bool) -> Node:
    result: Node = {}
    for value, field in zip(cells, fields, strict=True):
        if value is None and not nulls:
            continue
        inside = result
        *path, last = field.name.split(".") if nested else [field.name]
        for part in path:
            deeper = inside.setdefault(part, {})
            if not isinstance(deeper, dict):
                raise _conflict(field.name)
            inside = deeper
        if last in inside:
            raise _conflict(field.name)
        inside[last] = "null" if value is None else json_cell(value, field)
    return result


def _conflict(name: str) -> SqlError:
    return SqlError(
        13601, f"Property '{name}' cannot be generated in JSON output due to a conflict with another column name or "
        "alias. Use different names and aliases for each column in SELECT list."
    )  # fmt: skip


def _auto_levels(fields: Sequence[Field]) -> list[tuple[str, list[int]]]:
    """Tables of AUTO mode in the order of their columns, with the positions of those columns."""
    levels: dict[str, list[int]] = {}
    for place, field in enumerate(fields):
        levels.setdefault(field.qualifier[-1] if field.qualifier else "", []).append(place)
    return list(levels.items())


def _same_parents(rows: Slice, places: Sequence[int]) -> Iterable[tuple[tuple, Slice]]:
    """Adjacent rows that agree in the columns of one level: they share one parent."""
    for cells, group in groupby(rows, key=lambda row: tuple(row[place] for place in places)):
        yield cells, list(group)


def json_cell(value: Any, field: Field) -> str:
    """A value as JSON; values that are JSON already are inserted unchanged."""
    if field.special == "json":
        return str(value)
    if field.type.name == "bit":
        return "true" if value else "false"
    text = _plain_text(value, field.type)
    return text if field.type.name in t.NUMBERS else json_string(text)


def _plain_text(value: Any, type_: t.SqlType) -> str:
    """A value as text: ISO 8601 dates, base64 of binary values, floats with an exponent."""
    if type_.name in _BINARY:
        return base64.b64encode(value).decode()
    if type_.name in t.APPROXIMATE:
        mantissa, _, exponent = f"{value:.{7 if type_.name == 'real' else 15}e}".partition("e")
        return f"{mantissa}e{exponent[0]}{int(exponent[1:]):03d}"
    if type_.name in t.NUMBERS:
        return str(value) if type_.name in t.INTEGERS else f"{value:f}"
    style = 126 if type_.name in t.DATES and type_.name != "time" else None
    return str(convert(value, type_, t.nvarchar(t.MAX), style=style))


def _rendered(node: Node) -> str:
    cells = (f"{json_string(name)}:{_rendered(one) if isinstance(one, dict) else one}" for name, one in node.items())
    return f"{{{','.join(cells)}}}"


def json_string(text: str) -> str:
    """A JSON string, with `/` escaped as SQL Server does."""
    return json.dumps(text, ensure_ascii=False).replace("/", "\\/")
