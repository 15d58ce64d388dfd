"""`sys.objects`, `sys.tables`, `sys.views`, `sys.schemas`, `sys.partitions` and related views."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.columns import column_type, columns
from mssql_sandbox.catalog.definitions import Scope, SystemTableFunction, view
from mssql_sandbox.catalog.names import ObjectRow, all_objects
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.versions import newest

OBJECT = (
    "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int, type char(2), "
    "type_desc nvarchar(60)?, create_date datetime, modify_date datetime, is_ms_shipped bit, "
    "is_published bit = 0, is_schema_published bit = 0"
)


def object_values(row: ObjectRow) -> tuple:
    """The columns of `OBJECT` for one object."""
    return (
        row.name,
        row.object_id,
        row.schema.schema_id,
        row.parent_object_id,
        row.type_code.ljust(2),
        row.type_description,
        row.create_date,
        row.modify_date,
        int(row.is_ms_shipped),
    )


def user_objects(scope: Scope) -> Iterator[tuple]:
    """The rows of `sys.objects`."""
    for row in all_objects(scope.database):
        yield object_values(row)


def _tables(scope: Scope) -> Iterator[tuple]:
    rows = {row.object_id: row for row in all_objects(scope.database) if row.type_code == "U"}
    for table in scope.database.tables():
        temporal = table.properties.get("temporal_type", 0)
        durability = table.properties.get("memory_optimized", "SCHEMA_AND_DATA")
        yield (
            *object_values(rows[table.object_id]),
            table.next_column_id - 1,
            int(table.tracked),
            int(table.tracked),
            int("memory_optimized" in table.properties),
            int(durability == "SCHEMA_ONLY"),
            durability,
            temporal,
            ("NON_TEMPORAL_TABLE", "HISTORY_TABLE", "SYSTEM_VERSIONED_TEMPORAL_TABLE")[temporal],
            None if table.history is None else table.history.object_id,
            *((None,) * 3 if table.history is None else (-1, -1, "INFINITE")),
        )


def _of_type(*codes: str):
    def rows(scope: Scope) -> Iterator[tuple]:
        for row in all_objects(scope.database):
            if row.type_code in codes:
                yield object_values(row)

    return rows


def _modules(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.text:
            yield (item.object_id, item.text)


def _schemas(scope: Scope) -> Iterator[tuple]:
    for schema in scope.database.schemas.values():
        owner = scope.database.principals.get(schema.owner)
        yield (schema.name, schema.schema_id, 1 if owner is None else owner.principal_id)


def _partitions(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        indexes = [index.index_id for index in table.indexes if not index.disabled]
        if table.clustered is None:
            indexes = [0, *indexes]
        counts = _rows_by_partition(table)
        for index_id in indexes:
            for number, rows in enumerate(counts, 1):
                partition_id = (72057594 << 32) + (table.object_id % 100_000 << 20) + (number << 8) + index_id
                yield (partition_id, table.object_id, index_id, number, partition_id, rows)


def _rows_by_partition(table: Table) -> list[int]:
    """The number of rows of each partition; one number for all rows without partitions."""
    partitioned = table.properties.get("partitioned")
    if partitioned is None:
        return [table.row_count]
    counts = [0] * partitioned.scheme.function.count
    for slot in table.heap:
        row = newest(slot)
        if row is not None:
            counts[partitioned.number(table, row) - 1] += 1
    return counts


def _partition_stats(scope: Scope) -> Iterator[tuple]:
    for partition_id, object_id, index_id, number, _, rows in _partitions(scope):
        yield (partition_id, object_id, index_id, number, *(pages_of(rows),) * 5, rows)


def pages_of(rows: int) -> int:
    """The approximate number of pages that the rows take."""
    return max(1, rows // 80)


def _allocation_units(scope: Scope) -> Iterator[tuple]:
    for partition_id, *_, rows in _partitions(scope):
        yield (partition_id, partition_id, *(pages_of(rows) if rows else 0,) * 3)


def _synonyms(scope: Scope) -> Iterator[tuple]:
    items = {item.object_id: item for item in scope.database.objects()}
    for row in all_objects(scope.database):
        if row.type_code == "SN":
            target = items[row.object_id].properties.get("base_object_name", "")
            yield (*object_values(row), str(target))


def _periods(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        if table.period_at is not None:
            yield (table.object_id, *(table.columns[place].column_id for place in table.period_at))


_CLASSES = {0: "DATABASE", 1: "OBJECT_OR_COLUMN", 2: "PARAMETER", 3: "SCHEMA", 4: "DATABASE_PRINCIPAL", 6: "TYPE",
            7: "INDEX", 20: "DATASPACE", 21: "PARTITION_FUNCTION"}  # fmt: skip


def _extended(scope: Scope) -> Iterator[tuple]:
    for (class_, major, minor, _), (name, _, value) in scope.database.properties.get("extended properties", {}).items():
        yield (class_, _CLASSES[class_], major, minor, name, value)


def _listed(
    scope: Scope, name: str | None, type0: str | None, name0: str | None, type1: str | None, name1: str | None,
    type2: str | None, name2: str | None,
) -> Iterator[list[tuple]]:  # fmt: skip
    """fn_listextendedproperty: properties of one object, or of all of a type if its name is NULL or DEFAULT."""
    kinds = [kind.upper() for kind in (type0, type1, type2) if kind]
    names = [name0, name1, name2][: len(kinds)]
    found = []
    for own, place, value in scope.database.properties.get("extended properties", {}).values():
        if name is not None and own.lower() != name.lower():
            continue
        path = place.path
        if [kind for kind, _ in path] != kinds:
            continue
        if all(
            wanted is None or wanted.lower() == shown.lower() for wanted, (_, shown) in zip(names, path, strict=True)
        ):
            found.append((path[-1][0] if path else None, path[-1][1] if path else None, own, value))
    yield found


TABLE_FUNCTIONS = (
    SystemTableFunction(
        "fn_listextendedproperty",
        columns("objtype sysname?, objname sysname?, name sysname, value sql_variant?"),
        tuple(column_type(text) for text in ("sysname", *("nvarchar(128)",) * 6)),
        _listed,
    ),
)


_MODULE = (
    "object_id int, definition nvarchar(max)?, uses_ansi_nulls bit? = 1, uses_quoted_identifier bit? = 1, "
    "is_schema_bound bit? = 0, uses_database_collation bit? = 0, is_recompiled bit? = 0, "
    "null_on_null_input bit? = 0, execute_as_principal_id int? = NULL, uses_native_compilation bit? = 0, "
    "inline_type bit? = 0, is_inlineable bit? = 0"
)

VIEWS = (
    view("sys.objects", OBJECT, user_objects),
    view(
        "sys.tables",
        OBJECT + ", lob_data_space_id int = 0, filestream_data_space_id int? = NULL, max_column_id_used int, "
        "lock_on_bulk_load bit = 0, uses_ansi_nulls bit? = 1, is_replicated bit?, has_replication_filter bit? = 0, "
        "is_merge_published bit? = 0, is_sync_tran_subscribed bit? = 0, has_unchecked_assembly_data bit = 0, "
        "text_in_row_limit int? = 0, large_value_types_out_of_row bit? = 0, is_tracked_by_cdc bit?, "
        "lock_escalation tinyint? = 0, lock_escalation_desc nvarchar(60)? = 'TABLE', is_filetable bit? = 0, "
        "is_memory_optimized bit?, durability tinyint?, durability_desc nvarchar(60)?, "
        "temporal_type tinyint?, temporal_type_desc nvarchar(60)?, history_table_id int?, "
        "is_remote_data_archive_enabled bit? = 0, is_external bit = 0, history_retention_period int?, "
        "history_retention_period_unit int?, history_retention_period_unit_desc nvarchar(10)?, is_node bit? = 0, "
        "is_edge bit? = 0, data_retention_period int? = -1, data_retention_period_unit int? = -1, "
        "data_retention_period_unit_desc nvarchar(10)? = 'INFINITE', ledger_type tinyint? = 0, "
        "ledger_type_desc nvarchar(60)? = 'NON_LEDGER_TABLE', ledger_view_id int? = NULL, "
        "is_dropped_ledger_table bit? = 0",
        _tables,
    ),
    view(
        "sys.views",
        OBJECT + ", is_replicated bit? = 0, has_replication_filter bit? = 0, has_opaque_metadata bit = 0, "
        "has_unchecked_assembly_data bit = 0, with_check_option bit = 0, is_date_correlation_view bit = 0, "
        "is_tracked_by_cdc bit? = 0, has_snapshot bit? = 0, ledger_view_type tinyint? = 0, "
        "ledger_view_type_desc nvarchar(60)? = 'NON_LEDGER_VIEW', is_dropped_ledger_view bit? = 0",
        _of_type("V"),
    ),
    view(
        "sys.procedures",
        OBJECT + ", is_auto_executed bit = 0, is_execution_replicated bit? = 0, is_repl_serializable_only bit? = 0, "
        "skips_repl_constraints bit? = 0",
        _of_type("P"),
    ),
    view("sys.synonyms", OBJECT + ", base_object_name nvarchar(1035)?", _synonyms),
    view("sys.sql_modules", _MODULE, _modules),
    view("sys.all_sql_modules", _MODULE, _modules),
    view(
        "sys.periods",
        "name sysname = 'SYSTEM_TIME', period_type tinyint? = 1, "
        "period_type_desc nvarchar(60)? = 'SYSTEM_TIME_PERIOD', object_id int, start_column_id int, end_column_id int",
        _periods,
    ),
    view("sys.schemas", "name sysname, schema_id int, principal_id int?", _schemas),
    view(
        "sys.partitions",
        "partition_id bigint, object_id int, index_id int, partition_number int, hobt_id bigint, rows bigint?, "
        "filestream_filegroup_id smallint = 0, data_compression tinyint = 0, "
        "data_compression_desc nvarchar(60)? = 'NONE', xml_compression bit? = 0, "
        "xml_compression_desc varchar(3)? = 'OFF'",
        _partitions,
        about="object_id",
    ),
    view(
        "sys.allocation_units",
        "allocation_unit_id bigint, type tinyint = 1, type_desc nvarchar(60)? = 'IN_ROW_DATA', container_id bigint, "
        "data_space_id int? = 1, total_pages bigint, used_pages bigint, data_pages bigint",
        _allocation_units,
    ),
    view(
        "sys.dm_db_partition_stats",
        "partition_id bigint, object_id int, index_id int, partition_number int, in_row_data_page_count bigint, "
        "in_row_used_page_count bigint, in_row_reserved_page_count bigint, lob_used_page_count bigint = 0, "
        "lob_reserved_page_count bigint = 0, row_overflow_used_page_count bigint = 0, "
        "row_overflow_reserved_page_count bigint = 0, used_page_count bigint, reserved_page_count bigint, "
        "row_count bigint",
        _partition_stats,
        about="object_id",
    ),
    view(
        "sys.extended_properties",
        "class tinyint, class_desc nvarchar(60)?, major_id int, minor_id int, name sysname, value sql_variant?",
        _extended,
    ),
)
