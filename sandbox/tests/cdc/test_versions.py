"""What differs between versions of SQL Server, as far as readers of change data meet it."""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.product import SINCE, VERSIONS, exists
from tests.cdc.client import LocalWorld
from tests.cdc.conftest import Make

TABLE = "CREATE TABLE dbo.t (id int PRIMARY KEY, a int)"


def captured(world: LocalWorld) -> LocalWorld:
    world.execute(TABLE)
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1), (2, 2)")
    world.capture()
    return world


IDENTITY = {
    "2016-rtm": ("13.0.1601.5", "RTM", 3, 130, "Microsoft SQL Server 2016 (RTM) - 13.0.1601.5 (X64) "),
    "2016": ("13.0.6300.2", "SP3", 3, 130, "Microsoft SQL Server 2016 (SP3) (KB5003279) - 13.0.6300.2 (X64) "),
    "2017": ("14.0.3456.2", "RTM", 3, 140, "Microsoft SQL Server 2017 (RTM-CU31) (KB5016884) - 14.0.3456.2 (X64) "),
    "2019": ("15.0.4385.2", "RTM", 3, 150, "Microsoft SQL Server 2019 (RTM-CU28) (KB5039747) - 15.0.4385.2 (X64) "),
    "2022": ("16.0.4149.4", "RTM", 3, 160, "Microsoft SQL Server 2022 (RTM-CU15-GDR) (KB5046862) - 16.0.4149.4 (X64) "),
    "2025": ("17.0.1000.7", "RTM", 3, 170, "Microsoft SQL Server 2025 (RTM) - 17.0.1000.7 (X64) "),
    "azure": ("12.0.2000.8", "RTM", 5, 170, "Microsoft SQL Azure (RTM) - 12.0.2000.8 "),
}


def test_azure_keeps_its_jobs_and_databases_to_itself(of_version: Make) -> None:
    """[sys] cdc.cdc_jobs has neither database nor id; [doc] sys.databases shows the database and master."""
    world = captured(of_version("azure"))
    answer = world.execute("SELECT * FROM cdc.cdc_jobs")
    assert answer.names == [
        ["job_type", "maxtrans", "maxscans", "continuous", "pollinginterval", "retention", "threshold"]
    ]
    assert answer.sets == [[("capture", 500, 100, 0, 0, 0, 0), ("cleanup", 0, 0, 0, 0, 4320, 5000)]]
    world.execute("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 60")
    assert [row[1] for row in world.rows("EXEC sys.sp_cdc_help_jobs")] == ["capture", "cleanup"]
    assert world.rows("SELECT name FROM sys.databases ORDER BY 1") == [("master",), (world.database,)]


@pytest.mark.parametrize("version", IDENTITY)
def test_a_server_says_which_version_it_is(of_version: Make, version: str) -> None:
    """[doc] numbers of released builds."""
    number, level, engine, compatibility, first_line = IDENTITY[version]
    world = of_version(version)
    assert world.value("SELECT @@VERSION").split("\n")[0] == first_line
    ((shown, at, edition),) = world.rows(
        "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(20)), "
        "CAST(SERVERPROPERTY('ProductLevel') AS nvarchar(20)), CAST(SERVERPROPERTY('EngineEdition') AS int)"
    )
    assert (shown, at, edition) == (number, level, engine)
    assert world.value("SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()") == compatibility


def test_every_version_is_described() -> None:
    assert set(VERSIONS) == set(IDENTITY)


def test_the_wire_says_major_minor_and_build() -> None:
    """[tds] PRELOGIN and LOGINACK: 0x10001035 is 16.0.4149."""
    assert VERSIONS["2022"].wire.hex() == "10001035"
    assert VERSIONS["2016-rtm"].wire.hex() == "0d000641"


@pytest.mark.parametrize("version", VERSIONS)
def test_changes_are_captured_on_every_version(of_version: Make, version: str) -> None:
    world = captured(of_version(version))
    rows = world.rows(
        "SELECT __$operation, id, a FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), "
        "sys.fn_cdc_get_max_lsn(), N'all')"
    )
    assert rows == [(2, 1, 1), (2, 2, 2)]


def test_old_builds_have_no_command_id(of_version: Make) -> None:
    """[doc] service packs of 2012 to 2016 brought the column, and with it another order of the clustered index."""
    columns = "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT')"
    assert ("__$command_id",) not in captured(of_version("2016-rtm")).rows(columns)
    assert ("__$command_id",) in captured(of_version("2016")).rows(columns)


JOBS = {
    "2019": (500, 10, 1, 5, 5000),
    "2022": (500, 10, 1, 5, 5000),
    "2025": (10_000, 10, 1, 5, 4999),
    "azure": (500, 100, 0, 0, 5000),
}


@pytest.mark.parametrize(("version", "expected"), JOBS.items(), ids=JOBS)
def test_defaults_of_jobs_differ(of_version: Make, version: str, expected: tuple[int, ...]) -> None:
    """[doc] and for 2025 [sys][fab]."""
    world = captured(of_version(version))
    capture, cleanup = world.rows("EXEC sys.sp_cdc_help_jobs")
    assert (*capture[3:7], cleanup[8]) == expected


def test_functions_come_with_their_version() -> None:
    """[doc] a bare name is a function, one with a schema a system object or a column of one."""
    assert not exists(VERSIONS["2019"], "greatest")
    assert exists(VERSIONS["2022"], "greatest")
    assert all(exists(VERSIONS["azure"], name) for name in SINCE)


MISSING = {
    "2016-rtm": ("SELECT * FROM sys.dm_db_log_stats(DB_ID())", 208),
    "2016": ("SELECT STRING_AGG(name, ',') FROM sys.tables", 195),
    "2017": ("SELECT GREATEST(1, 2)", 195),
    "2019": ("SELECT is_ledger_on FROM sys.databases", 207),
    "azure": ("SELECT * FROM sys.dm_server_services", 208),
}


@pytest.mark.parametrize(("version", "case"), MISSING.items(), ids=MISSING)
def test_what_a_version_does_not_have_is_unknown(of_version: Make, version: str, case: tuple[str, int]) -> None:
    statement, number = case
    assert of_version(version).error(statement).number == number
    newer = "2022" if version == "azure" else "2025"
    assert of_version(newer).send(statement).errors == []


def test_azure_enables_for_owners(of_version: Make) -> None:
    """[doc] db_owner suffices where no login is a sysadmin."""
    world = of_version("azure")
    world.execute(TABLE)
    world.add_user("owner", "db_owner")
    world.execute("EXEC sys.sp_cdc_enable_db", login="owner")
    assert world.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == 1


def test_azure_captures_every_twenty_seconds(of_version: Make) -> None:
    """[doc] the scheduler's own pace, whatever the job table says."""
    world = of_version("azure")
    world.execute(TABLE)
    world.enable("t")
    world.pass_time(0)
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(19)
    assert world.changes("dbo_t") == []
    world.pass_time(2)
    assert len(world.changes("dbo_t")) == 1


def test_azure_cleans_up_every_hour(of_version: Make) -> None:
    """[doc] relative to the newest commit, as everywhere."""
    world = captured(of_version("azure"))
    for number in (3, 4):
        world.wait(1200)
        world.execute(f"INSERT t VALUES ({number}, 0)")
        world.capture()
    world.execute("EXEC sandbox.capture_pause")
    world.execute("EXEC sys.sp_cdc_drop_job N'cleanup'; EXEC sys.sp_cdc_add_job N'cleanup', @retention = 10")
    world.pass_time(3600)
    assert world.changes("dbo_t", "id") == [(3,), (4,)]


def test_azure_keeps_its_jobs_in_the_database(of_version: Make) -> None:
    """[doc] `cdc.cdc_jobs`; nothing is started, so nothing is said."""
    world = of_version("azure")
    world.execute(TABLE)
    world.enable()
    assert world.enable_table("t", supports_net_changes="0").messages == []
    assert world.rows("SELECT job_type FROM cdc.cdc_jobs ORDER BY job_type") == [("capture",), ("cleanup",)]
    world.execute("EXEC sys.sp_cdc_disable_db")


ELSEWHERE = {"USE": ("USE other", 40508), "other database": ("SELECT * FROM other.dbo.t", 40515)}


@pytest.mark.parametrize(("statement", "number"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_azure_connections_stay_in_their_database(of_version: Make, statement: str, number: int) -> None:
    """[doc] a new connection reaches another database, a name does not."""
    world = of_version("azure")
    world.execute("CREATE DATABASE other")
    assert world.error(statement).number == number
    assert world.rows("SELECT COUNT(*) FROM testdb.sys.tables") == [(0,)]
