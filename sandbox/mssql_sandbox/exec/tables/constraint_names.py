"""Generated names of constraints that were given none, of at most 30 characters.

Keys: `PK__orders__3213E83F5D2F1A90`: eight characters of the table, a hash of the key's columns, and eight random
digits. The hash was derived from published names; it decides which of two unnamed keys comes first in `sp_statistics`
and the catalogue, so tools that take the first unique index as a table's key depend on it. Others:
`DF__orders__qty__1A2B3C4D`: table, column, and the constraint's object id.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal

_WORD = 0xFFFF_FFFF
_SEED = 314_159_269
_TABLE_OF_KEY = 8
_TABLE_BESIDE_COLUMN = 9
_TABLE_ALONE = 16
_TABLE_AND_COLUMN = 14


def key_name(kind: Literal["PK", "UQ"], table: str, columns: Sequence[str]) -> str:
    """The name of a PRIMARY KEY or UNIQUE constraint over `columns`, in the order of the key."""
    hashed = columns_hash(columns) ^ (kind == "PK")
    return f"{kind}__{table[:_TABLE_OF_KEY]}__{hashed:08X}{secrets.token_hex(4).upper()}"


def rule_name(kind: Literal["CK", "DF", "FK"], table: str, column: str, object_id: int) -> str:
    """The name of a CHECK, DEFAULT or FOREIGN KEY constraint; `column` is empty for a check of the whole table."""
    if not column:
        return f"{kind}__{table[:_TABLE_ALONE]}__{object_id:08X}"
    start = table[:_TABLE_BESIDE_COLUMN]
    return f"{kind}__{start}__{column[: _TABLE_AND_COLUMN - len(start)]}__{object_id:08X}"


def columns_hash(columns: Sequence[str]) -> int:
    """32 bits of column names as written: each later name is rotated right by another four bits."""
    result = 0
    for place, column in enumerate(columns):
        result ^= _turned_right(_name_hash(column), 4 * place % 32)
    return result


def _name_hash(name: str) -> int:
    value = _SEED
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        value ^= ((value << 11) + (value << 5) + (value >> 2) + unit) & _WORD
    return value


def _turned_right(value: int, bits: int) -> int:
    return (value >> bits | value << (32 - bits)) & _WORD
