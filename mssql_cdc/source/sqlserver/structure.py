"""Whether a table still has the columns that it is read with.

A reader checks this in its own transaction, before its first row and after its last: DDL in between fails the task,
whatever it wrote. How values are fetched is in `columns`; reading the catalog for a plan is in `catalog`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pyarrow as pa

from mssql_cdc.errors import SourceError, StaleStructureError
from mssql_cdc.schema import Column, SqlServerType, TableSchema
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.catalog import sql_type
from mssql_cdc.source.sqlserver.catalog_statements import JOIN_TYPES, TYPE_NAME
from mssql_cdc.source.sqlserver.sql import DECLARE_IDS, IDS, id_lists, quote, text
from mssql_cdc.source.values import CaptureInstance

_FIELDS = [
    pa.field("object_id", pa.int32()),
    pa.field("name", pa.binary()),
    pa.field("column_id", pa.int32()),
    pa.field("type_name", pa.binary()),
    pa.field("max_length", pa.int32()),
    pa.field("precision", pa.int32()),
    pa.field("scale", pa.int32()),
    pa.field("collation_name", pa.binary()),
]
_NAMES = [pa.field("own_schema", pa.binary()), pa.field("own_name", pa.binary())]
_OWN_COLUMNS = 6
_SELECT = f"""
SELECT c.object_id, CAST(c.name AS varbinary(256)) AS name, c.column_id,
       CAST({TYPE_NAME} AS varbinary(256)) AS type_name, CAST(c.max_length AS int) AS max_length,
       CAST(c.precision AS int) AS precision, CAST(c.scale AS int) AS scale,
       CAST(CAST(c.collation_name AS nvarchar(128)) AS varbinary(256)) AS collation_name{{more}}
FROM {{columns}} AS c
{JOIN_TYPES}"""
_ONE = _SELECT.format(columns="sys.columns", more="") + "\nWHERE c.object_id = {table}"
_SEVERAL = f"{DECLARE_IDS};" + _SELECT.format(
    more=""",
       CAST(c.own_schema AS varbinary(256)) AS own_schema, CAST(c.own_name AS varbinary(256)) AS own_name""",
    columns=f"""(
    SELECT own.*, n.own_schema, n.own_name
    FROM (SELECT id, OBJECT_SCHEMA_NAME(id) AS own_schema, OBJECT_NAME(id) AS own_name FROM {IDS} AS i) AS n
    CROSS APPLY (
        SELECT x.object_id, x.name, x.column_id, x.system_type_id, x.user_type_id, x.max_length, x.precision, x.scale,
               x.collation_name
        FROM sys.columns x WHERE x.object_id = n.id
    ) AS own)""",
)
"""The same for several tables, with their current names."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure that a table must have for its rows to be read with a schema.

    Attributes:
        table: the table's name as errors show it.
        schema_name: the schema of the table that is read.
        name: its name.
        object_id: identifies it: another table may have taken the name; None: unknown.
        columns: the columns that are read, with the types that they must have.
        source: whether this is the source table, whose columns can be dropped, and not its change table.
        by_function: whether a CDC function returns the rows; it also has the columns that were dropped.
    """

    table: str
    schema_name: str
    name: str
    object_id: int | None
    columns: tuple[Column, ...]
    source: bool
    by_function: bool = False

    @classmethod
    def of_source(cls, schema: TableSchema) -> Structure:
        """That of the source table."""
        table = schema.table_id
        return cls(str(table), table.schema, table.name, schema.object_id, schema.columns, source=True)

    @classmethod
    def of_instance(cls, instance: CaptureInstance) -> Structure:
        """That of the change table; if a function returns its rows, that of the source table, less dropped columns."""
        if instance.change_table is None:
            return replace(cls.of_source(instance.schema), by_function=True)
        schema_name, name = instance.change_table
        shown = f"{instance.schema.table_id} ({schema_name}.{name})"
        return cls(shown, schema_name, name, instance.object_id, instance.schema.columns, source=False)

    def require(self, bulk: Bulk, *, doing: str) -> None:
        """Check the structure with one short statement in the transaction of the read.

        Raises:
            StaleStructureError: the table is a different one by now, or a column's type has changed.
            SourceError: a captured column is gone, or was dropped and added again, and rows are read from the source
                table: only a new capture instance helps.
        """
        table = f"OBJECT_ID({text(f'{quote(self.schema_name)}.{quote(self.name)}')})"
        self.require_columns(_rows(bulk.read(_ONE.format(table=table), _FIELDS, doing=doing, rows=_columns([self]))))

    def require_columns(self, rows: Sequence[SimpleNamespace]) -> None:
        """Check the rows that `require` or `read_structures` has read."""
        found = self._by_name(rows)
        for column in self.columns:
            self._require_column(column, found.get(column.name))

    def _by_name(self, rows: Sequence[SimpleNamespace]) -> Mapping[str, SimpleNamespace]:
        if not rows:
            raise StaleStructureError(f"{self.table} is gone: it was dropped or renamed")
        if self.object_id is not None and rows[0].object_id != self.object_id:
            raise StaleStructureError(
                f"{self.table} is a different table now: it was dropped and re-created or renamed"
            )
        return {row.name: row for row in rows}

    def _require_column(self, column: Column, row: SimpleNamespace | None) -> None:
        if self.source and (row is None or row.column_id != column.position):
            if self.by_function:
                return
            what = "was dropped" if row is None else "was dropped and added again"
            raise SourceError(
                f"{self.table}: column {column.name!r} {what}, and the capture instance still has the old one; "
                "enable a new capture instance for the table (sys.sp_cdc_enable_table with another @capture_instance)"
            )
        expected, actual = column.type, None if row is None else sql_type(row)
        if not self.source and expected.name == "timestamp":
            expected = SqlServerType("binary", length=8)  # This is how change tables store a rowversion.
        if actual != expected:
            raise StaleStructureError(
                f"{self.table}: column {column.name!r} is {_shown(actual)}, it was read as {_shown(expected)}: it was "
                "altered during the read. The table will be re-read with its new structure once capture has picked "
                "it up"
            )


def read_structures(bulk: Bulk, wanted: Sequence[Structure], *, doing: str) -> list[list[SimpleNamespace]]:
    """Read the columns of several tables with one statement, for `Structure.require_columns`.

    Tables are looked up by their object ids, and their rows count only if they still have their names, because readers
    read by name. So the statement's text is always the same, and the server seeks; a list of names, as an OR of
    `OBJECT_ID`s, was compiled for each set of tables and evaluated for each column of the database.

    Args:
        bulk: The connection.
        wanted: The tables.
        doing: Completes "while …" in the text of an error.
    """
    found: dict[tuple[int, str, str], list[SimpleNamespace]] = defaultdict(list)
    for ids in id_lists(one.object_id for one in wanted if one.object_id is not None):
        batches = bulk.read(_SEVERAL, [*_FIELDS, *_NAMES], [ids], doing=doing, rows=_columns(wanted))
        for row in _rows(batches):
            found[row.object_id, row.own_schema, row.own_name].append(row)
    keys = ((one.object_id, one.schema_name, one.name) for one in wanted)
    return [[] if number is None else found.get((number, schema, name), []) for number, schema, name in keys]


def _columns(wanted: Sequence[Structure]) -> int:
    """The approximate number of columns in these tables; a change table has a few of its own."""
    return sum(_OWN_COLUMNS + len(one.columns) for one in wanted)


def _rows(batches: Iterable[pa.RecordBatch]) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(**{key: _plain(value) for key, value in row.items()})
        for batch in batches
        for row in batch.to_pylist()
    ]


def _plain(value: object) -> object:
    return value.decode("utf-16-le") if isinstance(value, bytes) else value


def _shown(kind: SqlServerType | None) -> str:
    if kind is None:
        return "missing"
    return f"{kind.declaration} {kind.collation}" if kind.collation else kind.declaration
