"""The rows of a chunk as T-SQL conditions on its key, with bounds that are texts (rule C20, case B).

The chunks of a table cover every existing and future key value, so rows that are inserted later fall into one of them;
`chunk_planning` finds where they end. A bound is one ASCII text per key column, which the server produces and
gets back as a parameter with `CAST(? AS <declared type>)`: no client ever compares, sorts or rounds a key value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, Kind, SqlServerType, TableSchema
from mssql_cdc.schema.types import LONGEST_BOUND
from mssql_cdc.source.sqlserver.key_texts import key_text
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound, Chunk


@dataclass(frozen=True, slots=True)
class Term:
    """A condition and the values of its parameters."""

    sql: str
    parameters: Sequence[str] = ()


_MOST_OF_PARAMETER = 4000
"""The length, in characters, of the longest nvarchar that has a size."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chunk whose rows are contiguous in the key's index: a T-SQL condition, with its parameters.

    Every condition fixes a prefix of the key by equality and bounds the next column, so that the server seeks,
    whichever way the index runs. An empty text means the whole table.

    Attributes:
        sql: the condition.
        parameters: its parameters.
        fixed: the values of the prefix.
        lower: its term that bounds the next column from below, if there is one: then the column is not NULL.
        others: its terms that are not about the next column.
    """

    sql: str
    parameters: tuple[str, ...] = ()
    fixed: Bound = ()
    lower: Term | None = None
    others: tuple[Term, ...] = ()

    def having(self, column: Column, value: str | None) -> Piece:
        """The rows with a value that rows of the piece have in the next column, which becomes part of the prefix.

        The value replaces the column's bounds: a server seeks by one of several terms, and may choose the wrong one.

        Args:
            column: the column after the prefix.
            value: its value, in the form of a bound.
        """
        terms = (*self.others, *_equals([column], (value,)))
        return replace(_joined(terms), fixed=(*self.fixed, value), others=terms)

    def ending_before(self, column: Column, value: str | None) -> Piece | None:
        """The rows before such a value, which replaces the upper bound; None: there can be none.

        Args:
            column: the column after the prefix.
            value: its value, in the form of a bound.
        """
        before = _before(column, value, inclusive=False, after=self.lower is not None)
        return None if before is None else _joined([*self.others, *([self.lower] if self.lower else []), before])


WHOLE = Piece("")
"""Every row."""


def pieces(chunk: Chunk, keys: Sequence[Column]) -> list[Piece]:
    """The parts of a chunk, in key order; no row is in two of them.

    For a key (a, b), the rows after (1, 5) up to (7, 2) are `a = 1 AND b > 5`, `a > 1 AND a < 7` and
    `a = 7 AND b <= 2`. One condition with OR in it would read every row of the first and the last `a`.
    """
    lower, upper = chunk.lower, chunk.upper
    if chunk.keys is not None:
        return [_of_keys(chunk.keys, piece, keys) for piece in pieces(replace(chunk, keys=None), keys)]
    if lower is None and upper is None:
        return [WHOLE]
    same = _common(lower, upper)
    if lower is not None and same == len(keys):
        return []
    found: list[Piece] = []
    begins: list[Term] = []
    if lower is not None:
        begins = [_after(keys[same], lower[same])]
        # Texts that differ may be equal under the collation: then these pieces must still end with the chunk.
        ends = [Term(*up_to(keys, upper))] if upper is not None else []
        for depth in range(len(keys) - 1, same, -1):
            equal, after = _equals(keys[:depth], lower), _after(keys[depth], lower[depth])
            terms = _joined([*equal, after, *ends])
            found.append(replace(terms, fixed=lower[:depth], lower=after, others=(*equal, *ends)))
    if upper is None:
        return [*found, replace(_joined(begins), lower=begins[0])]
    for depth in range(same, len(keys)):
        after = begins[0] if begins and depth == same else None
        before = _before(keys[depth], upper[depth], inclusive=depth == len(keys) - 1, after=after is not None)
        if before is not None:
            equal, fixed = _equals(keys[:depth], upper), upper[:depth]
            guards = () if after else begins
            found.append(
                replace(_joined([*equal, before, *begins]), fixed=fixed, lower=after, others=(*equal, *guards))
            )
    return found


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


# -- Bounds: key values as texts, and predicates over them --------------------------


def bound_expression(column: Column) -> str:
    """T-SQL that returns a key value as ASCII text.

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
    """T-SQL with one parameter marker that returns the value of a bound's text, in the column's type and collation."""
    sql_type = column.type
    match sql_type.kind:
        case Kind.TEXT:
            units = _units(sql_type)
            # pyodbc sends a longer text as ntext, which cannot be converted to bytes (error 529).
            given = "?" if 4 * units <= _MOST_OF_PARAMETER else f"CAST(? AS varchar({4 * units}))"
            value = f"CAST(CONVERT(varbinary({2 * units}), {given}, 2) AS nvarchar({units}))"
            value = f"{value} COLLATE {sql_type.collation}" if sql_type.collation else value
            return f"CAST({value} AS {sql_type.declaration})" if sql_type.row.code_page else value
        case Kind.BINARY | Kind.CLR:
            # A binary type without a length, such as rowversion, is compared with bytes; any other with its own type.
            bare = sql_type.kind is Kind.BINARY and sql_type.row.bound_bytes
            declared = f"binary({bare})" if bare else sql_type.declaration
            return f"CAST(CONVERT(varbinary({_size(sql_type)}), ?, 2) AS {declared})"
        case _:
            return f"CAST(? AS {sql_type.declaration})"


def shown_key(schema: TableSchema, bound: Bound) -> Bound:
    """The values of a bound in human-readable form (`key_texts`).

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
    alternatives: list[list[Term]] = []
    for depth, column in enumerate(columns):
        before = _before(column, bound[depth], inclusive=depth == len(columns) - 1)
        if before is not None:
            alternatives.append([*_equals(columns[:depth], bound), before])
    whole = [_joined(terms) for terms in alternatives]
    sql = "(" + " OR ".join(f"({piece.sql})" for piece in whole) + ")"
    return sql, [value for piece in whole for value in piece.parameters]


def _joined(terms: Sequence[Term]) -> Piece:
    return Piece(" AND ".join(t.sql for t in terms), tuple(value for t in terms for value in t.parameters))


def _common(lower: Bound | None, upper: Bound | None) -> int:
    """How many leading columns have the same text in both bounds."""
    if lower is None or upper is None:
        return 0
    return next((number for number, (a, b) in enumerate(zip(lower, upper, strict=True)) if a != b), len(lower))


def _equals(columns: Sequence[Column], bound: Bound) -> list[Term]:
    values = bound[: len(columns)]
    return [
        Term(_equal(column, value), () if value is None else (value,))
        for column, value in zip(columns, values, strict=True)
    ]


def _equal(column: Column, value: str | None) -> str:
    return f"{quote(column.name)} IS NULL" if value is None else f"{quote(column.name)} = {bound_value(column)}"


def _after(column: Column, value: str | None) -> Term:
    name = quote(column.name)
    return Term(f"{name} IS NOT NULL") if value is None else Term(f"{name} > {bound_value(column)}", [value])


def _before(column: Column, value: str | None, *, inclusive: bool, after: bool = False) -> Term | None:
    """`column` before the value (or at it); None: there can be none. `after`: another term says it is not NULL."""
    name = quote(column.name)
    if value is None:
        return Term(f"{name} IS NULL") if inclusive else None
    less = f"{name} {'<=' if inclusive else '<'} {bound_value(column)}"
    return Term(f"({less} OR {name} IS NULL)" if column.nullable and not after else less, [value])


def _units(sql_type: SqlServerType) -> int:
    """UTF-16 units that a key value may have; a column declared longer is one of an index (`exceeds_bounds`)."""
    return min(sql_type.length or 1, LONGEST_BOUND)


def _size(sql_type: SqlServerType) -> int:
    """Bytes of a binary key."""
    return sql_type.row.bound_bytes or sql_type.length or 1
