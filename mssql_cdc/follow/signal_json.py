"""A signal as JSON, `{"id", "type", "data"}`: what the channels `file` and `kafka` deliver (SIG-05, SIG-06)."""

from __future__ import annotations

import json
import uuid
from typing import Any, cast

from mssql_cdc.config.json_texts import json_value
from mssql_cdc.follow.signal_contract import SignalRecord


def signal_of_json(line: bytes, position: str, *, what: str) -> SignalRecord:
    """Read a signal from JSON; what cannot be read is a signal with a problem.

    Args:
        line: The JSON text `{"id", "type", "data"}`, whose data is an object or JSON as text.
        position: Where it is in its channel.
        what: What it is called in the problem.
    """
    text, unique = line.decode("utf-8", "replace").strip(), str(uuid.uuid5(uuid.NAMESPACE_URL, position))
    try:
        return _signal(json_object(line), unique, text, position, what=what)
    except RecursionError:  # What could barely be parsed has too many levels to be serialized.
        return SignalRecord(
            id=unique, type="", data=text, position=position, problem=f"the {what} is nested too deeply"
        )


def _signal(found: dict[str, Any] | str, unique: str, text: str, position: str, *, what: str) -> SignalRecord:
    if not isinstance(found, dict):
        return SignalRecord(id=unique, type="", data=text, position=position, problem=f"the {what} is {found}")
    key, kind, data = found.get("id"), found.get("type"), found.get("data")
    if not isinstance(kind, str):
        problem = f"type is {kind!r}, expected a string"
        return SignalRecord(id=str(key or unique), type="", data=text, position=position, problem=problem)
    shown = data if data is None or isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return SignalRecord(id=unique if key is None else str(key), type=kind, data=shown, position=position)


def json_object(line: bytes) -> dict[str, Any] | str:
    """Return the JSON object of a line, or what it is instead.

    Args:
        line: The line.
    """
    try:
        found = json_value(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "not UTF-8"
    except ValueError as error:
        return str(error)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else "not a JSON object"
