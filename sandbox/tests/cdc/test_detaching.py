"""Rules of detaching and attaching databases with change data capture.

Evidence: Microsoft's documentation of `sp_detach_db`, `CREATE DATABASE … FOR ATTACH`, and of change data capture: it
stays enabled when a database is detached and attached.
"""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld

_FILE = "/var/opt/mssql/data/shop.mdf"


@pytest.fixture
def shop(local_world: LocalWorld) -> LocalWorld:
    local_world.execute("CREATE DATABASE shop")
    local_world.execute("USE shop CREATE TABLE t (id int PRIMARY KEY) EXEC sys.sp_cdc_enable_db")
    local_world.execute("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL INSERT t VALUES (1)")
    local_world.execute("EXEC sandbox.capture_run USE master")
    return local_world


@pytest.mark.parametrize(
    "attach",
    [
        f"CREATE DATABASE market ON (FILENAME = '{_FILE}') FOR ATTACH",
        f"EXEC sp_attach_db @dbname = N'market', @filename1 = N'{_FILE}'",
        f"CREATE DATABASE market ON (NAME = d, FILENAME = '{_FILE}') LOG ON (FILENAME = '/l.ldf') FOR ATTACH",
    ],
)
def test_change_data_capture_goes_along(shop: LocalWorld, attach: str) -> None:
    shop.execute("EXEC sp_detach_db 'shop'")
    assert shop.value("SELECT COUNT(*) FROM sys.databases WHERE name = 'shop'") == 0
    assert shop.error("USE shop").number == 911
    shop.execute(attach)
    shop.execute("USE market INSERT t VALUES (2)")
    shop.pass_time(10)
    assert shop.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'market'") == 1
    assert shop.rows("SELECT id FROM cdc.dbo_t_CT") == [(1,), (2,)]


def test_jobs_stay(shop: LocalWorld) -> None:
    jobs = "SELECT COUNT(*) FROM msdb.dbo.cdc_jobs"
    shop.execute("EXEC sp_detach_db 'shop' CREATE DATABASE another")
    assert shop.value(jobs) == 2
    shop.execute("DROP DATABASE another")
    shop.execute(f"CREATE DATABASE shop ON (FILENAME = '{_FILE}') FOR ATTACH")
    assert shop.value(jobs) == 2


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("EXEC sp_detach_db 'nothing'", 15010),
        ("EXEC sp_detach_db 'msdb'", 7940),
        ("USE shop EXEC sp_detach_db 'shop'", 3703),
        ("BEGIN TRAN EXEC sp_detach_db 'shop'", 226),
        (f"CREATE DATABASE shop ON (FILENAME = '{_FILE}') FOR ATTACH", 1801),
        ("CREATE DATABASE other ON (FILENAME = '/nowhere.mdf') FOR ATTACH", 5120),
    ],
)
def test_refused(shop: LocalWorld, statement: str, number: int) -> None:
    assert shop.error(statement).number == number
