"""`sys.databases`: its columns [doc], in the order of the server's own view [sys].

Options come from ALTER DATABASE; columns of unsupported features have the value that they have when the feature is
unused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.views.availability import membership
from mssql_sandbox.engine.storage.database import Database

_RECOVERY = {"FULL": 1, "BULK_LOGGED": 2, "SIMPLE": 3}
_ACCESS = {"MULTI_USER": 0, "SINGLE_USER": 1, "RESTRICTED_USER": 2}
_STATES = {"ONLINE": 0, "RESTORING": 1, "RECOVERING": 2, "EMERGENCY": 5, "OFFLINE": 6}
_PAGE_VERIFY = {"NONE": 0, "TORN_PAGE_DETECTION": 1, "CHECKSUM": 2}
_DURABILITY = {"DISABLED": 0, "ALLOWED": 1, "FORCED": 2}
_AZURE_IDS = 100
_CONTAINMENT = {"NONE": 0, "PARTIAL": 1}
_NAMESPACE = uuid.UUID("5e0a2f4c-7f0b-4f2e-9a54-0d7b8c1e6a10")
_QUERY_STORE_SINCE = 16
"""The first version whose new databases have a query store."""


def _flag(database: Database, option: str, *, default: str = "OFF") -> int:
    """An option that is ON or OFF, as ALTER DATABASE has set it."""
    return int(database.properties.get(option, default) == "ON")


def _chosen(database: Database, option: str, choices: dict[str, int], default: str) -> tuple[int, str]:
    """An option's number and name."""
    name = str(database.properties.get(option, default)).upper()
    return choices[name], name


def _state(database: Database) -> tuple:
    """The columns from user access to the recovery model."""
    options, snapshot = database.options, database.options.allow_snapshot_isolation
    return (
        _ACCESS[options.user_access],
        options.user_access,
        int(options.read_only),
        _flag(database, "auto_close"),
        _flag(database, "auto_shrink"),
        _STATES[options.state],
        options.state,
        int(snapshot),
        "ON" if snapshot else "OFF",
        int(options.read_committed_snapshot),
        _RECOVERY[options.recovery_model],
        options.recovery_model,
        *_chosen(database, "page_verify", _PAGE_VERIFY, "CHECKSUM"),
    )


def _settings(database: Database) -> tuple:
    """The columns from statistics to the query store."""
    return (
        _flag(database, "auto_create_statistics", default="ON"),
        _flag(database, "auto_update_statistics", default="ON"),
        _flag(database, "auto_update_statistics_async"),
        int(database.options.ansi_null_default),
        *(
            _flag(database, name)
            for name in (
                "ansi_nulls", "ansi_padding", "ansi_warnings", "arithabort", "concat_null_yields_null",
                "numeric_roundabort", "quoted_identifier",
            )
        ),
        int(database.options.recursive_triggers),
        _flag(database, "cursor_close_on_commit"),
        int(database.properties.get("cursor_default") == "LOCAL"),
        int(database.name == "msdb" or database.properties.get("trustworthy") == "ON"),
        _flag(database, "db_chaining"),
        int(database.properties.get("parameterization") == "FORCED"),
        int(database.server.version.major >= _QUERY_STORE_SINCE and not database.is_system),
    )  # fmt: skip


def _shown(scope: Scope) -> Iterator[Database]:
    """All databases; in Azure SQL Database a database shows itself and `master`, and `master` shows all [doc]."""
    everything = scope.database.name == "master"
    for database in scope.server.databases.values():
        known = database is scope.database or database.name == "master" or (everything and not database.is_system)
        if known or not scope.server.version.is_azure:
            yield database


def _databases(scope: Scope) -> Iterator[tuple]:
    for database in _shown(scope):
        waits = database.log.capturing
        owner = scope.server.logins.get(database.owner)
        yield (
            database.name,
            # In Azure SQL Database these numbers are the logical server's, DB_ID() is the database's own [doc].
            database.id + (_AZURE_IDS if scope.server.version.is_azure else 0),
            b"\x01" if owner is None else owner.sid,
            database.create_date,
            database.options.compatibility_level,
            database.collation.name,
            *_state(database),
            *_settings(database),
            uuid.uuid5(_NAMESPACE, f"{scope.server.instance_id}/{database.id}"),
            6 if waits else 0,
            "REPLICATION" if waits else "NOTHING",
            int(database.options.cdc_enabled),
            *membership(scope, database),
            *_chosen(database, "containment", _CONTAINMENT, "NONE"),
            0 if database.name == "master" else 60,
            *_chosen(database, "delayed_durability", _DURABILITY, "DISABLED"),
            int(database.is_system and database.name != "tempdb"),
            database.name,
            _flag(database, "accelerated_database_recovery"),
            _flag(database, "optimized_locking"),
        )


_COLUMNS = (
    "name sysname, database_id int, source_database_id int? = NULL, owner_sid varbinary(85)?, create_date datetime, "
    "compatibility_level tinyint, collation_name sysname?, user_access tinyint?, user_access_desc nvarchar(60)?, "
    "is_read_only bit?, is_auto_close_on bit, is_auto_shrink_on bit?, state tinyint?, state_desc nvarchar(60)?, "
    "is_in_standby bit? = 0, is_cleanly_shutdown bit? = 0, is_supplemental_logging_enabled bit? = 0, "
    "snapshot_isolation_state tinyint?, snapshot_isolation_state_desc nvarchar(60)?, "
    "is_read_committed_snapshot_on bit?, recovery_model tinyint?, recovery_model_desc nvarchar(60)?, "
    "page_verify_option tinyint?, page_verify_option_desc nvarchar(60)?, is_auto_create_stats_on bit?, "
    "is_auto_create_stats_incremental_on bit? = 0, is_auto_update_stats_on bit?, is_auto_update_stats_async_on bit?, "
    "is_ansi_null_default_on bit?, is_ansi_nulls_on bit?, is_ansi_padding_on bit?, is_ansi_warnings_on bit?, "
    "is_arithabort_on bit?, is_concat_null_yields_null_on bit?, is_numeric_roundabort_on bit?, "
    "is_quoted_identifier_on bit?, is_recursive_triggers_on bit?, is_cursor_close_on_commit_on bit?, "
    "is_local_cursor_default bit?, is_fulltext_enabled bit? = 1, is_trustworthy_on bit?, is_db_chaining_on bit?, "
    "is_parameterization_forced bit?, is_master_key_encrypted_by_server bit = 0, is_query_store_on bit?, "
    "is_published bit = 0, is_subscribed bit = 0, is_merge_published bit = 0, is_distributor bit = 0, "
    "is_sync_with_backup bit = 0, service_broker_guid uniqueidentifier, is_broker_enabled bit = 1, "
    "log_reuse_wait tinyint?, log_reuse_wait_desc nvarchar(60)?, is_date_correlation_on bit = 0, is_cdc_enabled bit, "
    "is_encrypted bit? = 0, is_honor_broker_priority_on bit? = 0, replica_id uniqueidentifier?, "
    "group_database_id uniqueidentifier?, resource_pool_id int? = NULL, "
    "default_language_lcid smallint? = NULL, default_language_name nvarchar(128)? = NULL, "
    "default_fulltext_language_lcid int? = NULL, default_fulltext_language_name nvarchar(128)? = NULL, "
    "is_nested_triggers_on bit? = NULL, is_transform_noise_words_on bit? = NULL, "
    "two_digit_year_cutoff smallint? = NULL, containment tinyint?, containment_desc nvarchar(60)?, "
    "target_recovery_time_in_seconds int?, delayed_durability int?, delayed_durability_desc nvarchar(60)?, "
    "is_memory_optimized_elevate_to_snapshot_on bit? = 0, is_federation_member bit? = 0, "
    "is_remote_data_archive_enabled bit? = 0, is_mixed_page_allocation_on bit?, "
    "is_temporal_history_retention_enabled bit? = 1, catalog_collation_type int = 0, "
    "catalog_collation_type_desc nvarchar(60)? = 'DATABASE_DEFAULT', physical_database_name nvarchar(128)?, "
    "is_result_set_caching_on bit? = 0, is_accelerated_database_recovery_on bit?, "
    "is_tempdb_spill_to_remote_store bit? = 0, is_stale_page_detection_on bit? = 0, "
    "is_memory_optimized_enabled bit? = 1, is_data_retention_enabled bit? = 0, is_ledger_on bit? = 0, "
    "is_change_feed_enabled bit? = 0, is_data_lake_replication_enabled bit? = 0, is_event_stream_enabled bit? = 0, "
    "data_compaction int? = 0, data_compaction_desc nvarchar(60)? = 'DISABLED', data_lake_log_publishing int? = 0, "
    "data_lake_log_publishing_desc nvarchar(60)? = 'DISABLED', is_vorder_enabled bit? = 0, "
    "is_proactive_statistics_refresh_on bit? = 0, is_optimized_locking_on bit?"
)


def _mirrors(scope: Scope) -> Iterator[tuple]:
    """No database has a mirror."""
    for database in scope.server.databases.values():
        yield (database.id,)


VIEWS = (
    view("sys.databases", _COLUMNS, _databases),
    view(
        "sys.database_mirroring",
        "database_id int, mirroring_guid uniqueidentifier? = NULL, mirroring_state tinyint? = NULL, "
        "mirroring_state_desc nvarchar(60)? = NULL, mirroring_role tinyint? = NULL, "
        "mirroring_role_desc nvarchar(60)? = NULL, mirroring_role_sequence int? = NULL, "
        "mirroring_safety_level tinyint? = NULL, mirroring_safety_level_desc nvarchar(60)? = NULL, "
        "mirroring_safety_sequence int? = NULL, mirroring_partner_name nvarchar(128)? = NULL, "
        "mirroring_partner_instance nvarchar(128)? = NULL, mirroring_witness_name nvarchar(128)? = NULL, "
        "mirroring_witness_state tinyint? = NULL, mirroring_witness_state_desc nvarchar(60)? = NULL, "
        "mirroring_failover_lsn numeric(25,0)? = NULL, mirroring_connection_timeout int? = NULL, "
        "mirroring_redo_queue int? = NULL, mirroring_redo_queue_type nvarchar(60)? = NULL, "
        "mirroring_end_of_log_lsn numeric(25,0)? = NULL, mirroring_replication_lsn numeric(25,0)? = NULL",
        _mirrors,
    ),
)
