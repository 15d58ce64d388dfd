"""What `check` queries in SQL Server: its own view of structures, rows as canonical texts, checksums of key ranges.

It has its own statements, shared with no reader of capture; only the bounds of key ranges are found like those of
chunks. Which rows are compared with what is decided in `check/`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mssql_cdc.config import Connection
from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import Column, TableId, TableSchema
from mssql_cdc.source.sqlserver.catalog import sql_type
from mssql_cdc.source.sqlserver.catalog_statements import JOIN_TYPES, TYPE_NAME
from mssql_cdc.source.sqlserver.check_texts import has_checksum, parameter, row_bytes, select_list, source_text
from mssql_cdc.source.sqlserver.chunk_planning import plan_chunks
from mssql_cdc.source.sqlserver.chunks import Piece, pieces, predicate, table_name
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.key_order import ranges_of
from mssql_cdc.source.sqlserver.replica import is_primary
from mssql_cdc.source.sqlserver.snapshot_reader import UPDATEABILITY
from mssql_cdc.source.sqlserver.sql import IS_CAPTURED, digits
from mssql_cdc.source.values import Bound, Buckets, Checksum, Chunk, SourceTable, Texts

FETCH_ROWS = 5_000
LOCK_TIMEOUT_MS = 10_000

_COLUMNS = f"""
SELECT o.object_id, s.name AS schema_name, o.name AS table_name, c.name AS column_name, c.column_id,
       {TYPE_NAME} AS type_name, c.max_length, c.precision, c.scale, c.collation_name, c.is_nullable, c.is_computed
FROM sys.tables o
JOIN sys.schemas s ON s.schema_id = o.schema_id
JOIN sys.columns c ON c.object_id = o.object_id
{JOIN_TYPES}
WHERE o.is_ms_shipped = 0 AND s.name <> 'cdc'
ORDER BY s.name, o.name, c.column_id"""

_CAPTURED = """
SELECT ct.source_object_id, ct.object_id, cc.column_name, cc.column_id
FROM cdc.change_tables ct JOIN cdc.captured_columns cc ON cc.object_id = ct.object_id"""

_UNIQUE = """
SELECT i.object_id, i.index_id, c.name AS column_name
FROM sys.indexes i
JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE i.is_unique = 1 AND i.is_disabled = 0 AND i.is_hypothetical = 0 AND i.has_filter = 0 AND ic.key_ordinal > 0
ORDER BY i.object_id, i.index_id, ic.key_ordinal"""


@dataclass(frozen=True, slots=True)
class SqlServerCheckSession:
    """One connection for the queries of a check; rows that are held have another."""

    control: Control
    connection: Connection

    def tables(self) -> list[SourceTable]:
        """Every user table of the database that the login can see, captured or not, as `sys.columns` has it."""
        catalog = self.control.value("SELECT DB_NAME()", doing="asking for the database's name")
        captured: dict[int, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for row in self.control.rows(_CAPTURED, doing="reading captured columns"):
            captured[row.source_object_id][row.object_id][row.column_name] = row.column_id
        unique: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in self.control.rows(_UNIQUE, doing="reading unique indexes"):
            unique[row.object_id][row.index_id].append(row.column_name)
        columns: dict[tuple[int, TableId], list[Column]] = defaultdict(list)
        for row in self.control.rows(_COLUMNS, doing="reading the tables' columns"):
            columns[row.object_id, TableId(catalog, row.schema_name, row.table_name)].append(_column(row))
        return [
            SourceTable(
                table,
                number,
                tuple(own),
                tuple(captured[number].values()),
                tuple(tuple(names) for names in unique[number].values()),
            )
            for (number, table), own in columns.items()
        ]

    def ranges(self, schema: TableSchema, rows: int) -> list[Chunk]:
        """Key ranges of about `rows` rows each, which keep statements short; a single one if the key cannot be cut."""
        try:
            return plan_chunks(self.control, schema, rows)
        except SchemaError:
            return [Chunk(0)]

    def places(self, schema: TableSchema, keys: Sequence[Texts], ranges: Sequence[Chunk]) -> list[int]:
        """For each key, the index in `ranges` of the range that it falls into.

        Args:
            schema: the table's structure, with a key.
            keys: canonical texts of the key columns.
            ranges: what `ranges` returned.
        """
        edges = [chunk.upper for chunk in ranges if chunk.upper is not None]
        return ranges_of(self.control, schema, _bounds(schema, keys), edges)

    def rows(
        self, schema: TableSchema, chunk: Chunk, *, keys: Sequence[Column], buckets: Buckets | None = None
    ) -> Iterator[Texts]:
        """The rows of a key range as canonical texts, in the order of the schema's columns.

        Args:
            schema: the columns to read.
            chunk: the key range.
            keys: the columns that ranges are made of.
            buckets: only rows in these, which are a parameter, so that the text is the same for all.
        """
        selected = f"SELECT {select_list(schema.columns)} FROM {table_name(schema)}"
        some, more = "", ()
        if buckets is not None:
            place = f"{_bucket(_key_hash(schema), buckets.count)} + 1"
            some = f"SUBSTRING(CAST(? AS varbinary(max)), {place}, 1) = 0x01"
            more = (bytes(number in buckets.numbers for number in range(buckets.count)),)
        for piece in pieces(chunk, keys):
            yield from _texts(self.control, schema, selected + _where(piece, some), (*piece.parameters, *more))

    def checksums(self, schema: TableSchema, chunk: Chunk, buckets: int) -> dict[int, Checksum] | None:
        """Count and sums of the rows of a key range, by bucket of their key's hash.

        Args:
            schema: the table's structure, with a key.
            chunk: the key range.
            buckets: how many buckets there are.

        Returns:
            A checksum per bucket that holds rows; None if only the server can produce the bytes of one of the columns.
        """
        if not all(has_checksum(column) for column in schema.columns):
            return None
        found: dict[int, Checksum] = {}
        for piece in pieces(chunk, schema.keys):
            rows = self.control.rows(
                _checksum_statement(schema, piece, buckets),
                *piece.parameters,
                doing=f"adding up checksums of {schema.table_id}",
            )
            for b, count, low, high in rows:
                found[int(b)] = found.get(int(b), Checksum()) + Checksum(int(count), int(low), int(high))
        return found

    def keyed(self, schema: TableSchema, keys: Sequence[Texts], *, number: int = 0) -> Chunk:
        """The chunk that holds the rows with these keys.

        Args:
            schema: the table's structure, with a key.
            keys: the canonical texts of the key columns, one tuple per row.
            number: the chunk's number.
        """
        return Chunk(number, keys=tuple(_bounds(schema, keys)))

    def shows(self, to: Lsn) -> bool:
        """Whether rows that are read from now on are no older than the commit `to`; a readable secondary may lag."""
        doing = "looking for the newest commit of the lake"
        return is_primary(self.control) or bool(self.control.value(IS_CAPTURED, digits(to), digits(to), doing=doing))

    @contextmanager
    def held(self, schema: TableSchema, keys: Sequence[Texts] | None) -> Generator[Iterator[Texts]]:
        """The rows with these keys (None: all), locked against changes until the block ends.

        Args:
            schema: the columns to read, and the key.
            keys: canonical texts of the key columns; a key without a row stays without one while the block lasts.

        Raises:
            SourceUnavailableError: writers did not release the rows in time.
            ConfigurationError: the connection reads a secondary, which ignores locks.
        """
        where, parameters = predicate(self.keyed(schema, keys), schema.keys) if keys is not None else ("", [])
        hints = "TABLOCK, HOLDLOCK" if keys is None else "HOLDLOCK"
        sql = f"SELECT {select_list(schema.columns)} FROM {table_name(schema)} WITH ({hints})"
        sql += f" WHERE {where}" if where else ""
        with control(self.connection, self.control.catalog, autocommit=False, opened_before=True) as opened:
            # The session's marks bound the rows: both connections must be to the primary.
            both = (
                one.value(UPDATEABILITY, doing="asking whether rows may be locked") for one in (self.control, opened)
            )
            if "READ_ONLY" in both:
                raise ConfigurationError(
                    f"Rows of {schema.table_id} have to be locked and read again, and a readable secondary ignores "
                    "locks; check on the primary (without driver.applicationIntent)"
                )
            opened.execute(f"SET LOCK_TIMEOUT {LOCK_TIMEOUT_MS}", doing="setting the lock time-out")
            yield _texts(opened, schema, sql, parameters)


def _column(row: Any) -> Column:
    return Column(
        row.column_name,
        sql_type(row),
        nullable=bool(row.is_nullable),
        position=row.column_id,
        computed=bool(row.is_computed),
    )


def _bounds(schema: TableSchema, keys: Sequence[Texts]) -> list[Bound]:
    return [
        tuple(None if text is None else parameter(column, text) for column, text in zip(schema.keys, key, strict=True))
        for key in keys
    ]


def _where(piece: Piece, condition: str = "") -> str:
    conditions = " AND ".join(text for text in (piece.sql, condition) if text)
    return f" WHERE {conditions}" if conditions else ""


def _checksum_statement(schema: TableSchema, piece: Piece, buckets: int) -> str:
    hashed = (
        f"SELECT {_key_hash(schema)} AS [k], HASHBYTES('SHA2_256', {row_bytes(schema.columns)}) AS [h] "
        f"FROM {table_name(schema)}{_where(piece)}"
    )
    lanes = ", ".join(
        f"CAST(CAST(SUBSTRING([h], {start}, 8) AS bigint) AS decimal(38, 0)) AS [l{start}]" for start in (1, 9)
    )
    return (
        f"SELECT [b], COUNT_BIG(*), SUM([l1]), SUM([l9]) "
        f"FROM (SELECT {_bucket('[k]', buckets)} AS [b], {lanes} FROM ({hashed}) AS [hashed]) AS [numbered] "
        "GROUP BY [b]"
    )


def _texts(control: Control, schema: TableSchema, sql: str, parameters: Sequence[Any]) -> Iterator[Texts]:
    doing = f"comparing {schema.table_id}"
    for row in control.stream(sql, *parameters, size=FETCH_ROWS, doing=doing):
        yield tuple(source_text(column, value) for column, value in zip(schema.columns, row, strict=True))


def _key_hash(schema: TableSchema) -> str:
    return f"HASHBYTES('SHA2_256', {row_bytes(schema.keys)})"


def _bucket(key_hash: str, count: int) -> str:
    return f"CAST(SUBSTRING({key_hash}, 1, 3) AS int) % {int(count)}"
