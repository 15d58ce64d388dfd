"""`sys.columns`, `sys.types`, and the views of identity, computed, default and check definitions of columns."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.relations import columns_of
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import ResultColumn, SqlType, max_length

_COLUMN = (
    "object_id int, name sysname?, column_id int, system_type_id tinyint, user_type_id int, max_length smallint, "
    "precision tinyint, scale tinyint, collation_name sysname?, is_nullable bit?"
)
_COLUMN_REST = (
    ", is_ansi_padded bit = 1, is_rowguidcol bit, is_identity bit, is_computed bit, is_filestream bit = 0, "
    "is_replicated bit?, is_non_sql_subscribed bit? = 0, is_merge_published bit? = 0, is_dts_replicated bit? = 0, "
    "is_xml_document bit = 0, xml_collection_id int = 0, default_object_id int, rule_object_id int = 0, "
    "is_sparse bit?, is_column_set bit? = 0, generated_always_type tinyint?, generated_always_type_desc nvarchar(60)?, "
    "encryption_type int? = NULL, encryption_type_desc nvarchar(64)? = NULL, "
    "encryption_algorithm_name sysname? = NULL, column_encryption_key_id int? = NULL, "
    "column_encryption_key_database_name sysname? = NULL, is_hidden bit?, is_masked bit, graph_type int? = NULL, "
    "graph_type_desc nvarchar(60)? = NULL, is_data_deletion_filter_column bit = 0, "
    "ledger_view_column_type int? = NULL, ledger_view_column_type_desc nvarchar(60)? = NULL, "
    "is_dropped_ledger_column bit = 0, vector_dimensions smallint? = NULL, vector_base_type tinyint? = NULL, "
    "vector_base_type_desc nvarchar(10)? = NULL"
)
COLUMN = _COLUMN + _COLUMN_REST
"""The columns of `sys.columns` and related views."""


def type_ids(type_: SqlType, database: Database | None = None) -> tuple[int, int]:
    """`system_type_id` and `user_type_id`; types made by CREATE TYPE … FROM have their object id as the second."""
    info = TYPES.get(type_.alias or type_.name)
    if info is not None:
        return info.system_type_id, info.user_type_id
    objects = () if database is None else database.objects()
    own = next((item for item in objects if item.type_code == "TYPE" and item.name == type_.alias), None)
    base = TYPES[type_.name]
    return base.system_type_id, base.user_type_id if own is None else own.object_id


def column_values(table: Table, column: Column) -> tuple:
    """The leading columns of `sys.columns`."""
    return _leading(table.database, table.object_id, column, column.column_id)


def _leading(database: Database, object_id: int, column: Column | ResultColumn, number: int) -> tuple:
    type_ = column.type
    return (
        object_id,
        column.name,
        number,
        *type_ids(type_, database),
        max_length(type_),
        type_.precision,
        type_.scale,
        type_.collation.name if type_.collation is not None else None,
        int(column.nullable),
    )


_GENERATED = {"": (0, "NOT_APPLICABLE"), "start": (1, "AS_ROW_START"), "end": (2, "AS_ROW_END")}


def _every_value(table: Table, column: Column) -> tuple:
    return (
        *column_values(table, column),
        int(column.rowguid),
        int(column.identity is not None),
        int(column.computed is not None),
        int(column.replicated),
        column.default.object_id if column.default is not None else 0,
        int(column.sparse),
        *_GENERATED[column.generated],
        int(column.hidden),
        int(column.masking is not None),
    )


def user_columns(scope: Scope) -> Iterator[tuple]:
    """The rows of `sys.columns`."""
    for item in scope.objects():
        if isinstance(item, Table):
            for column in item.columns:
                yield _every_value(item, column)
        else:
            for number, shown in enumerate(columns_of(scope.session, scope.database, item), 1):
                yield shown_column(scope.database, item.object_id, shown, number)


def shown_column(database: Database, object_id: int, shown: Column | ResultColumn, number: int) -> tuple:
    """The row of `sys.columns` for a column of a view or function.

    A view's column over an identity column is one, though sys.identity_columns lists tables' only.
    """
    own = _leading(database, object_id, shown, number)
    return (*own, 0, int(bool(shown.identity)), 0, 0, 0, 0, 0, *_GENERATED[""], 0, 0)


def _masked_columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for column in table.columns:
            if column.masking is not None:
                yield (*_every_value(table, column), column.masking)


def _types(scope: Scope) -> Iterator[tuple]:
    yield from _system_types()
    for item in scope.database.objects():
        if item.type_code == "TYPE":
            type_, info = item.definition, TYPES[item.definition.name]
            yield (
                item.name, info.system_type_id, item.object_id, item.schema.schema_id, max_length(type_),
                type_.precision, type_.scale, type_.collation.name if type_.collation is not None else None,
                int(item.properties.get("nullable", True)), 1, 0, 0,
            )  # fmt: skip
        elif item.type_code == "TT":
            yield (item.name, 243, item.object_id, item.schema.schema_id, -1, 0, 0, None, 0, 1, 0, 1)


def _system_types() -> Iterator[tuple]:
    for name, info in TYPES.items():
        collated = name in {"text", "ntext", "varchar", "char", "nvarchar", "nchar", "sysname"}
        yield (
            "timestamp" if name == "rowversion" else name,
            info.system_type_id,
            info.user_type_id,
            4,
            info.size,
            info.precision,
            info.scale,
            "SQL_Latin1_General_CP1_CI_AS" if collated else None,
            int(name not in ("rowversion", "sysname")),
            0,
            int(name in ("hierarchyid", "geometry", "geography")),
            0,
        )


def _identity_columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for column in table.columns:
            if column.identity is not None:
                type_, last = column.type, column.identity.last
                values = (column.identity.seed, column.identity.increment, last)
                variants = (None if value is None else (type_, value) for value in values)
                yield (*_every_value(table, column), *variants, int(column.identity.not_for_replication))


def _computed_columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for column in table.columns:
            if column.computed is not None:
                yield (*_every_value(table, column), column.computed.text, int(column.computed.persisted))


def _constraint(name: str, object_id: int, table: Table, code: str, description: str) -> tuple:
    created = table.create_date
    return (
        name,
        object_id,
        table.schema.schema_id,
        table.object_id,
        code,
        description,
        created,
        created,
        int(table.is_ms_shipped),
    )


def _default_constraints(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for column in table.columns:
            if (default := column.default) is not None:
                head = _constraint(default.name, default.object_id, table, "D ", "DEFAULT_CONSTRAINT")
                yield (*head, column.column_id, default.text, int(default.system_named))


def _check_constraints(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for check in table.checks:
            head = _constraint(check.name, check.object_id, table, "C ", "CHECK_CONSTRAINT")
            column = table.column(check.column) if check.column else None
            yield (
                *head,
                int(not check.enabled),
                int(check.not_for_replication),
                int(check.not_for_replication or not check.trusted),
                column.column_id if column is not None else 0,
                check.text,
                int(check.system_named),
            )


CONSTRAINT = (
    "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int, type char(2)?, "
    "type_desc nvarchar(60)?, create_date datetime, modify_date datetime, is_ms_shipped bit, is_published bit = 0, "
    "is_schema_published bit = 0"
)

VIEWS = (
    view("sys.columns", COLUMN, user_columns, about="object_id"),
    view(
        "sys.masked_columns",
        COLUMN + ", masking_function nvarchar(4000)?",
        _masked_columns,
        about="object_id",
    ),
    view(
        "sys.types",
        "name sysname, system_type_id tinyint, user_type_id int, schema_id int, principal_id int? = NULL, "
        "max_length smallint, precision tinyint, scale tinyint, collation_name sysname?, is_nullable bit?, "
        "is_user_defined bit, is_assembly_type bit, default_object_id int = 0, rule_object_id int = 0, "
        "is_table_type bit",
        _types,
    ),
    view(
        "sys.identity_columns",
        COLUMN + ", seed_value sql_variant?, increment_value sql_variant?, "
        "last_value sql_variant?, is_not_for_replication bit?",
        _identity_columns,
        about="object_id",
    ),
    view(
        "sys.computed_columns",
        COLUMN + ", definition nvarchar(max)?, uses_database_collation bit = 1, is_persisted bit",
        _computed_columns,
        about="object_id",
    ),
    view(
        "sys.default_constraints",
        CONSTRAINT + ", parent_column_id int, definition nvarchar(max)?, is_system_named bit",
        _default_constraints,
        about="parent_object_id",
    ),
    view(
        "sys.check_constraints",
        CONSTRAINT + ", is_disabled bit, is_not_for_replication bit, is_not_trusted bit, parent_column_id int, "
        "definition nvarchar(max)?, uses_database_collation bit? = 1, is_system_named bit",
        _check_constraints,
        about="parent_object_id",
    ),
)
