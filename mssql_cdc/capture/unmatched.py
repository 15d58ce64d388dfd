"""Notices about expressions in the configuration that match nothing in a database, one line per property.

A misspelled name in `table.include.list` leaves a table out; one in `column.mask.…` leaves values unmasked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mssql_cdc.config import Connector
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.patterns import Expression, split_expression
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CapturedTable

_Kind = Literal["schema", "table", "captured table", "column"]
_PARTS: Mapping[_Kind, int] = {"schema": 1, "table": 2, "captured table": 2, "column": 3}
"""The parts of a name, without the database."""
_SAID: Mapping[_Kind, str] = {
    "schema": "no table under CDC in {database} has a schema that matches {listed}; check the spelling",
    "table": "no table under CDC in {database} matches {listed}; check the spelling, or enable CDC for the table",
    "captured table": "no captured table of {database} matches {listed}; check the spelling",
    "column": "no captured column of {database} matches {listed}; check the spelling",
}
_MOST = 10


def unmatched_notices(
    connector: Connector,
    database: str,
    *,
    captured: Sequence[CapturedTable],
    unreadable: Collection[TableId] = (),
    left_out: Collection[str] = (),
) -> Iterator[str]:
    """Report the expressions of each list that match nothing: no table, or no column.

    Expressions that may match elsewhere are not reported: with several databases, all except those in the long form
    (`db.schema.table`) whose first part matches this database alone; expressions for columns of a table that is not
    readable; and, with `snapshot.mode=initial_only`, the exclude lists, which may name tables without CDC.
    `datatype.propagate.source.type` is not checked. Where no table is captured, `preflight` reports why.

    Args:
        connector: The configuration.
        database: The database, as the server spells it.
        captured: Its captured tables.
        unreadable: Tables under CDC that cannot be captured as they are.
        left_out: The full names of tables under CDC that the filters do not let through.
    """
    if not captured:
        return
    names = _NamesOf(database, captured, unreadable, left_out)
    found: dict[tuple[str, _Kind], list[str]] = {}
    for name, kind, expressions in _lists(connector):
        for one in expressions:
            if names.of(kind).hold(one) or names.may_be_unreadable(kind, one):
                continue
            if len(connector.databases) == 1 or _is_of(one, kind, database, connector.databases):
                found.setdefault((name, kind), []).append(f"'{one.text}'")
    for (name, kind), texts in found.items():
        more = f" and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
        yield f"{name}: {_SAID[kind].format(database=database, listed=', '.join(texts[:_MOST]) + more)}"


def _lists(connector: Connector) -> Iterator[tuple[str, _Kind, Iterable[Expression]]]:
    """The property, what its expressions name, and the expressions."""
    filters, snapshot, records = connector.filters, connector.snapshot, connector.records
    tables, columns = filters.tables, filters.columns
    yield "schema.include.list", "schema", tables.schema_include.each()
    yield "table.include.list", "table", tables.table_include.each()
    if not snapshot.reads_uncaptured:
        yield "schema.exclude.list", "schema", tables.schema_exclude.each()
        yield "table.exclude.list", "table", tables.table_exclude.each()
    yield "column.include.list", "column", columns.include.each()
    yield "column.exclude.list", "column", columns.exclude.each()
    for rule in (*filters.truncated, *filters.filled, *filters.hashed_v1, *filters.hashed):
        yield rule.name, "column", rule.columns.each(always_long=True)
    yield "column.propagate.source.type", "column", records.source_types.each(always_long=True)
    yield "message.key.columns", "column", [_of_key(*entry) for entry in records.keys.entries]
    yield "snapshot.include.collection.list", "captured table", snapshot.collections.include.each(always_long=True)
    yield "snapshot.select.statement.overrides", "captured table", map(_exactly, snapshot.overridden)


def _of_key(table: str, column: str) -> Expression:
    pattern = java_pattern(f"(?:{table})\\.(?:{column})", ignore_case=True)
    return Expression(f"{table}:{column}", f"{table}.{column}", pattern, takes_long=True)


def _exactly(name: str) -> Expression:
    return Expression(name, re.escape(name), re.compile(re.escape(name), re.IGNORECASE), takes_long=True)


def _is_of(one: Expression, kind: _Kind, database: str, databases: Sequence[str]) -> bool:
    """Whether an expression in the long form names this one of several databases."""
    parts = split_expression(one.source)
    if kind == "schema" or len(parts) != _PARTS[kind] + 1:
        return False
    others = [name for name in databases if name.casefold() != database.casefold()]
    return _matches(parts[0], [database]) and not _matches(parts[0], others)


def _matches(expression: str, names: Iterable[str]) -> bool:
    """Whether a part of an expression matches one of the names; a part that is invalid by itself may match them all."""
    try:
        pattern = java_pattern(expression, ignore_case=True)
    except ValueError:
        return True
    return any(pattern.fullmatch(name) for name in names)


@dataclass(frozen=True)
class _Names:
    """Names of a database, as pairs of the short form (`schema.table`) and the long one (`db.schema.table`)."""

    pairs: Sequence[tuple[str, str]]

    @cached_property
    def _known(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(short.lower() for short, _ in self.pairs), frozenset(long.lower() for _, long in self.pairs)

    def hold(self, one: Expression) -> bool:
        """Whether the expression matches a name; most expressions are one, and are looked up."""
        plain = re.sub(r"\\(\W)", r"\1", one.source)
        short, long = self._known
        known = plain.lower() in short or (one.takes_long and plain.lower() in long)
        if known and one.pattern.fullmatch(plain):
            return True
        matches = one.pattern.fullmatch
        return any(matches(short) or (one.takes_long and matches(long)) for short, long in self.pairs)


@dataclass(frozen=True)
class _NamesOf:
    """What the expressions of a configuration may name in one database."""

    database: str
    captured: Sequence[CapturedTable]
    unreadable: Collection[TableId]
    left_out: Collection[str]

    def of(self, kind: _Kind) -> _Names:
        """The names of this kind."""
        match kind:
            case "schema":
                return self._schemas
            case "table":
                return self._tables
            case "captured table":
                return self._captured
            case "column":
                return self._columns

    def may_be_unreadable(self, kind: _Kind, one: Expression) -> bool:
        """Whether the expression may name columns of a table whose columns are not known."""
        if kind != "column" or not self.unreadable:
            return False
        parts = split_expression(one.source)
        if len(parts) not in (3, 4):
            return True
        return _matches(".".join(parts[:-1]), [name for pair in map(self._pair, self.unreadable) for name in pair])

    @cached_property
    def _schemas(self) -> _Names:
        """A name in `left_out` may have dots in its schema, so every dotted prefix of it counts."""
        found = {one.table_id.schema for one in self.captured} | {one.schema for one in self.unreadable}
        for text in self.left_out:
            parts = self._short(text).split(".")
            found |= {".".join(parts[:end]) for end in range(1, len(parts))}
        return _Names([(name, name) for name in sorted(found)])

    @cached_property
    def _captured(self) -> _Names:
        return _Names([self._pair(table) for table in (*(one.table_id for one in self.captured), *self.unreadable)])

    @cached_property
    def _tables(self) -> _Names:
        return _Names([*self._captured.pairs, *((self._short(text), text) for text in self.left_out)])

    @cached_property
    def _columns(self) -> _Names:
        """The columns of every capture instance, including those that filters exclude."""
        found: list[tuple[str, str]] = []
        for table in self.captured:
            short, long = self._pair(table.table_id)
            names = {column.name for instance in table.instances for column in instance.schema.columns}
            found += [(f"{short}.{name}", f"{long}.{name}") for name in sorted(names)]
        return _Names(found)

    def _pair(self, table: TableId) -> tuple[str, str]:
        return f"{table.schema}.{table.name}", table.text

    def _short(self, text: str) -> str:
        return text[len(self.database) + 1 :]
