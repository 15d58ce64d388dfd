"""FOR JSON PATH and AUTO."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.query.operators import Slice
from mssql_sandbox.exec.query.serial_parts import auto_levels, plain_text, same_parents
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast

Node = dict[str, Any]
"""A JSON object: names to texts that are JSON already, or to objects."""


def json_text(fields: Sequence[Field], clause: ast.ForClause) -> Callable[[Slice], str | None]:
    """A writer of all rows as one text; None when there are no rows. 13601, 13605 for names that cannot be used."""
    options = dict(clause.options)
    nulls = "INCLUDE_NULL_VALUES" in options
    bare = "WITHOUT_ARRAY_WRAPPER" in options
    if bare and "ROOT" in options:
        raise SqlError(
            13620, "ROOT option and WITHOUT_ARRAY_WRAPPER option cannot be used together in FOR JSON. Remove one "
            "of these options."
        )  # fmt: skip
    _check_names(fields)
    levels = auto_levels(fields) if clause.mode == "AUTO" else [("", list(range(len(fields))))]

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
    for cells, group in same_parents(rows, places) if deeper else ((_pick(row, places), [row]) for row in rows):
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


def json_cell(value: Any, field: Field) -> str:
    """A value as JSON; what is JSON already is put in as it is."""
    if field.special == "json":
        return str(value)
    if field.type.name == "bit":
        return "true" if value else "false"
    text = plain_text(value, field.type)
    return text if field.type.name in t.NUMBERS else json_string(text)


def _rendered(node: Node) -> str:
    cells = (f"{json_string(name)}:{_rendered(one) if isinstance(one, dict) else one}" for name, one in node.items())
    return f"{{{','.join(cells)}}}"


def json_string(text: str) -> str:
    """A JSON string, with `/` escaped as SQL Server does."""
    return json.dumps(text, ensure_ascii=False).replace("/", "\\/")
