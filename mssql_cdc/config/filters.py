"""Which tables and columns belong to a connector (features FLT-01 … FLT-05, SNP-25, SNP-26, PRE-12, EVT-23).

Pure decisions about names. Row filters (`skipped.operations`, `skip.messages.without.change`) belong to the records
(correctness B25) and are not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.config.patterns import PatternList

_BUILT_IN_SCHEMAS = frozenset({"cdc", "sys"})
_BUILT_IN_TABLES = frozenset({"systranschemas"})
_ANY = PatternList("")
_ANY_NAME = PatternList("", 3)
_ANY_TABLE = PatternList("", 2, long_form=True)
_ANY_COLUMN = PatternList("", 3, long_form=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """Decides by `schema.table`; an expression with two dots or more may name `db.schema.table` as well."""

    schema_include: PatternList = _ANY
    schema_exclude: PatternList = _ANY
    table_include: PatternList = _ANY_TABLE
    table_exclude: PatternList = _ANY_TABLE
    ignore_builtin: bool = True
    signal_tables: tuple[str, ...] = ()

    def matches(self, catalog: str, schema: str, table: str) -> bool:
        """Whether the table is captured. The signal table always is (EVT-23)."""
        name = f"{schema}.{table}"
        long_name = f"{catalog}.{name}"
        if self.is_signal_table(catalog, schema, table):
            return True
        if self.ignore_builtin and (schema.lower() in _BUILT_IN_SCHEMAS or table.lower() in _BUILT_IN_TABLES):
            return False
        if self.schema_include and not self.schema_include.matches(schema):
            return False
        if self.schema_exclude and self.schema_exclude.matches(schema):
            return False
        if self.table_include and not self.table_include.matches(name, long_name):
            return False
        return not (self.table_exclude and self.table_exclude.matches(name, long_name))

    def is_signal_table(self, catalog: str, schema: str, table: str) -> bool:
        """Whether it is (one of) `signal.data.collection`; brackets and double quotes do not count."""
        name = f"{catalog}.{schema}.{table}".lower()
        return any(plain_name(one).lower() == name for one in self.signal_tables)

    def order(self, catalog: str, schema: str, table: str) -> tuple[int, int, str]:
        """The sort key of snapshots (SNP-26): order of the include list, then name; the signal table last."""
        name = f"{schema}.{table}"
        index = self.table_include.first_match(name, f"{catalog}.{name}") if self.table_include else 0
        last = self.is_signal_table(catalog, schema, table)
        return (int(last), len(self.table_include.expressions) if index is None else index, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFilter:
    """`snapshot.include.collection.list` and the like: `db.schema.table`; `schema.table` is accepted too."""

    include: PatternList = _ANY

    def matches(self, catalog: str, schema: str, table: str) -> bool:
        """Whether the table is meant; an empty list means every table."""
        if not self.include:
            return True
        name = f"{schema}.{table}"
        return self.include.matches(f"{catalog}.{name}") or self.include.matches(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFilter:
    """Which columns reach `before`, `after` and the current table, by `schema.table.column`."""

    include: PatternList = _ANY_COLUMN
    exclude: PatternList = _ANY_COLUMN

    def matches(self, catalog: str, schema: str, table: str, column: str) -> bool:
        """Whether the column is kept. Key columns are not exempt: the caller decides about keys (EVT-03)."""
        name = f"{schema}.{table}.{column}"
        long_name = f"{catalog}.{name}"
        if self.include:
            return self.include.matches(name, long_name)
        return not (self.exclude and self.exclude.matches(name, long_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTypeFilter:
    """Which columns carry their source type as schema parameters in the records (FLT-11, FLT-12)."""

    columns: PatternList = _ANY_NAME
    types: PatternList = _ANY_NAME

    def matches(self, catalog: str, schema: str, table: str, column: str, type_name: str) -> bool:
        """`type_name` is SQL Server's, as in `schema.table.typeName` of `datatype.propagate.source.type`."""
        for patterns, last in ((self.columns, column), (self.types, type_name)):
            name = f"{schema}.{table}.{last}"
            if patterns and (patterns.matches(name) or patterns.matches(f"{catalog}.{name}")):
                return True
        return False


def plain_name(name: str) -> str:
    """A dotted name without brackets and double quotes around its parts."""
    return ".".join(split_name(name))


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; a part in brackets or double quotes may hold dots (INC-02)."""
    parts: list[str] = []
    current = ""
    closing = ""
    for character in name.strip():
        if closing:
            if character == closing:
                closing = ""
            else:
                current += character
        elif character in '["' and not current:
            closing = "]" if character == "[" else '"'
        elif character == ".":
            parts.append(current)
            current = ""
        else:
            current += character
    return (*parts, current)
