"""`sp_pkeys`, `sp_fkeys`, `sp_statistics[_100]`, `sp_special_columns[_100]`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, SystemProcedure, procedure, result_set
from mssql_sandbox.catalog.odbc_columns import odbc_column
from mssql_sandbox.catalog.procedures.patterns import check_qualifier, name_test
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.constraints import ForeignKey
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.exec.security import sees_object

_PKEYS = columns(
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname, COLUMN_NAME sysname, KEY_SEQ smallint, "
    "PK_NAME sysname?"
)
_STATISTICS = columns(
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname, NON_UNIQUE smallint?, "
    "INDEX_QUALIFIER sysname?, INDEX_NAME sysname?, TYPE smallint, SEQ_IN_INDEX smallint?, COLUMN_NAME sysname?, "
    "COLLATION char(1)?, CARDINALITY int?, PAGES int?, FILTER_CONDITION varchar(128)?"
)
_FKEYS = columns(
    "PKTABLE_QUALIFIER sysname?, PKTABLE_OWNER sysname?, PKTABLE_NAME sysname, PKCOLUMN_NAME sysname, "
    "FKTABLE_QUALIFIER sysname?, FKTABLE_OWNER sysname?, FKTABLE_NAME sysname, FKCOLUMN_NAME sysname, "
    "KEY_SEQ smallint, UPDATE_RULE smallint?, DELETE_RULE smallint?, FK_NAME sysname?, PK_NAME sysname?, "
    "DEFERRABILITY smallint"
)
_SPECIAL = columns(
    "SCOPE smallint, COLUMN_NAME sysname, DATA_TYPE smallint, TYPE_NAME sysname, PRECISION int?, LENGTH int?, "
    "SCALE smallint?, PSEUDO_COLUMN smallint"
)
_RULES = {"CASCADE": 0, "NO ACTION": 1, "SET NULL": 2, "SET DEFAULT": 3}
_TABLE = "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL"


def _matching(call: Call, name: str, owner: str, *, patterns: bool = False) -> Iterator[Table]:
    """The tables that a pair of arguments names."""
    fits_name = name_test(call.text(name), patterns=patterns)
    fits_owner = name_test(call.text(owner), patterns=patterns)
    for table in call.scope.database.tables():
        named = fits_name(table.name) and fits_owner(table.schema.name)
        if named and sees_object(call.scope.session, call.scope.database, table):
            yield table


async def _pkeys(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "table_qualifier")
    database = call.scope.database.name
    rows = [
        (database, table.schema.name, table.name, column, number, key.name)
        for table in _matching(call, "table_name", "table_owner")
        if (key := table.primary_key) is not None
        for number, (column, _) in enumerate(key.columns, 1)
    ]
    for event in result_set(_PKEYS, rows):
        yield event


def _statistics_rows(call: Call) -> Iterator[tuple]:
    fits_index = name_test(call.text("index_name"))
    unique_only = (call.text("is_unique") or "N").upper() == "Y"
    database = call.scope.database.name
    for table in _matching(call, "table_name", "table_owner"):
        head = (database, table.schema.name, table.name)
        pages = max(1, table.row_count // 80)
        yield (*head, None, None, None, 0, None, None, None, table.row_count, pages, None)
        indexes = [i for i in table.indexes if fits_index(i.name) and (i.unique or not unique_only)]
        for index in sorted(indexes, key=lambda i: (not i.unique, 1 if i.clustered else 3, i.name)):
            yield from _index_rows(head, table, index, pages)


def _index_rows(head: tuple, table: Table, index: Index, pages: int) -> Iterator[tuple]:
    for number, (column, descending) in enumerate(index.columns, 1):
        order = "D" if descending else "A"
        kind = 1 if index.clustered else 3
        condition = index.predicate_text or None
        yield (
            *head,
            int(not index.unique),
            table.name,
            index.name,
            kind,
            number,
            column,
            order,
            table.row_count,
            pages,
            condition,
        )


async def _statistics(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "table_qualifier")
    for event in result_set(_STATISTICS, list(_statistics_rows(call))):
        yield event


def _fkey_rows(call: Call) -> Iterator[tuple]:
    fits_parent = name_test(call.text("pktable_name"), patterns=False)
    fits_parent_owner = name_test(call.text("pktable_owner"), patterns=False)
    database = call.scope.database.name
    for table in _matching(call, "fktable_name", "fktable_owner"):
        for key in table.foreign_keys:
            if fits_parent(key.referenced.name) and fits_parent_owner(key.referenced.schema.name):
                yield from _fkey_columns(database, key)


def _fkey_columns(database: str, key: ForeignKey) -> Iterator[tuple]:
    parent, child = key.referenced, key.table
    wanted = set(key.referenced_columns)
    target = next((i.name for i in parent.indexes if i.unique and {c for c, _ in i.columns} == wanted), None)
    pairs = zip(key.referenced_columns, key.columns, strict=True)
    for number, (theirs, own) in enumerate(pairs, 1):
        yield (
            database,
            parent.schema.name,
            parent.name,
            theirs,
            database,
            child.schema.name,
            child.name,
            own,
            number,
            _RULES[key.on_update],
            _RULES[key.on_delete],
            key.name,
            target,
            7,
        )


async def _fkeys(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "pktable_qualifier", "fktable_qualifier")
    rows = sorted(_fkey_rows(call), key=lambda row: (row[5], row[6], row[8]))
    for event in result_set(_FKEYS, rows):
        yield event


def _special_rows(call: Call) -> Iterator[tuple]:
    version = call.number("odbcver") or 2
    for table in _matching(call, "table_name", "table_owner"):
        if (call.text("col_type") or "R").upper() == "V":
            names = [column.name for column in table.columns if column.is_rowversion]
        else:
            unique = [index for index in table.indexes if index.unique and index.predicate is None]
            best = table.primary_key or next(iter(unique), None)
            names = [name for name, _ in best.columns] if best is not None else []
        for name in names:
            column = table.column(name)
            assert column is not None, "an index names a column which its table has"
            shape = odbc_column(column.type, nullable=False, identity=bool(column.identity), odbc_version=version)
            yield (0, name, shape.data_type, shape.type_name, shape.precision, shape.length, shape.scale, 1)


def _special_columns(name: str) -> SystemProcedure:
    async def run(call: Call) -> AsyncIterator[Event]:
        check_qualifier(call, "qualifier")
        for event in result_set(_SPECIAL, list(_special_rows(call))):
            yield event

    arguments = (
        "@table_name sysname, @table_owner sysname = NULL, @qualifier sysname = NULL, @col_type char(1) = 'R', "
        "@scope char(1) = 'T', @nullable char(1) = 'U', @ODBCVer int = 2"
    )
    return procedure(f"sys.{name}", arguments, run)


_STATISTICS_ARGUMENTS = f"{_TABLE}, @index_name sysname = '%', @is_unique char(1) = 'N', @accuracy char(1) = 'Q'"

PROCEDURES = (
    procedure("sys.sp_pkeys", _TABLE, _pkeys),
    procedure("sys.sp_statistics", _STATISTICS_ARGUMENTS, _statistics),
    procedure("sys.sp_statistics_100", _STATISTICS_ARGUMENTS, _statistics),
    procedure(
        "sys.sp_fkeys",
        "@pktable_name sysname = NULL, @pktable_owner sysname = NULL, @pktable_qualifier sysname = NULL, "
        "@fktable_name sysname = NULL, @fktable_owner sysname = NULL, @fktable_qualifier sysname = NULL",
        _fkeys,
    ),
    _special_columns("sp_special_columns"),
    _special_columns("sp_special_columns_90"),
    _special_columns("sp_special_columns_100"),
)
