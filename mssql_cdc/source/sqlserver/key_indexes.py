"""The indexes that begin with the first column of a table's key, as the catalog has them (rule C20).

They decide how keys are walked and how rows are read; what belongs to a chunk never depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote, text

_INDEXES = """
SELECT i.object_id, i.index_id, CAST(f.name AS varbinary(256)) AS [function],
       CAST(COL_NAME(i.object_id, p.column_id) AS varbinary(256)) AS partitioned_by,
       CAST(COL_NAME(i.object_id, c.column_id) AS varbinary(256)) AS name,
       CAST(c.is_descending_key AS int) AS descending
FROM sys.indexes i
JOIN sys.index_columns c ON c.object_id = i.object_id AND c.index_id = i.index_id AND c.key_ordinal > 0
LEFT JOIN sys.partition_schemes s ON s.data_space_id = i.data_space_id
LEFT JOIN sys.partition_functions f ON f.function_id = s.function_id
LEFT JOIN sys.index_columns p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_ordinal = 1
WHERE i.object_id = OBJECT_ID({table}) AND i.type IN (1, 2) AND i.is_disabled = 0 AND i.is_hypothetical = 0
  AND i.has_filter = 0
ORDER BY i.index_id, c.key_ordinal"""
_FIELDS = [
    pa.field("object_id", pa.int32()),
    pa.field("index_id", pa.int32()),
    pa.field("function", pa.binary()),
    pa.field("partitioned_by", pa.binary()),
    pa.field("name", pa.binary()),
    pa.field("descending", pa.int32()),
]


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """An index that begins with the first column of a key.

    Attributes:
        object_id: the table's id.
        index_id: its own.
        descending: for each column of the key, whether it descends; empty if it does not begin with all of them.
        function: the partition function of an index that is partitioned by a column other than its first one.
        column: that column; None: the index as a whole is in one order.
    """

    object_id: int
    index_id: int
    descending: tuple[bool, ...]
    function: str | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The indexes that begin with the first column of a key; filtered and disabled ones do not count.

    Those that are in order as a whole come first, and among them those that have the whole key in one direction.
    """

    found: tuple[KeyIndex, ...] = ()

    @classmethod
    def of(cls, control: Control, schema: TableSchema, *, doing: str) -> KeyIndexes:
        """Query the catalog.

        Args:
            control: a connection to the table's database.
            schema: the table, with its key.
            doing: completes "while …" in the text of an error.
        """
        names = [field.name for field in _FIELDS]
        rows = control.rows(_statement(schema), doing=doing)
        return cls.of_rows((dict(zip(names, row, strict=True)) for row in rows), schema.key_columns)

    @classmethod
    def seen_by(cls, bulk: Bulk, schema: TableSchema, *, doing: str) -> KeyIndexes:
        """Do the same over the connection of a reader.

        Args:
            bulk: the connection.
            schema: the table, with its key.
            doing: completes "while …" in the text of an error.
        """
        batches = bulk.read(_statement(schema), _FIELDS, doing=doing, rows=64)
        return cls.of_rows((row for batch in batches for row in batch.to_pylist()), schema.key_columns)

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> KeyIndexes:
        """Select them from the table's indexes.

        Args:
            rows: one for each column of each index, in order.
            keys: the names of the key's columns.
        """
        found: list[KeyIndex] = []
        for _, own in groupby(rows, key=lambda row: row["index_id"]):
            columns = list(own)
            names = [_name(row["name"]) for row in columns]
            if names[0] != keys[0]:
                continue
            whole = names[: len(keys)] == list(keys)
            first, by = columns[0], _name(columns[0]["partitioned_by"])
            found.append(
                KeyIndex(
                    first["object_id"],
                    first["index_id"],
                    tuple(bool(row["descending"]) for row in columns[: len(keys)]) if whole else (),
                    *((_name(first["function"]), by) if by not in {None, keys[0]} else ()),
                )
            )
        return cls(tuple(sorted(found, key=lambda one: (one.column is not None, len(set(one.descending)) != 1))))

    @property
    def both_ways(self) -> tuple[bool, ...]:
        """Which columns of the key descend in an index that has columns in both directions.

        Empty if there is none, or if another index has the whole key in one direction.
        """
        if self.found and len(set(self.found[0].descending)) == 1:
            return ()
        return next((one.descending for one in self.found if len(set(one.descending)) > 1), ())


def _statement(schema: TableSchema) -> str:
    table = schema.table_id
    return _INDEXES.format(table=text(f"{quote(table.schema)}.{quote(table.name)}"))


def _name(raw: bytes | None) -> str | None:
    return None if raw is None else bytes(raw).decode("utf-16-le")
