"""JSON functions: ISJSON, JSON_VALUE, JSON_QUERY, JSON_MODIFY.

What does not belong here: FOR JSON (a clause of SELECT).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mssql_sandbox.engine.functions.definition import TEXT, Call, Registry
from mssql_sandbox.engine.types import INT, MAX, NUMBERS, nvarchar
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add
_STEP = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_$][\w$]*))|\[(\d+)\]')
_MISSING = object()


def _text_of_float(text: str) -> Decimal:
    return Decimal(text)


def parse_json(text: str) -> Any:
    """The value of a JSON text, numbers exact; error 13609 for text that is not a JSON object or array."""
    try:
        return json.loads(text, parse_float=_text_of_float)
    except json.JSONDecodeError as failure:
        shown = text[failure.pos] if failure.pos < len(text) else "."
        raise error(13609, character=shown, position=failure.pos) from None


def parse_path(path: str) -> tuple[bool, list[str | int]]:
    """(strict, steps) of a path such as 'lax $.a.b[0]'; error 13607 for a malformed one."""
    body = path.strip()
    strict = body.startswith("strict ")
    body = body.removeprefix("strict ").removeprefix("lax ").strip()
    if not body.startswith("$"):
        raise error(13607, character=body[:1], position=0)
    steps: list[str | int] = []
    place = 1
    while place < len(body):
        match = _STEP.match(body, place)
        if match is None:
            raise error(13607, character=body[place], position=place)
        quoted, name, number = match.groups()
        steps.append(int(number) if number is not None else json.loads(f'"{quoted}"') if quoted is not None else name)
        place = match.end()
    return strict, steps


def walk(value: Any, steps: list[str | int]) -> Any:
    """The value at the steps, `_MISSING` if there is none."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _MISSING
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return _MISSING
    return value


def dump(value: Any) -> str:
    """Compact JSON text; exact numbers keep their digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def scalar_text(value: Any) -> str:
    """Text of a JSON scalar as JSON_VALUE gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


@add("ISJSON", 1, 2, result=INT, takes={1: TEXT})
def _isjson(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)

    def isjson(value: Any, kind: str = "") -> int:
        try:
            found = json.loads(text(value))
        except json.JSONDecodeError:
            return 0
        kinds: dict[str, type | tuple[type, ...]] = {"": (dict, list), "object": dict, "array": list, "value": object,
                                                     "scalar": (str, int, float)}  # fmt: skip
        return int(isinstance(found, kinds.get(kind.lower(), (dict, list))))

    return isjson


@add("JSON_VALUE", 2, result=lambda call: nvarchar(4000, collation=call.collation), takes={1: TEXT})
def _json_value(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)

    def json_value(value: Any, path: Any) -> str | None:
        strict, steps = parse_path(path)
        found = walk(parse_json(text(value)), steps)
        if found is _MISSING:
            if strict:
                raise error(13608)
            return None
        if isinstance(found, (dict, list)):
            if strict:
                raise error(13623)
            return None
        if found is None:
            return None
        result = scalar_text(found)
        return result if len(result) <= 4000 else None

    return json_value


@add("JSON_QUERY", 1, 2, result=lambda call: nvarchar(MAX, collation=call.collation), takes={1: TEXT})
def _json_query(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)

    def json_query(value: Any, path: str = "$") -> str | None:
        strict, steps = parse_path(path)
        found = walk(parse_json(text(value)), steps)
        if not isinstance(found, (dict, list)):
            if strict:
                raise error(13608 if found is _MISSING else 13624)
            return None
        return text(value) if not steps else dump(found)

    return json_query


@add("JSON_MODIFY", 3, result=lambda call: nvarchar(MAX, collation=call.collation), null_if_null=False, takes={1: TEXT})
def _json_modify(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)
    numeric, kind = call.types[2].name in NUMBERS, call.types[2].name

    def made(new: Any) -> Any:
        """The value to insert: results of JSON functions as JSON, others as text."""
        if new is None:
            return None
        if 2 in call.json:
            return parse_json(str(new))
        return bool(new) if kind == "bit" else new if numeric else str(new)

    def json_modify(value: Any, path: Any, new: Any) -> str | None:
        if value is None or path is None:
            return None
        append = path.strip().startswith("append ")
        strict, steps = parse_path(path.strip().removeprefix("append "))
        document = parse_json(text(value))
        parent, last = walk(document, steps[:-1]), steps[-1] if steps else None
        fresh = made(new)
        if append:
            target = walk(document, steps)
            if isinstance(target, list):
                target.append(fresh)
            elif target is _MISSING and isinstance(parent, dict) and isinstance(last, str) and not strict:
                parent[last] = [fresh]
        elif isinstance(parent, dict) and isinstance(last, str):
            if strict and last not in parent:
                raise error(13608)
            if new is None and not strict:
                parent.pop(last, None)
            else:
                parent[last] = fresh
        elif isinstance(parent, list) and isinstance(last, int) and last < len(parent):
            parent[last] = fresh
        elif strict:
            raise error(13608)
        return dump(document)

    return json_modify
