"""Comparing values: sort keys of every type, across types, and equality.

`sort_key(type)` gives a function from storage form to something that Python compares as SQL Server compares the
values. NULL has no key: callers treat it first. What does not belong here: sorting rows and index structures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.precedence import promote
from mssql_sandbox.engine.types import BINARIES, DATES, NATIONAL, NUMBERS, SINGLE_BYTE, SqlType
from mssql_sandbox.errors import error

Key = Callable[[Any], Any]
_VARIANT_FAMILIES = ("uniqueidentifier", "binary", "string", "number", "approximate", "date")


def guid_key(value: Any) -> bytes:
    """Order of uniqueidentifier: node first, then the groups from right to left, each by its stored bytes."""
    stored = value.bytes_le
    return stored[10:] + stored[8:10] + stored[6:8] + stored[4:6] + stored[:4]


def _utc(value: tuple[int, int]) -> int:
    return value[0]


def _zeros_off(value: bytes) -> bytes:
    return value.rstrip(b"\x00")


@lru_cache(maxsize=4096)
def sort_key(type_: SqlType) -> Key | None:
    """The key function of a type's values; None if values are their own keys. Error 306 for text, ntext, image."""
    name = type_.name
    if name in {"text", "ntext", "image", "xml"}:
        if name == "image":
            raise error(306)
        return None if type_.collation is None else type_.collation.key
    if name in NATIONAL:
        return type_.collation.key if type_.collation else _trimmed
    if name in SINGLE_BYTE:
        return type_.collation.narrow_key if type_.collation else _trimmed
    if name == "uniqueidentifier":
        return guid_key
    if name == "datetimeoffset":
        return _utc
    if name == "varbinary":
        return _zeros_off
    if name == "sql_variant":
        return _variant_key
    return None


def _trimmed(value: str) -> str:
    return value.rstrip(" ")


def _variant_key(value: tuple[SqlType, Any]) -> tuple[int, Any]:
    type_, content = value
    family = _family(type_)
    key: Any = content
    if family == "date":
        common = SqlType("datetimeoffset", precision=34, scale=7)
        key = converter(type_, common)(content)[0]
    elif family != "number":
        own = sort_key(type_)
        key = content if own is None else own(content)
    return _VARIANT_FAMILIES.index(family), key


def _family(type_: SqlType) -> str:
    if type_.name in DATES:
        return "date"
    if type_.name in {"float", "real"}:
        return "approximate"
    if type_.name in NUMBERS:
        return "number"
    if type_.name in BINARIES:
        return "binary"
    return "uniqueidentifier" if type_.name == "uniqueidentifier" else "string"


@lru_cache(maxsize=4096)
def comparison_keys(left: SqlType, right: SqlType) -> tuple[Key | None, Key | None]:
    """Key functions that make values of two types comparable, in the promoted type; None means identity."""
    common = promote(left, right)
    key = sort_key(common)
    return _through(left, common, key), _through(right, common, key)


def _through(source: SqlType, common: SqlType, key: Key | None) -> Key | None:
    if source.name == common.name and source.collation == common.collation:
        return key
    if source.name in NUMBERS and common.name in NUMBERS and not {source.name, common.name} & {"float", "real"}:
        return key  # exact numbers compare with each other unconverted
    convert = converter(source, common)
    return convert if key is None else lambda value: key(convert(value))


def compare(left: object, left_type: SqlType, right: object, right_type: SqlType) -> int | None:
    """-1, 0 or 1; None if a side is NULL."""
    if left is None or right is None:
        return None
    left_key, right_key = comparison_keys(left_type, right_type)
    a: Any = left if left_key is None else left_key(left)
    b: Any = right if right_key is None else right_key(right)
    return (a > b) - (a < b)
