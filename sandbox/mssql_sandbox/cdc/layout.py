"""Names and columns of the objects that change data capture creates in a database.

Declarations only: the metadata tables, the fixed columns of a change table, names derived from an instance's name.
Column order matters: clients read `cdc.change_tables` by position [dbz].
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "cdc"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A metadata table: its columns as text (see `catalog.columns`) and the columns of its unique clustered index.

    `primary` marks the index of a primary key; `others` are further indexes: name, column, whether unique.
    """

    name: str
    columns: str
    key: tuple[str, ...]
    schema: str = SCHEMA
    primary: bool = False
    others: tuple[tuple[str, str, bool], ...] = ()


CHANGE_TABLES = TableLayout(
    "change_tables",
    "object_id int, version int?, source_object_id int?, capture_instance sysname, start_lsn binary(10)?, "
    "end_lsn binary(10)?, supports_net_changes bit?, has_drop_pending bit?, role_name sysname?, index_name sysname?, "
    "filegroup_name sysname?, create_date datetime?, partition_switch bit",
    ("object_id",),
    others=(
        ("change_tables_unique_idx", "capture_instance", True),
        ("source_object_id_idx", "source_object_id", False),
    ),
)
CAPTURED_COLUMNS = TableLayout(
    "captured_columns",
    "object_id int, column_name sysname, column_id int?, column_type sysname, column_ordinal int, is_computed bit?, "
    "masking_function nvarchar(4000)?",
    ("object_id", "column_ordinal"),
)
INDEX_COLUMNS = TableLayout(
    "index_columns",
    "object_id int, column_name sysname, index_ordinal tinyint, column_id int",
    ("object_id", "index_ordinal", "column_id"),
    primary=True,
)
DDL_HISTORY = TableLayout(
    "ddl_history",
    "source_object_id int?, object_id int, required_column_update bit?, ddl_command nvarchar(max)?, "
    "ddl_lsn binary(10), ddl_time datetime?",
    ("object_id", "ddl_lsn"),
)
LSN_TIME_MAPPING = TableLayout(
    "lsn_time_mapping",
    "start_lsn binary(10), tran_begin_time datetime?, tran_end_time datetime?, tran_id varbinary(10)?, "
    "tran_begin_lsn binary(10)?",
    ("start_lsn",),
    others=(("lsn_time_mapping_nonunique_idx", "tran_end_time", False),),
)
SYSTRANSCHEMAS = TableLayout(
    "systranschemas",
    "tabid int, startlsn binary(10), endlsn binary(10), typeid int",
    ("startlsn",),
    schema="dbo",
)
METADATA_TABLES = (
    CHANGE_TABLES,
    CAPTURED_COLUMNS,
    INDEX_COLUMNS,
    DDL_HISTORY,
    LSN_TIME_MAPPING,
    SYSTRANSCHEMAS,
)

JOBS = TableLayout(
    "cdc_jobs",
    "database_id int, job_type nvarchar(20), job_id uniqueidentifier?, maxtrans int?, maxscans int?, continuous bit?, "
    "pollinginterval bigint?, retention bigint?, threshold bigint?",
    ("database_id", "job_type"),
    schema="dbo",
    primary=True,
)
"""`msdb.dbo.cdc_jobs`, created with the first job of the server."""
AZURE_JOBS = TableLayout(
    "cdc_jobs",
    "job_type nvarchar(20), maxtrans int?, maxscans int?, continuous bit?, pollinginterval bigint?, retention bigint?, "
    "threshold bigint?",
    ("job_type",),
    primary=True,
)
"""`cdc.cdc_jobs` of Azure SQL Database: a database has two jobs, without ids of Agent [sys]."""

LEADING_COLUMNS = (
    "__$start_lsn binary(10), __$end_lsn binary(10)?, __$seqval binary(10), __$operation int, "
    "__$update_mask varbinary(128)?"
)
TRAILING_COLUMNS = "__$command_id int?"
LEADING = 5
"""The number of columns of a change table before the captured ones."""


def trailing_columns(*, command_id: bool) -> str:
    """The columns after the captured ones; builds before the service packs of 2012 to 2016 have none."""
    return TRAILING_COLUMNS if command_id else ""


def change_table_key(*, command_id: bool) -> tuple[str, ...]:
    """The columns of a change table's clustered index."""
    return ("__$start_lsn", *(("__$command_id",) if command_id else ()), "__$seqval", "__$operation")


RESERVED_COLUMN_NAMES = frozenset(
    {"__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask", "__$command_id"}
)

PLACEHOLDERS = (
    "fn_cdc_get_all_changes_...",
    "fn_cdc_get_all_changes_ ... ",
    "fn_cdc_get_net_changes_...",
    "fn_cdc_get_net_changes_ ... ",
)
"""Functions that exist only to carry permissions and the name in error 313 [fab][sys]."""

DATABASE_PROCEDURES = (
    "sp_batchinsert_lsn_time_mapping",
    "sp_ins_dummy_lsn_time_mapping",
    "sp_ins_instance_enabling_lsn_time_mapping",
    "sp_ins_lsn_time_mapping",
)
"""The procedures that enabling a database creates in the schema `cdc` [sys]."""


def instance_procedures(object_id: int) -> tuple[str, str, str]:
    """The procedures of one change table, named by its object id [sys]."""
    return f"sp_batchinsert_{object_id}", f"sp_insdel_{object_id}", f"sp_upd_{object_id}"


ALL_CHANGES = "fn_cdc_get_all_changes_"
NET_CHANGES = "fn_cdc_get_net_changes_"
MAX_INSTANCE_NAME = 100
MAX_KEY_COLUMNS = 14
MAX_CAPTURED_COLUMNS = 1019


def change_table_name(instance: str) -> str:
    """The change table of a capture instance, in the schema `cdc`."""
    return f"{instance}_CT"


def net_index_name(instance: str) -> str:
    """The additional unique index of an instance with net changes [sys]."""
    return f"{instance}_CT_idx"


def clustered_index_name(instance: str) -> str:
    """The clustered index of a change table."""
    return f"{instance}_CT_clustered_idx"


def job_name(database: str, job_type: str) -> str:
    """The name of the Agent job `capture` or `cleanup` of a database."""
    return f"cdc.{database}_{job_type}"
