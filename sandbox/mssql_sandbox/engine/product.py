"""The SQL Server versions that the sandbox emulates: one table of versions, and one of what each introduced.

Numbers and names are those of released builds [doc]; what an older version lacks is listed under the version that
introduced it. Azure SQL Database counts as the newest version, without what `NOT_IN_AZURE` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mssql_sandbox.errors import SqlError, error

AZURE_ENGINE = 5


@dataclass(frozen=True, slots=True)
class CaptureDefaults:
    """The setup of change data capture: defaults of its jobs, and the columns of its tables."""

    maxtrans: int = 500
    maxscans: int = 10
    continuous: bool = True
    pollinginterval: int = 5
    threshold: int = 5000
    scan_maxtrans: int = 500
    scan_maxscans: int = 10
    command_id: bool = True
    """Whether change tables have `__$command_id`, which service packs of 2012 to 2016 introduced."""


@dataclass(frozen=True, slots=True)
class ProductVersion:
    """The emulated product: version, edition, name."""

    version: str = "16.0.4149.4"
    level: str = "RTM"
    update_level: str | None = "CU15"
    update: str = "CU15-GDR) (KB5046862"
    """The text that `@@VERSION` shows in parentheses after the level."""
    edition: str = "Developer Edition (64-bit)"
    engine_edition: int = 3
    year: int = 2022
    built: str = "Oct 15 2024 15:50:59"
    platform: str = "Linux (Ubuntu 22.04.4 LTS) <X64>"
    compatibility_level: int = 160
    database_version: int = 957
    view_state: str = "PERFORMANCE STATE"
    """The last words of the permission for performance views: `VIEW DATABASE STATE` up to 2019."""
    capture: CaptureDefaults = CaptureDefaults()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The four parts of the version."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def major(self) -> int:
        """Major version: 16 for SQL Server 2022."""
        return self.numbers[0]

    @property
    def update_reference(self) -> str | None:
        """The knowledge base article of the newest update."""
        found = re.search(r"KB\d+", self.update)
        return found[0] if found is not None else None

    @property
    def is_azure(self) -> bool:
        """Whether it is Azure SQL Database: one database per connection, no Agent."""
        return self.engine_edition == AZURE_ENGINE

    @property
    def wire(self) -> bytes:
        """Major, minor and build as PRELOGIN and LOGINACK carry them."""
        major, minor, build, _ = self.numbers
        return bytes((major, minor)) + build.to_bytes(2, "big")

    @property
    def text(self) -> str:
        """`@@VERSION`."""
        if self.is_azure:
            place = f"Microsoft SQL Azure (RTM) - {self.version} \n\t{self.built} \n"
            return f"{place}\tCopyright (C) {self.year} Microsoft Corporation\n"
        update = f"-{self.update}" if self.update.startswith("CU") else f") ({self.update}" if self.update else ""
        holder = (
            f"Copyright (C) {self.year} Microsoft Corporation"
            if self.major > 13
            else "Copyright (c) Microsoft Corporation"
        )
        return (
            f"Microsoft SQL Server {self.year} ({self.level}{update}) - {self.version} (X64) \n"
            f"\t{self.built} \n\t{holder}\n\t{self.edition} on {self.platform}"
        )


_STATE = "STATE"
_WINDOWS = "Windows Server 2016 Standard 10.0 <X64> (Build 14393: ) (Hypervisor)\n"
VERSIONS: Mapping[str, ProductVersion] = MappingProxyType({
    "2016-rtm": ProductVersion(
        "13.0.1601.5", "RTM", None, "", year=2016, built="Apr 29 2016 23:23:58", platform=_WINDOWS,
        compatibility_level=130, database_version=852, view_state=_STATE, capture=CaptureDefaults(command_id=False),
    ),
    "2016": ProductVersion(
        "13.0.6300.2", "SP3", None, "KB5003279", year=2016, built="Aug  7 2021 01:20:37", platform=_WINDOWS,
        compatibility_level=130, database_version=852, view_state=_STATE,
    ),
    "2017": ProductVersion(
        "14.0.3456.2", "RTM", "CU31", "CU31) (KB5016884", year=2017, built="Sep  2 2022 11:01:50",
        platform="Linux (Ubuntu 18.04.6 LTS) <X64>", compatibility_level=140, database_version=869, view_state=_STATE,
    ),
    "2019": ProductVersion(
        "15.0.4385.2", "RTM", "CU28", "CU28) (KB5039747", year=2019, built="Jul 13 2024 03:46:08",
        platform="Linux (Ubuntu 20.04.6 LTS) <X64>", compatibility_level=150, database_version=904, view_state=_STATE,
    ),
    "2022": ProductVersion(),
    "2025": ProductVersion(
        "17.0.1000.7", "RTM", None, "", edition="Enterprise Developer Edition (64-bit)", year=2025,
        built="Oct 21 2025 12:05:57", compatibility_level=170, database_version=998,
        capture=CaptureDefaults(maxtrans=10_000, threshold=4999, scan_maxtrans=10_000, scan_maxscans=100),
    ),
    "azure": ProductVersion(
        "12.0.2000.8", "RTM", None, "", edition="SQL Azure", engine_edition=AZURE_ENGINE, year=2025,
        built="Oct  2 2025 21:32:46", compatibility_level=170, database_version=998,
        capture=CaptureDefaults(maxscans=100, continuous=False, pollinginterval=0),
    ),
})  # fmt: skip
DEFAULT = "2022"

_COLUMN_VIEWS = (
    "sys.columns",
    *(f"sys.{name}_columns" for name in ("all", "computed", "identity", "masked", "system")),
)


def _of_columns(*names: str) -> tuple[str, ...]:
    """Columns of the views that show all properties of a column."""
    return tuple(f"{view}.{name}" for view in _COLUMN_VIEWS for name in names)


def _of_databases(*names: str) -> tuple[str, ...]:
    return tuple(f"sys.databases.{name}" for name in names)


_BROUGHT: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = (
    ((13, 0, 5026), ("sys.dm_db_log_stats",)),
    ((14,), (
        "concat_ws", "string_agg", "translate", "trim", "sys.dm_os_host_info",
        *_of_columns("graph_type", "graph_type_desc"), "sys.tables.is_node", "sys.tables.is_edge",
        "sys.indexes.suppress_dup_key_messages", "sys.indexes.auto_created", "sys.sequences.last_used_value",
        "sys.dm_exec_requests.is_resumable",
        *_of_databases("is_temporal_history_retention_enabled"),
    )),
    ((15,), (
        "approx_count_distinct", "sys.indexes.optimize_for_sequential_key", "sys.sql_modules.inline_type",
        "sys.sql_modules.is_inlineable", "sys.index_columns.column_store_order_ordinal",
        "sys.stats.has_persisted_sample", "sys.stats.stats_generation_method", "sys.stats.stats_generation_method_desc",
        "sys.views.has_snapshot", "sys.dm_exec_requests.page_resource", "sys.dm_exec_requests.page_server_reads",
        "sys.dm_exec_sessions.page_server_reads", *_of_columns("is_data_deletion_filter_column"),
        *_of_databases(
            "catalog_collation_type", "catalog_collation_type_desc", "physical_database_name",
            "is_result_set_caching_on", "is_accelerated_database_recovery_on", "is_tempdb_spill_to_remote_store",
            "is_stale_page_detection_on", "is_memory_optimized_enabled",
        ),
    )),
    ((16,), (
        "approx_percentile_cont", "approx_percentile_disc", "generate_series",
        "greatest", "least", "left_shift", "right_shift", "sys.dm_exec_requests.dist_statement_id",
        *_of_databases("is_change_feed_enabled", "is_ledger_on", "is_data_retention_enabled"),
        *(f"sys.tables.{name}" for name in (
            "data_retention_period", "data_retention_period_unit", "data_retention_period_unit_desc", "ledger_type",
            "ledger_type_desc", "ledger_view_id", "is_dropped_ledger_table",
        )),
        *(f"sys.views.{name}" for name in ("ledger_view_type", "ledger_view_type_desc", "is_dropped_ledger_view")),
        "sys.partitions.xml_compression", "sys.partitions.xml_compression_desc", "sys.stats.auto_drop",
        *_of_columns("ledger_view_column_type", "ledger_view_column_type_desc", "is_dropped_ledger_column"),
    )),
    ((17,), (
        "base64_decode", "base64_encode", "current_date", "edit_distance", "edit_distance_similarity",
        "jaro_winkler_distance", "jaro_winkler_similarity", "json_arrayagg", "json_objectagg", "product",
        "regexp_count", "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "unistr",
        *_of_columns("vector_dimensions", "vector_base_type", "vector_base_type_desc"),
        *_of_databases(
            "is_data_lake_replication_enabled", "is_event_stream_enabled", "data_compaction", "data_compaction_desc",
            "data_lake_log_publishing", "data_lake_log_publishing_desc", "is_vorder_enabled",
            "is_proactive_statistics_refresh_on", "is_optimized_locking_on",
        ),
    )),
)  # fmt: skip
SINCE: Mapping[str, tuple[int, ...]] = MappingProxyType({name: since for since, names in _BROUGHT for name in names})
"""Functions (bare names), system objects and their columns (with schema), and the build that introduced them."""
NOT_IN_AZURE = frozenset({
    "sys.database_mirroring", "sys.database_recovery_status", "sys.dm_hadr_database_replica_states",
    "sys.dm_server_services", "sys.sp_cdc_start_job", "sys.sp_cdc_stop_job",
})  # fmt: skip
"""[doc] for mirroring, the recovery status, the replicas and the services; [?] for the procedures of Agent jobs."""
ONLY_IN_AZURE = frozenset({"sys.dm_database_replica_states"})


def exists(version: ProductVersion, name: str) -> bool:
    """Whether this version has the function, system object or column of a system view, by lower-case name."""
    if version.is_azure:
        return name not in NOT_IN_AZURE
    if name in ONLY_IN_AZURE:
        return False
    since = SINCE.get(name)
    return since is None or version.numbers >= since


def require_function(version: ProductVersion, name: str) -> None:
    """Error 195 for a function which this version does not have."""
    if not exists(version, name.lower()):
        raise error(195, name=name, kind="built-in function name")


def refuse_other_database(version: ProductVersion, name: str) -> None:
    """Azure SQL Database: objects of other databases cannot be named.

    Raises:
        SqlError: 40515.
    """
    if version.is_azure:
        text = f"Reference to database and/or server name in '{name}' is not supported in this version of SQL Server."
        raise SqlError(40515, text, severity=15)


def refuse_use(version: ProductVersion) -> None:
    """Azure SQL Database: a connection stays in its database.

    Raises:
        SqlError: 40508.
    """
    if version.is_azure:
        raise SqlError(
            40508,
            "USE statement is not supported to switch between databases. Use a new connection to connect to a "
            "different database.",
        )
