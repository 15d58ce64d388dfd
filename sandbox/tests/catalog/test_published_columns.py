"""Columns of catalogue views are those that Microsoft publishes, in the server's order, for the version at hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cdc.client import LocalWorld, World

OBJECT = (
    "name object_id principal_id schema_id parent_object_id type type_desc create_date modify_date is_ms_shipped "
    "is_published is_schema_published "
)
COLUMN = (
    "object_id name column_id system_type_id user_type_id max_length precision scale collation_name is_nullable "
    "is_ansi_padded is_rowguidcol is_identity is_computed is_filestream is_replicated is_non_sql_subscribed "
    "is_merge_published is_dts_replicated is_xml_document xml_collection_id default_object_id rule_object_id is_sparse "
    "is_column_set generated_always_type generated_always_type_desc encryption_type encryption_type_desc "
    "encryption_algorithm_name column_encryption_key_id column_encryption_key_database_name is_hidden is_masked "
    "graph_type graph_type_desc is_data_deletion_filter_column ledger_view_column_type ledger_view_column_type_desc "
    "is_dropped_ledger_column "
)
SHAPE = (
    "COLUMN_NAME ORDINAL_POSITION COLUMN_DEFAULT IS_NULLABLE DATA_TYPE CHARACTER_MAXIMUM_LENGTH CHARACTER_OCTET_LENGTH "
    "NUMERIC_PRECISION NUMERIC_PRECISION_RADIX NUMERIC_SCALE DATETIME_PRECISION CHARACTER_SET_CATALOG "
    "CHARACTER_SET_SCHEMA CHARACTER_SET_NAME COLLATION_CATALOG COLLATION_SCHEMA COLLATION_NAME DOMAIN_CATALOG "
    "DOMAIN_SCHEMA DOMAIN_NAME"
)
TABLE = "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME "
CONSTRAINT = "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME "
PUBLISHED = {
    "sys.objects": OBJECT,
    "sys.columns": COLUMN,
    "sys.masked_columns": COLUMN + "masking_function",
    "sys.identity_columns": COLUMN + "seed_value increment_value last_value is_not_for_replication",
    "sys.computed_columns": COLUMN + "definition uses_database_collation is_persisted",
    "sys.views": OBJECT + "is_replicated has_replication_filter has_opaque_metadata has_unchecked_assembly_data "
    "with_check_option is_date_correlation_view is_tracked_by_cdc has_snapshot ledger_view_type ledger_view_type_desc "
    "is_dropped_ledger_view",
    "sys.procedures": OBJECT + "is_auto_executed is_execution_replicated is_repl_serializable_only "
    "skips_repl_constraints",
    "sys.security_policies": "name object_id principal_id schema_id parent_object_id type type_desc create_date "
    "modify_date is_ms_shipped is_enabled is_not_for_replication uses_database_collation is_schemabinding_enabled",
    "sys.security_predicates": "object_id security_predicate_id target_object_id predicate_definition predicate_type "
    "predicate_type_desc operation operation_desc",
    "sys.sequences": OBJECT + "start_value increment minimum_value maximum_value is_cycling is_cached cache_size "
    "system_type_id user_type_id precision scale current_value is_exhausted last_used_value",
    "sys.indexes": "object_id name index_id type type_desc is_unique data_space_id ignore_dup_key is_primary_key "
    "is_unique_constraint fill_factor is_padded is_disabled is_hypothetical is_ignored_in_optimization allow_row_locks "
    "allow_page_locks has_filter filter_definition compression_delay suppress_dup_key_messages auto_created "
    "optimize_for_sequential_key",
    "sys.stats_columns": "object_id stats_id stats_column_id column_id",
    "sys.triggers": "name object_id parent_class parent_class_desc parent_id type type_desc create_date modify_date "
    "is_ms_shipped is_disabled is_not_for_replication is_instead_of_trigger",
    "sys.parameters": "object_id name parameter_id system_type_id user_type_id max_length precision scale is_output "
    "is_cursor_ref has_default_value is_xml_document default_value xml_collection_id is_readonly is_nullable "
    "encryption_type encryption_type_desc encryption_algorithm_name column_encryption_key_id "
    "column_encryption_key_database_name",
    "sys.dm_exec_requests": "session_id request_id start_time status command sql_handle statement_start_offset "
    "statement_end_offset plan_handle database_id user_id connection_id blocking_session_id wait_type wait_time "
    "last_wait_type wait_resource open_transaction_count open_resultset_count transaction_id context_info "
    "percent_complete estimated_completion_time cpu_time total_elapsed_time scheduler_id task_address reads writes "
    "logical_reads text_size language date_format date_first quoted_identifier arithabort ansi_null_dflt_on "
    "ansi_defaults ansi_warnings ansi_padding ansi_nulls concat_null_yields_null transaction_isolation_level "
    "lock_timeout deadlock_priority row_count prev_error nest_level granted_query_memory executing_managed_code "
    "group_id query_hash query_plan_hash statement_sql_handle statement_context_id dop parallel_worker_count "
    "external_script_request_id is_resumable page_resource page_server_reads dist_statement_id",
    "sys.dm_tran_active_transactions": "transaction_id name transaction_begin_time transaction_type transaction_uow "
    "transaction_state transaction_status transaction_status2 dtc_state dtc_status dtc_isolation_level "
    "filestream_transaction_id",
    "sys.dm_tran_database_transactions": "transaction_id database_id "
    "{0}begin_time {0}type {0}state {0}status {0}status2 {0}log_record_count {0}replicate_record_count "
    "{0}log_bytes_used {0}log_bytes_reserved {0}log_bytes_used_system {0}log_bytes_reserved_system {0}begin_lsn "
    "{0}last_lsn {0}most_recent_savepoint_lsn {0}commit_lsn {0}last_rollback_lsn {0}next_undo_lsn".format(
        "database_transaction_"
    ),
    "sys.dm_tran_locks": "resource_type resource_subtype resource_database_id resource_description "
    "resource_associated_entity_id resource_lock_partition request_mode request_type request_status "
    "request_reference_count request_lifetime request_session_id request_exec_context_id request_request_id "
    "request_owner_type request_owner_id request_owner_guid request_owner_lockspace_id lock_owner_address",
    "sys.messages": "message_id language_id severity is_event_logged text",
    "INFORMATION_SCHEMA.COLUMNS": TABLE + SHAPE,
    "INFORMATION_SCHEMA.ROUTINE_COLUMNS": TABLE + SHAPE,
    "INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE": TABLE + "COLUMN_NAME " + CONSTRAINT,
    "INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE": TABLE + CONSTRAINT,
    "INFORMATION_SCHEMA.TABLE_PRIVILEGES": "GRANTOR GRANTEE " + TABLE + "PRIVILEGE_TYPE IS_GRANTABLE",
    "INFORMATION_SCHEMA.COLUMN_PRIVILEGES": "GRANTOR GRANTEE " + TABLE + "COLUMN_NAME PRIVILEGE_TYPE IS_GRANTABLE",
    "INFORMATION_SCHEMA.VIEW_TABLE_USAGE": "VIEW_CATALOG VIEW_SCHEMA VIEW_NAME " + TABLE,
    "INFORMATION_SCHEMA.VIEW_COLUMN_USAGE": "VIEW_CATALOG VIEW_SCHEMA VIEW_NAME " + TABLE + "COLUMN_NAME",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_views_have_their_published_columns(world: World, name: str) -> None:
    """[doc] of SQL Server 2022; the order of sys.columns and sys.databases [sys]."""
    assert world.execute(f"SELECT * FROM {name} WHERE 1 = 0").names == [PUBLISHED[name].split()]


FILLED = (*(name for name in PUBLISHED if ".dm_" in name or ".sys" in name), "sys.sysobjects", "sys.sysdatabases")


@pytest.mark.parametrize("name", [*FILLED, "sys.all_views"])
def test_views_have_rows_of_their_columns(world: World, name: str) -> None:
    """A row has as many values as the view has columns, of their types."""
    world.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, name nvarchar(20), price decimal(9, 2))")
    world.execute("CREATE VIEW dbo.v AS SELECT id FROM dbo.t")
    world.execute("BEGIN TRANSACTION; INSERT dbo.t VALUES (1, N'a', 1)")
    assert world.rows(f"SELECT * FROM {name}")
    world.execute("ROLLBACK")


STANDARD = (
    "CHECK_CONSTRAINTS COLUMN_DOMAIN_USAGE COLUMN_PRIVILEGES COLUMNS CONSTRAINT_COLUMN_USAGE CONSTRAINT_TABLE_USAGE "
    "DOMAIN_CONSTRAINTS DOMAINS KEY_COLUMN_USAGE PARAMETERS REFERENTIAL_CONSTRAINTS ROUTINE_COLUMNS ROUTINES SCHEMATA "
    "SEQUENCES TABLE_CONSTRAINTS TABLE_PRIVILEGES TABLES VIEW_COLUMN_USAGE VIEW_TABLE_USAGE VIEWS"
)


def test_information_schema_is_whole(world: World) -> None:
    """[doc] its 21 views."""
    rows = world.rows("SELECT name FROM sys.system_views WHERE schema_id = SCHEMA_ID('INFORMATION_SCHEMA')")
    assert {name for (name,) in rows} >= set(STANDARD.split())


NEW = {
    "sys.columns.graph_type": "2017",
    "sys.columns.ledger_view_column_type": "2022",
    "sys.columns.vector_dimensions": "2025",
    "sys.databases.physical_database_name": "2019",
    "sys.databases.is_ledger_on": "2022",
    "sys.databases.is_optimized_locking_on": "2025",
    "sys.indexes.optimize_for_sequential_key": "2019",
    "sys.tables.ledger_type": "2022",
    "sys.partitions.xml_compression": "2022",
    "sys.dm_exec_requests.is_resumable": "2017",
}
YEARS = ("2016", "2017", "2019", "2022", "2025")


@pytest.mark.parametrize("column", NEW)
def test_columns_come_with_their_version(of_version: Callable[[str], LocalWorld], column: str) -> None:
    """[doc] "Applies to" of the column; [sys] for what came with 2025."""
    view, _, name = column.rpartition(".")
    having = []
    for year in YEARS:
        world = of_version(year)
        if name in world.execute(f"SELECT * FROM {view} WHERE 1 = 0").names[0]:
            having.append(year)
        world.close()
    assert having == [year for year in YEARS if year >= NEW[column]]
