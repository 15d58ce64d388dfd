"""Splits a table into chunks by its key, step by step, with bounds that are texts (rule C20, case B).

The chunks cover every existing and future key value, so rows that are inserted later fall into one of them. A step
reads the keys of one chunk, from the last bound on; who makes it, and what is kept of it, is not decided here. A bound
is one ASCII text per key column, which the server produces and gets back as a parameter with
`CAST(? AS <declared type>)`: no client ever compares, sorts or rounds a key value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, Kind, SqlServerType, TableSchema
from mssql_cdc.schema.types import LONGEST_BOUND
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.key_texts import key_text
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound, Chunk

_PLACE = "[__$place]"
"""A name that no captured column has: those that begin so are CDC's own."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chunk whose rows lie side by side in the key's index: a T-SQL condition, with its parameters.

    Every condition fixes a prefix of the key by equality and bounds the next column, so that the server seeks. An
    empty text is the whole table.
    """

    sql: str
    parameters: tuple[str, ...] = ()


def pieces(chunk: Chunk, keys: Sequence[Column]) -> list[Piece]:
    """The parts of a chunk, in key order; no row is in two of them.

    For a key (a, b) the rows behind (1, 5) up to (7, 2) are `a = 1 AND b > 5`, `a > 1 AND a < 7` and
    `a = 7 AND b <= 2`. One condition with OR in it would read every row of the first and the last `a`.
    """
    lower, upper = chunk.lower, chunk.upper
    if chunk.keys is not None:
        return [_of_keys(chunk.keys, piece, keys) for piece in pieces(replace(chunk, keys=None), keys)]
    if lower is None and upper is None:
        return [Piece("")]
    same = _common(lower, upper)
    if lower is not None and same == len(keys):
        return []
    found: list[list[_Term]] = []
    begins: list[_Term] = []
    fixed: list[_Term] = []
    if lower is not None:
        begins, fixed = [_behind(keys[same], lower[same])], _equals(keys[:same], lower)
        # Texts that differ may be equal under the collation: then these pieces must still end with the chunk.
        ends = [_Term(*up_to(keys, upper))] if upper is not None else []
        for depth in range(len(keys) - 1, same, -1):
            found.append([*_equals(keys[:depth], lower), _behind(keys[depth], lower[depth]), *ends])
    if upper is None:
        return [_piece(terms) for terms in [*found, [*fixed, *begins]]]
    for depth in range(same, len(keys)):
        before = _before(keys[depth], upper[depth], inclusive=depth == len(keys) - 1)
        if before is not None:
            found.append([*_equals(keys[:depth], upper), before, *begins])
    return [_piece(terms) for terms in found]


def predicate(chunk: Chunk, keys: Sequence[Column]) -> tuple[str, list[str]]:
    """The chunk's rows as one T-SQL condition, with its parameters; an empty text for the whole table."""
    found = pieces(chunk, keys)
    if any(not piece.sql for piece in found):
        return "", []
    sql = " OR ".join(f"({piece.sql})" for piece in found) or "1 = 0"
    return f"({sql})", [value for piece in found for value in piece.parameters]


def _of_keys(wanted: Sequence[Bound], piece: Piece, keys: Sequence[Column]) -> Piece:
    """The rows of a piece that have one of these keys: a seek for each."""
    listed = "(" + (" OR ".join(_is_key(keys, bound) for bound in wanted) or "1 = 0") + ")"
    values = tuple(value for bound in wanted for value in bound if value is not None)
    return Piece(f"({piece.sql}) AND {listed}" if piece.sql else listed, (*piece.parameters, *values))


def _is_key(columns: Sequence[Column], bound: Bound) -> str:
    return "(" + " AND ".join(map(_equal, columns, bound)) + ")"


def table_name(schema: TableSchema) -> str:
    """`[schema].[table]` in the connection's database."""
    return f"{quote(schema.table_id.schema)}.{quote(schema.table_id.name)}"


def plan_chunks(control: Control, schema: TableSchema, rows_per_chunk: int) -> list[Chunk]:
    """All chunks of about `rows_per_chunk` rows in key order (`next_bound`).

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows_per_chunk: at least 1.
    """
    edges: list[Bound | None] = [None]
    while (bound := next_bound(control, schema, rows_per_chunk, edges[-1])) is not None:
        edges.append(bound)
    edges.append(None)
    return [Chunk(number, lower, upper) for number, (lower, upper) in enumerate(pairwise(edges))]


def estimated_rows(control: Control) -> dict[int, int]:
    """About how many rows each table that the login can see has, by its object id: from metadata."""
    statement = "SELECT object_id, SUM(rows) FROM sys.partitions WHERE index_id IN (0, 1) GROUP BY object_id"
    return {int(table): int(rows or 0) for table, rows in control.rows(statement, doing="estimating tables' rows")}


def next_bound(
    control: Control,
    schema: TableSchema,
    rows: int,
    last: Bound | None,
    *,
    until: Bound | None = None,
    condition: str | None = None,
    under_lock: bool = False,
) -> Bound | None:
    """Return the key that ends the next `rows` rows after `last`; None if fewer remain.

    A seek from the last bound, then a walk along the key's index: however large the table, each statement reads the
    keys of one chunk; with a condition, up to the last row of the chunk that fulfills it. Rows that share a surrogate
    key's value stay in one chunk, since a chunk reaches up to and including its bound.

    A table without a key, or with one of a type that has no bounds (sql_variant), has none.

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows: how many rows the chunk has, at least 1.
        last: the bound of the chunk before; None at the beginning of the table.
        until: look no further than this bound.
        condition: count only the rows that fulfill it.
        under_lock: the caller holds a shared lock on the table, behind which a writer may wait: take none.
    """
    if not schema.keys or not all(column.type.has_bounds for column in schema.keys):
        return None
    names = ", ".join(quote(column.name) for column in schema.keys)
    texts = ", ".join(bound_expression(column) for column in schema.keys)
    doing = f"planning a chunk of {schema.table_id}"
    left, parts = rows, pieces(Chunk(0, last, until), schema.keys)
    for part in parts:
        # TOP ends the walk, and its order is that of the numbers: the server sorts nothing.
        first = f"SELECT TOP (?) {names} {_rows(schema, part.sql, condition, under_lock=under_lock)} ORDER BY {names}"
        numbered = f"SELECT {names}, ROW_NUMBER() OVER (ORDER BY {names}) AS {_PLACE} FROM ({first}) AS k"
        found = control.row(
            f"SELECT {texts} FROM ({numbered}) AS n WHERE {_PLACE} = ?", left, *part.parameters, left, doing=doing
        )
        if found is not None:
            return tuple(found)
        if part is not parts[-1]:
            counted = control.value(f"SELECT COUNT_BIG(*) FROM ({first}) AS k", left, *part.parameters, doing=doing)
            left = max(left - counted, 1)  # Rows may have come since the look.
    return None


def last_bound(control: Control, schema: TableSchema, condition: str | None = None) -> Bound | None:
    """Return the largest key of the table in the order of its chunks; None if it is empty.

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        condition: look only at the rows that fulfill it.

    Raises:
        SchemaError: keys of this type cannot bound a chunk.
    """
    names = ", ".join(f"{quote(column.name)} DESC" for column in schema.keys)
    texts = ", ".join(bound_expression(column) for column in schema.keys)
    found = control.row(
        f"SELECT TOP (1) {texts} {_rows(schema, '', condition)} ORDER BY {names}",
        doing=f"looking for the largest key of {schema.table_id}",
    )
    return None if found is None else tuple(found)


def _rows(schema: TableSchema, sql: str, condition: str | None, *, under_lock: bool = False) -> str:
    """FROM and WHERE for the rows of a piece; the table has the name under which a chunk reads it."""
    conditions = [text for text in (sql, f"({condition})" if condition else "") if text]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"FROM {table_name(schema)} AS t{' WITH (NOLOCK)' if under_lock else ''}{where}"


# -- Bounds: key values as texts, and predicates over them --------------------------


def bound_expression(column: Column) -> str:
    """T-SQL that gives a key value as ASCII text.

    Raises:
        SchemaError: keys of this type cannot bound a chunk.
    """
    name, sql_type = quote(column.name), column.type
    row = sql_type.row
    if not sql_type.has_bounds:
        raise SchemaError(f"A key column of type {sql_type.declaration} cannot bound a chunk ({column.name!r})")
    match sql_type.kind:
        case Kind.TEXT:
            units = _units(sql_type)
            national = f"CAST({name} AS nvarchar({units}))" if row.code_page else name
            return f"CONVERT(varchar({4 * units}), CAST({national} AS varbinary({2 * units})), 2)"
        case Kind.BINARY | Kind.CLR:
            size = _size(sql_type)
            return f"CONVERT(varchar({2 * size}), CAST({name} AS varbinary({size})), 2)"
        case _:
            style = row.bound_style or row.style
            return f"CONVERT(varchar(60), {name}{f', {style}' if style else ''})"


def bound_value(column: Column) -> str:
    """T-SQL with one parameter marker that gives the value of a bound's text, in the column's type and collation."""
    sql_type = column.type
    match sql_type.kind:
        case Kind.TEXT:
            units = _units(sql_type)
            value = f"CAST(CONVERT(varbinary({2 * units}), ?, 2) AS nvarchar({units}))"
            value = f"{value} COLLATE {sql_type.collation}" if sql_type.collation else value
            return f"CAST({value} AS {sql_type.declaration})" if sql_type.row.code_page else value
        case Kind.BINARY | Kind.CLR:
            # A binary type without a length, as rowversion, is compared with bytes; any other type with its own.
            bare = sql_type.kind is Kind.BINARY and sql_type.row.bound_bytes
            declared = f"binary({bare})" if bare else sql_type.declaration
            return f"CAST(CONVERT(varbinary({_size(sql_type)}), ?, 2) AS {declared})"
        case _:
            return f"CAST(? AS {sql_type.declaration})"


def shown_key(schema: TableSchema, bound: Bound) -> Bound:
    """The values of a bound as people read them (`key_texts`).

    Args:
        schema: the table, with its key.
        bound: the bound.
    """
    return tuple(
        None if value is None else key_text(column.type, value)
        for column, value in zip(schema.keys, bound, strict=True)
    )


def up_to(columns: Sequence[Column], bound: Bound) -> tuple[str, list[str]]:
    """The rows up to and including a bound in key order, with the parameters (NULL sorts first)."""
    alternatives: list[list[_Term]] = []
    for depth, column in enumerate(columns):
        before = _before(column, bound[depth], inclusive=depth == len(columns) - 1)
        if before is not None:
            alternatives.append([*_equals(columns[:depth], bound), before])
    whole = [_piece(terms) for terms in alternatives]
    sql = "(" + " OR ".join(f"({piece.sql})" for piece in whole) + ")"
    return sql, [value for piece in whole for value in piece.parameters]


@dataclass(frozen=True, slots=True)
class _Term:
    """A condition and the values of its parameters."""

    sql: str
    parameters: Sequence[str] = ()


def _piece(terms: Sequence[_Term]) -> Piece:
    return Piece(" AND ".join(t.sql for t in terms), tuple(value for t in terms for value in t.parameters))


def _common(lower: Bound | None, upper: Bound | None) -> int:
    """How many leading columns have the same text in both bounds."""
    if lower is None or upper is None:
        return 0
    return next((number for number, (a, b) in enumerate(zip(lower, upper, strict=True)) if a != b), len(lower))


def _equals(columns: Sequence[Column], bound: Bound) -> list[_Term]:
    values = bound[: len(columns)]
    return [
        _Term(_equal(column, value), () if value is None else (value,))
        for column, value in zip(columns, values, strict=True)
    ]


def _equal(column: Column, value: str | None) -> str:
    return f"{quote(column.name)} IS NULL" if value is None else f"{quote(column.name)} = {bound_value(column)}"


def _behind(column: Column, value: str | None) -> _Term:
    name = quote(column.name)
    return _Term(f"{name} IS NOT NULL") if value is None else _Term(f"{name} > {bound_value(column)}", [value])


def _before(column: Column, value: str | None, *, inclusive: bool) -> _Term | None:
    """`column` before the value (or at it); None: no value can be."""
    name = quote(column.name)
    if value is None:
        return _Term(f"{name} IS NULL") if inclusive else None
    less = f"{name} {'<=' if inclusive else '<'} {bound_value(column)}"
    return _Term(f"({less} OR {name} IS NULL)" if column.nullable else less, [value])


def _units(sql_type: SqlServerType) -> int:
    """UTF-16 units that a key value may have; a longer declaration is that of an index (`exceeds_bounds`)."""
    return min(sql_type.length or 1, LONGEST_BOUND)


def _size(sql_type: SqlServerType) -> int:
    """Bytes of a binary key."""
    return sql_type.row.bound_bytes or sql_type.length or 1
