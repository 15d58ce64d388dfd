"""The names of fields and schemas in records, and Java's hash of names (TOP-08). `topics.py` names topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mssql_cdc.config import NameAdjustment


def field_name(name: str, mode: NameAdjustment) -> str:
    """Convert a column name to a field name (`field.name.adjustment.mode`)."""
    if mode == "avro":
        name = re.sub(r"[^A-Za-z0-9_]", _one(underscores), name)
        return f"_{name}" if name[:1].isdigit() else name
    if mode == "avro_unicode":
        return _replaced(name, unicode_text, first="A-Za-z", rest="A-Za-z0-9")
    return name


def schema_name(name: str, mode: NameAdjustment) -> str:
    """Convert the name of a schema (`schema.name.adjustment.mode`)."""
    if mode == "avro":
        name = f"_{name}" if name[:1].isdigit() else name
        return _replaced(name, underscores, first="A-Za-z_", rest="A-Za-z0-9_.")
    if mode == "avro_unicode":
        return _replaced(name, unicode_text, first="A-Za-z", rest="A-Za-z0-9.")
    return name


def _replaced(name: str, instead: Callable[[str], str], *, first: str, rest: str) -> str:
    """Replace what is not in a class of characters; the first character has a class of its own."""
    start, others = re.sub(f"[^{first}]", _one(instead), name[:1]), re.sub(f"[^{rest}]", _one(instead), name[1:])
    return start + others


def _one(instead: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
    return lambda found: instead(found.group())


def java_hash(name: str) -> int:
    """Return the hash that Java's `HashMap` derives from a string's."""
    code = 0
    raw = name.encode("utf-16-be")
    for high, low in zip(raw[::2], raw[1::2], strict=True):
        code = (code * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return code ^ code >> 16


def underscores(character: str) -> str:
    """Show each UTF-16 unit as `_`: Java has two for a character beyond the BMP."""
    return "_" * len(list(_units(character)))


def unicode_text(character: str) -> str:
    """Show UTF-16 units as Debezium does: its padding turns one digit into three."""
    codes = (unit.hex().lstrip("0") or "0" for unit in _units(character))
    return "".join(f"_u{'00' if len(code) <= 2 else ''}{code}" for code in codes)


def _units(character: str) -> Iterable[bytes]:
    raw = character.encode("utf-16-be", "surrogatepass")
    return (raw[i : i + 2] for i in range(0, len(raw), 2))
