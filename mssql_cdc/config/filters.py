"""Which tables and columns a connector captures, and which it masks (FLT-01 … FLT-10, SNP-25, SNP-26, PRE-12, EVT-23).

Pure decisions about names. Row filters (`skipped.operations`, `skip.messages.without.change`) belong to the records
(correctness D25) and are not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from mssql_cdc.config.masks import MaskRule, hash_rule, length_rule
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.property import Effect, Group, members, prop, regexes, section

_BUILT_IN_SCHEMAS = frozenset({"cdc", "sys"})
_BUILT_IN_TABLES = frozenset({"systranschemas"})
_Names = Annotated[PatternList, regexes(1)]
_Tables = Annotated[PatternList, regexes(2, long_form=True)]
_Columns = Annotated[PatternList, regexes(3, long_form=True)]
_LongNames = Annotated[PatternList, regexes(3)]
_NONE = PatternList()


@section(Group.CAPTURE)
class TableFilter:
    """Decides by `schema.table`; an expression with two dots or more may name `db.schema.table` as well."""

    schema_include: _Names = prop("schema.include.list", _NONE, "FLT-03", excludes="schema.exclude.list")
    """Captures only the tables of these schemas."""
    schema_exclude: _Names = prop("schema.exclude.list", _NONE, "FLT-03")
    """Skips the tables of these schemas."""
    table_include: _Tables = prop(
        "table.include.list", _NONE, "FLT-04 SNP-26", older=("table.whitelist",), excludes="table.exclude.list"
    )
    """Captures only these tables, `schema.table` or `db.schema.table`."""
    table_exclude: _Tables = prop("table.exclude.list", _NONE, "FLT-04", older=("table.blacklist",))
    """Skips these tables."""
    ignore_builtin: bool = prop("table.ignore.builtin", True, "PRE-12")
    """Skips the schemas `cdc` and `sys` and the table `systranschemas`."""
    instance_include: _Names = prop(
        "capture.instance.include.list",
        _NONE,
        "FLT-14",
        effect=Effect.REFUSED,
        excludes="capture.instance.exclude.list",
    )
    """Reads only these capture instances (newer than 3.3.1)."""
    instance_exclude: _Names = prop("capture.instance.exclude.list", _NONE, "FLT-14", effect=Effect.REFUSED)
    """Skips these capture instances (newer than 3.3.1)."""
    signal_tables: tuple[str, ...] = ()

    def matches(self, catalog: str, schema: str, table: str) -> bool:
        """Whether the table is captured. The signal table always is (EVT-23).

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        return next(self._excluding(catalog, schema, table), None) is None

    def excluded_by(self, catalog: str, schema: str, table: str) -> tuple[str, ...]:
        """The properties that keep the table from being captured.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        return tuple(self._excluding(catalog, schema, table))

    def _excluding(self, catalog: str, schema: str, table: str) -> Iterator[str]:
        name = f"{schema}.{table}"
        long_name = f"{catalog}.{name}"
        if self.is_signal_table(catalog, schema, table):
            return
        if self.skips_builtin(schema, table):
            yield "table.ignore.builtin"
        if self.schema_include and not self.schema_include.matches(schema):
            yield "schema.include.list"
        if self.schema_exclude and self.schema_exclude.matches(schema):
            yield "schema.exclude.list"
        if self.table_include and not self.table_include.matches(name, long_name):
            yield "table.include.list"
        if self.table_exclude and self.table_exclude.matches(name, long_name):
            yield "table.exclude.list"

    def skips_builtin(self, schema: str, table: str) -> bool:
        """Whether this is a table of CDC or of the server, and such tables are skipped (PRE-12)."""
        return self.ignore_builtin and (schema.lower() in _BUILT_IN_SCHEMAS or table.lower() in _BUILT_IN_TABLES)

    def matches_schema(self, schema: str) -> bool:
        """Whether the lists of schemas let a schema through (FLT-03)."""
        if self.schema_include and not self.schema_include.matches(schema):
            return False
        return not (self.schema_exclude and self.schema_exclude.matches(schema))

    def is_signal_table(self, catalog: str, schema: str, table: str) -> bool:
        """Whether this is (one of) `signal.data.collection`; brackets and double quotes are ignored.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        name = (catalog.lower(), schema.lower(), table.lower())
        return any(tuple(part.lower() for part in split_name(one)) == name for one in self.signal_tables)

    def order(self, catalog: str, schema: str, table: str) -> tuple[int, int, str]:
        """The sort key of snapshots (SNP-26): order of the include list, then name; the signal table last.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        name = f"{schema}.{table}"
        index = self.table_include.first_match(name, f"{catalog}.{name}") if self.table_include else 0
        last = self.is_signal_table(catalog, schema, table)
        return (int(last), len(self.table_include.expressions) if index is None else index, name)


@section(Group.SNAPSHOT)
class CollectionFilter:
    """Decides by `db.schema.table`; `schema.table` is accepted too."""

    include: _LongNames = prop("snapshot.include.collection.list", _NONE, "SNP-25")
    """Reads the rows of only these captured tables, `db.schema.table` or `schema.table`. Default: all."""

    def matches(self, catalog: str, schema: str, table: str) -> bool:
        """Whether the list includes the table; an empty list includes every table.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        if not self.include:
            return True
        name = f"{schema}.{table}"
        return self.include.matches(f"{catalog}.{name}") or self.include.matches(name)


@section(Group.CAPTURE)
class ColumnFilter:
    """Which columns reach `before`, `after` and the current table, by `schema.table.column`."""

    include: _Columns = prop(
        "column.include.list", _NONE, "FLT-05", older=("column.whitelist",), excludes="column.exclude.list"
    )
    """Captures only these columns, `schema.table.column`."""
    exclude: _Columns = prop("column.exclude.list", _NONE, "FLT-05", older=("column.blacklist",))
    """Leaves out these columns."""

    def matches(self, catalog: str, schema: str, table: str, column: str) -> bool:
        """Whether the column is kept. Key columns are not exempt: the caller decides about keys (EVT-03).

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
            column: the column's name.
        """
        name = f"{schema}.{table}.{column}"
        long_name = f"{catalog}.{name}"
        if self.include:
            return self.include.matches(name, long_name)
        return not (self.exclude and self.exclude.matches(name, long_name))


@section(Group.MASK)
class Filters:
    """What is captured, and what of it is masked."""

    tables: TableFilter
    columns: ColumnFilter
    truncated: Annotated[tuple[MaskRule, ...], members(length_rule("truncate", least=1))] = prop(
        "column.truncate.to.<n>.chars", (), "FLT-06"
    )
    """Truncates the listed columns (regexes) to n characters (n > 0)."""
    filled: Annotated[tuple[MaskRule, ...], members(length_rule("fill", least=0))] = prop(
        "column.mask.with.<n>.chars", (), "FLT-07"
    )
    """Replaces every value of the listed columns (regexes), even NULL, with n asterisks."""
    hashed_v1: Annotated[tuple[MaskRule, ...], members(hash_rule(version=1))] = prop(
        "column.mask.hash.<algorithm>.with.salt.<salt>", (), "FLT-08"
    )
    """Replaces the values of the listed columns (regexes) with a salted hash of the Java-serialized text (version 1).
"""
    hashed: Annotated[tuple[MaskRule, ...], members(hash_rule(version=2))] = prop(
        "column.mask.hash.v2.<algorithm>.with.salt.<salt>", (), "FLT-09"
    )
    """Replaces the values of the listed columns (regexes) with a salted hash of the text (version 2)."""

    def mask_for(self, catalog: str, schema: str, table: str, column: str) -> MaskRule | None:
        """The first rule, in Debezium's order of kinds, for `schema.table.column` or `db.schema.table.column`.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
            column: the column's name.
        """
        name = f"{schema}.{table}.{column}"
        for rule in (*self.truncated, *self.filled, *self.hashed_v1, *self.hashed):
            if rule.columns.matches(name) or rule.columns.matches(f"{catalog}.{name}"):
                return rule
        return None


@section(Group.CAPTURE)
class GuardrailSettings:
    """A limit on the number of captured tables."""

    limit: int = prop("guardrail.collections.max", 0, "GRD-01", ge=0)
    """Limits the number of captured tables; 0 = no limit."""
    limit_action: Literal["warn", "fail"] = prop("guardrail.collections.limit.action", "warn", "GRD-02")
    """Selects what happens above the limit."""

    @property
    def max_tables(self) -> int | None:
        """The limit, or None."""
        return self.limit or None

    @property
    def fail(self) -> bool:
        """Whether more tables than the limit stop the connector."""
        return self.limit_action == "fail"


def plain_name(name: str) -> str:
    """A dotted name without brackets and double quotes around its parts."""
    return ".".join(split_name(name))


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; one in brackets or double quotes may hold dots, and its end if doubled (INC-02)."""
    parts: list[str] = []
    current = ""
    closing = ""
    characters, place = name.strip(), -1
    while (place := place + 1) < len(characters):
        character = characters[place]
        if closing:
            if character != closing:
                current += character
            elif characters[place + 1 : place + 2] == closing:
                current += character
                place += 1
            else:
                closing = ""
        elif character in '["' and not current:
            closing = "]" if character == "[" else '"'
        elif character == ".":
            parts.append(current)
            current = ""
        else:
            current += character
    return (*parts, current)


def spoken_name(parts: Sequence[str]) -> str:
    """The dotted name that `split_name` splits into these parts, in brackets if it would otherwise split differently.

    Args:
        parts: Such as database, schema and table.
    """
    name = ".".join(parts)
    return name if split_name(name) == tuple(parts) else ".".join(f"[{part.replace(']', ']]')}]" for part in parts)
