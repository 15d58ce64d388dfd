"""`sys.configurations`, the statistics of the log, and other views of the server."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.columns import column_type, columns
from mssql_sandbox.catalog.definitions import Scope, SystemTableFunction, view
from mssql_sandbox.engine.log import lsn_text
from mssql_sandbox.engine.storage.database import Database

_CONFIGURATIONS = {
    "max text repl size (B)": (1536, -1, 2147483647, 1, 0),
    "clr enabled": (1562, 0, 1, 1, 0),
    "show advanced options": (518, 0, 1, 1, 0),
    "user options": (1534, 0, 32767, 1, 0),
    "default language": (124, 0, 9999, 1, 0),
    "nested triggers": (115, 0, 1, 1, 0),
    "max degree of parallelism": (1539, 0, 32767, 1, 1),
    "contained database authentication": (16393, 0, 1, 1, 0),
}


def _configurations(scope: Scope) -> Iterator[tuple]:
    for name, value in scope.server.config.items():
        number, low, high, dynamic, advanced = _CONFIGURATIONS.get(name, (16000, 0, 2147483647, 1, 1))
        integer = column_type("int")
        variants = [(integer, item) for item in (value, low, high, value)]
        yield (number, name, *variants, name, dynamic, advanced)


def _languages(scope: Scope) -> Iterator[tuple]:  # noqa: ARG001 - the same in every scope
    yield (0, "mdy", 7, 0, "us_english", "English", 1033, 1033)


def _servers(scope: Scope) -> Iterator[tuple]:
    yield (0, scope.server.name, "SQL Server", "SQLNCLI", scope.server.name, scope.server.start_time)


def _sys_info(scope: Scope) -> Iterator[tuple]:
    yield (2, 8388608, scope.server.start_time)


def _host_info(scope: Scope) -> Iterator[tuple]:  # noqa: ARG001 - the same in every scope
    yield ("Linux", "Ubuntu", "22.04", "", 0, 0)


def _master_files(scope: Scope) -> Iterator[tuple]:
    for database in scope.server.databases.values():
        yield from _files_of(database)


def _database_files(scope: Scope) -> Iterator[tuple]:
    for row in _files_of(scope.database):
        yield row[1:]


def _files_of(database: Database) -> Iterator[tuple]:
    data = f"/var/opt/mssql/data/{database.name}"
    yield (database.id, 1, 0, "ROWS", 1, database.name, f"{data}.mdf", 0, "ONLINE", 1024)
    yield (database.id, 2, 1, "LOG", 0, f"{database.name}_log", f"{data}_log.ldf", 0, "ONLINE", 1024)


def _log_stats(scope: Scope, database_id: int | None) -> Iterator[list[tuple]]:
    """`sys.dm_db_log_stats(database_id)`: one row, for the current database if the id is NULL or 0."""
    server = scope.server
    database = scope.database if not database_id else server.database_by_id(database_id)
    if database is None:
        return
    if server.replica.serves(scope.session.spid):  # [doc] the rest is shown on the primary only.
        yield [(database.id, None, database.options.recovery_model, *[None] * 9)]
        return
    log = database.log
    oldest = log.oldest_active_lsn or log.end_lsn
    megabytes = log.records * 120 / 2**20
    yield [
        (
            database.id,
            str(server.instance_id).upper(),
            database.options.recovery_model,
            lsn_text(oldest),
            lsn_text(log.end_lsn),
            4,
            max(8.0, megabytes),
            1,
            megabytes,
            "REPLICATION" if log.capturing else "NOTHING",
            lsn_text(oldest),
            lsn_text(oldest),
        )
    ]


TABLE_FUNCTIONS = (
    SystemTableFunction(
        "dm_db_log_stats",
        columns(
            "database_id int, recovery_unit_guid nvarchar(60)?, recovery_model nvarchar(60), "
            "log_min_lsn nvarchar(24)?, log_end_lsn nvarchar(24)?, "
            "total_vlf_count bigint?, total_log_size_mb float?, active_vlf_count bigint?, "
            "active_log_size_mb float?, log_truncation_holdup_reason nvarchar(60)?, log_recovery_lsn nvarchar(24)?, "
            "log_checkpoint_lsn nvarchar(24)?"
        ),
        (column_type("int"),),
        _log_stats,
    ),
)

_FILE = (
    "file_id int, file_guid uniqueidentifier? = NULL, type tinyint, type_desc nvarchar(60)?, data_space_id int, "
    "name sysname, physical_name nvarchar(260), state tinyint?, state_desc nvarchar(60)?, size int, "
    "max_size int = -1, growth int = 8192, is_media_read_only bit = 0, is_read_only bit = 0, is_sparse bit = 0, "
    "is_percent_growth bit = 0, is_name_reserved bit = 0, is_persistent_log_buffer bit = 0, "
    "create_lsn numeric(25, 0)? = NULL, drop_lsn numeric(25, 0)? = NULL, read_only_lsn numeric(25, 0)? = NULL, "
    "read_write_lsn numeric(25, 0)? = NULL, differential_base_lsn numeric(25, 0)? = NULL, "
    "differential_base_guid uniqueidentifier? = NULL, differential_base_time datetime? = NULL, "
    "redo_start_lsn numeric(25, 0)? = NULL, redo_start_fork_guid uniqueidentifier? = NULL, "
    "redo_target_lsn numeric(25, 0)? = NULL, redo_target_fork_guid uniqueidentifier? = NULL, "
    "backup_lsn numeric(25, 0)? = NULL"
)


def _diagnostics_log(_scope: Scope) -> Iterator[tuple]:
    yield (1, "/var/opt/mssql/log/", 100, 10)


VIEWS = (
    view(
        "sys.dm_os_server_diagnostics_log_configurations",
        "is_enabled bit, path nvarchar(260), max_size int, max_files int",
        _diagnostics_log,
    ),
    view(
        "sys.configurations",
        "configuration_id int, name nvarchar(35), value sql_variant?, minimum sql_variant?, maximum sql_variant?, "
        "value_in_use sql_variant?, description nvarchar(255), is_dynamic bit, is_advanced bit",
        _configurations,
    ),
    view(
        "sys.syslanguages",
        "langid smallint, dateformat nchar(3), datefirst tinyint, upgrade int, name sysname, alias sysname, lcid int, "
        "msglangid smallint",
        _languages,
    ),
    view(
        "sys.servers",
        "server_id int, name sysname, product sysname, provider sysname, data_source nvarchar(4000)?, "
        "location nvarchar(4000)? = NULL, provider_string nvarchar(4000)? = NULL, catalog sysname? = NULL, "
        "connect_timeout int? = 0, query_timeout int? = 0, is_linked bit = 0, is_remote_login_enabled bit = 1, "
        "is_rpc_out_enabled bit = 1, is_data_access_enabled bit = 0, is_collation_compatible bit = 0, "
        "uses_remote_collation bit = 1, collation_name sysname? = NULL, lazy_schema_validation bit = 0, "
        "is_system bit = 0, is_publisher bit = 0, is_subscriber bit? = 0, is_distributor bit? = 0, "
        "is_nonsql_subscriber bit? = 0, is_remote_proc_transaction_promotion_enabled bit? = 1, "
        "modify_date datetime, is_rda_server bit? = 0",
        _servers,
    ),
    view("sys.dm_os_sys_info", "cpu_count int, physical_memory_kb bigint, sqlserver_start_time datetime", _sys_info),
    view(
        "sys.dm_os_host_info",
        "host_platform nvarchar(256), host_distribution nvarchar(256), host_release nvarchar(256), "
        "host_service_pack_level nvarchar(256), host_sku int?, os_language_version int",
        _host_info,
    ),
    view("sys.master_files", "database_id int, " + _FILE + ", credential_id int? = NULL", _master_files),
    view("sys.database_files", _FILE, _database_files),
)
