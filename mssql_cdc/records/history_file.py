"""Reads the schema history that a Debezium connector left behind, and compares it with the structures of a lake.

It comes as the history topic's values, its records as `kcat -J` prints them, or the file of a FileSchemaHistory: one
JSON document per line. Rows are read with the structure of their capture instance, whatever the history says: it only
shows what was reported to consumers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.schema_changes import table_structure
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.schema import TableId, TableSchema

_NAME = re.compile(r'"((?:[^"]|"")*)"')
_COMPARED = ("name", "typeName", "length", "scale")
Structure = Mapping[str, Any]
"""A table as a change of the history describes it."""


@dataclass(frozen=True, slots=True)
class KnownStructures:
    """The structures that the other connector had at its offsets, by table."""

    tables: Mapping[TableId, Structure]

    def differences(self, schemas: Sequence[TableSchema]) -> Iterator[str]:
        """Yield a line for each table whose structure differs in the lake, or that the schema history does not have.

        Args:
            schemas: The structures with which reading of the tables continues.
        """
        found = {schema.table_id: schema for schema in schemas}
        for table, schema in found.items():
            known = self.tables.get(table)
            if known is None:
                yield f"{table}: the schema history does not have it"
            elif what := _difference(known, table_structure(schema)):
                yield f"{table}: {what}; a schema change says so where the records continue"


def read_history(path: Path, connector: Connector, offsets: Mapping[str, SourceOffset]) -> KnownStructures:
    """Return the structures at the offsets.

    Args:
        path: The file.
        connector: The connector that takes over.
        offsets: Where the other one was, by database; nobody has read later changes.

    Raises:
        ConfigurationError: The file is not a schema history, or is that of another connector.
    """
    tables: dict[TableId, Structure] = {}
    names = {name.casefold(): name for name in connector.databases}
    count = 0
    # Not `splitlines`: JSON strings contain U+2028 and the like unescaped.
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        count += 1
        try:
            record: dict[str, Any] = json.loads(line)
            if isinstance(payload := record.get("payload"), str):
                record = json.loads(payload)  # A record of the topic; any other document is a value.
            server, database = record["source"]["server"], record["databaseName"]
            changes = [(one["type"], _table_id(one["id"]), one.get("table")) for one in record["tableChanges"]]
            position = SourceOffset.of(record["position"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigurationError(
                f"Line {number} of {path} is no record of a schema history ({type(error).__name__}: {error}); expected "
                "the file of a FileSchemaHistory, or the history topic's values or records (kcat -J), one per line"
            ) from error
        if server != connector.topic_prefix:
            raise ConfigurationError(
                f"{path} is the schema history of topic.prefix={server}; this connector has {connector.topic_prefix}"
            )
        offset = offsets.get(names.get(str(database).casefold(), ""))
        if offset is None or _is_behind(position, offset):
            continue
        for kind, table, structure in changes:
            if kind == "DROP" or structure is None:
                tables.pop(table, None)
            else:
                tables[table] = structure
    if not count:
        raise ConfigurationError(f"{path} is empty; expected a schema history")
    return KnownStructures(tables)


def _is_behind(position: SourceOffset, offset: SourceOffset) -> bool:
    """Whether a change of the history comes after an offset, so that a restart there does not apply it (SCH-03)."""
    return position.commit is not None and offset.commit is not None and position.commit > offset.commit


def _table_id(text: str) -> TableId:
    parts = [one.replace('""', '"') for one in _NAME.findall(text)]
    if len(parts) != 3:
        raise ValueError(f"{text!r} is no table's name")
    return TableId(*parts)


def _difference(known: Structure, ours: Structure) -> str | None:
    """Return what differs; None: nothing that consumers see."""
    theirs = [_column(one) for one in known.get("columns", ())]
    present = [_column(one) for one in ours["columns"]]
    if theirs != present:
        left, new = [_shown(one) for one in theirs if one not in present], [one for one in present if one not in theirs]
        said = [f"the schema history has {', '.join(left)}"] if left else []
        said += [f"the capture instance has {', '.join(map(_shown, new))}"] if new else []
        return ", ".join(said) or "its columns have another order"
    keys = list(known.get("primaryKeyColumnNames") or ()), list(ours["primaryKeyColumnNames"])
    return None if keys[0] == keys[1] else f"its key was ({', '.join(keys[0])}), and is ({', '.join(keys[1])})"


def _column(column: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(column.get(name) for name in _COMPARED)


def _shown(column: tuple[Any, ...]) -> str:
    name, type_, length, scale = column
    size = ",".join(str(one) for one in (length, scale) if one is not None)
    return f"{name} {type_}({size})" if size else f"{name} {type_}"
