"""Walking a database: its objects, its constraints as objects, and LIKE patterns on names.

Only this module knows how storage keeps what `sys.objects` lists. Names are compared by the database's collation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import Schema, SchemaObject
from mssql_sandbox.engine.storage.table import Table

TYPE_DESCRIPTIONS = {
    "AF": "AGGREGATE_FUNCTION",
    "C": "CHECK_CONSTRAINT",
    "D": "DEFAULT_CONSTRAINT",
    "F": "FOREIGN_KEY_CONSTRAINT",
    "FN": "SQL_SCALAR_FUNCTION",
    "IF": "SQL_INLINE_TABLE_VALUED_FUNCTION",
    "IT": "INTERNAL_TABLE",
    "P": "SQL_STORED_PROCEDURE",
    "PK": "PRIMARY_KEY_CONSTRAINT",
    "S": "SYSTEM_TABLE",
    "SN": "SYNONYM",
    "SO": "SEQUENCE_OBJECT",
    "SP": "SECURITY_POLICY",
    "TF": "SQL_TABLE_VALUED_FUNCTION",
    "TR": "SQL_TRIGGER",
    "TT": "TYPE_TABLE",
    "U": "USER_TABLE",
    "UQ": "UNIQUE_CONSTRAINT",
    "V": "VIEW",
}


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """A row of `sys.objects`; times are `datetime` storage values."""

    name: str
    object_id: int
    schema: Schema
    parent_object_id: int
    type_code: str
    create_date: int
    modify_date: int
    is_ms_shipped: bool

    @property
    def type_description(self) -> str:
        """The long name of the type."""
        return TYPE_DESCRIPTIONS[self.type_code]


def all_objects(database: Database) -> Iterator[ObjectRow]:
    """Objects and constraints, in no particular order."""
    for item in database.objects():
        if item.type_code == "TYPE":
            continue  # types of CREATE TYPE … FROM are no objects: sys.types has them
        yield row_of(item)
        if isinstance(item, Table):
            yield from constraint_rows(item)


def row_of(item: SchemaObject) -> ObjectRow:
    """An object, of whatever kind."""
    return ObjectRow(
        item.listed_name,
        item.object_id,
        item.schema,
        item.parent_object_id,
        "U" if isinstance(item, Table) else item.type_code,
        item.create_date,
        item.modify_date,
        item.is_ms_shipped,
    )


def constraint_rows(table: Table) -> Iterator[ObjectRow]:
    """A table's constraints as objects."""

    def row(name: str, object_id: int, code: str) -> ObjectRow:
        created = table.create_date
        return ObjectRow(name, object_id, table.schema, table.object_id, code, created, created, table.is_ms_shipped)

    for index in table.indexes:
        if index.constraint:
            yield row(index.name, index.object_id, "PK" if index.constraint == "PRIMARY KEY" else "UQ")
    for column in table.columns:
        if column.default is not None:
            yield row(column.default.name, column.default.object_id, "D")
    for check in table.checks:
        yield row(check.name, check.object_id, "C")
    for key in table.foreign_keys:
        yield row(key.name, key.object_id, "F")


def like_pattern(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern (`%`, `_`, `[...]`) as a case-insensitive regular expression for whole names."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        closing = pattern.find("]", position + 2) if character == "[" else -1
        if character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        elif closing > 0:
            inner = pattern[position + 1 : closing]
            negated = inner.startswith("^")
            body = re.escape(inner[1:] if negated else inner).replace(r"\-", "-" if len(inner) > 1 else r"\-")
            parts.append(f"[{'^' if negated else ''}{body}]")
            position = closing
        else:
            parts.append(re.escape(character))
        position += 1
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)


def split_name(text: str) -> list[str]:
    """The parts of a multi-part name as SQL writes it: `db.[sch ema]."o.bj"`; omitted parts are empty."""
    parts: list[str] = []
    position = 0
    while True:
        closing = {"[": "]", '"': '"'}.get(text[position : position + 1])
        if closing is None:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            parts.append(text[position:end].strip())
            position = end
        else:
            part, position = _quoted_part(text, position + 1, closing)
            parts.append(part)
        if position >= len(text):
            return parts
        position += 1


def _quoted_part(text: str, position: int, closing: str) -> tuple[str, int]:
    characters: list[str] = []
    while position < len(text):
        if text[position] == closing:
            if text[position + 1 : position + 2] != closing:
                return "".join(characters), position + 1
            position += 1
        characters.append(text[position])
        position += 1
    return "".join(characters), position


def find_object(database: Database, schemas: list[str], name: str) -> ObjectRow | None:
    """The object or constraint of this name in the first schema that has it."""
    key = database.collation.key
    for schema in schemas:
        item = database.find(schema, name)
        if item is not None:
            return row_of(item)
    wanted = [key(schema) for schema in schemas]
    for row in all_objects(database):
        if key(row.name) == key(name) and key(row.schema.name) in wanted:
            return row
    return None


def object_by_id(database: Database, object_id: int) -> ObjectRow | None:
    """The object or constraint with this id."""
    item = database.object_by_id(object_id)
    if item is not None:
        return row_of(item)
    return next((row for row in all_objects(database) if row.object_id == object_id), None)
