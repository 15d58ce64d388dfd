"""Who may see the state of server and database, in the versions that tell more and less apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mssql_cdc.sandbox.engine.clock import Clock
from mssql_cdc.sandbox.engine.product import VERSIONS
from mssql_cdc.sandbox.engine.storage.server import Server
from mssql_cdc_tests.sandbox.cdc.client import LocalWorld

USER = "connector"
STATES = {
    "2019": (
        "VIEW SERVER STATE permission was denied on object 'server', database 'master'.",
        "VIEW DATABASE STATE permission denied in database 'testdb'.",
        ("VIEW SERVER STATE", "VIEW DATABASE STATE"),
    ),
    "2022": (
        "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'.",
        "VIEW DATABASE PERFORMANCE STATE permission denied in database 'testdb'.",
        ("VIEW SERVER PERFORMANCE STATE", "VIEW DATABASE PERFORMANCE STATE"),
    ),
}


Make = Callable[[str], LocalWorld]


@pytest.fixture
def of_version() -> Iterator[Make]:
    """Sandboxes of any version with a user who may nothing."""
    made: list[LocalWorld] = []

    def make(version: str) -> LocalWorld:
        made.append(LocalWorld(Server(clock=Clock(), version=VERSIONS[version])))
        made[-1].enable()
        made[-1].add_user(USER)
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.mark.parametrize("version", STATES)
def test_state_is_for_those_who_may_view_it(of_version: Make, version: str) -> None:
    """[doc] two errors: one names the permission, 297 ends the statement. 2022 has finer permissions."""
    server, database, finer = STATES[version]
    world = of_version(version)
    for statement, number, text in (
        ("SELECT * FROM sys.dm_server_services", 300, server),
        ("SELECT * FROM sys.dm_cdc_log_scan_sessions", 262, database),
        ("SELECT * FROM sys.dm_db_log_stats(DB_ID())", 262, database),
    ):
        found = world.send(statement, login=USER).messages
        assert [(m.number, m.text) for m in found] == [
            (number, text),
            (297, "The user does not have permission to perform this action."),
        ]
    world.execute(f"GRANT {finer[1]} TO {USER}")
    assert world.send("SELECT * FROM sys.dm_cdc_log_scan_sessions", login=USER).errors == []
    assert world.send("SELECT * FROM sys.dm_server_services", login=USER).errors == [300, 297]
    world.execute(f"USE master; GRANT {finer[0]} TO {USER}; USE testdb")
    assert world.send("SELECT * FROM sys.dm_server_services", login=USER).errors == []


@pytest.mark.parametrize("version", STATES)
def test_the_older_permissions_count_everywhere(of_version: Make, version: str) -> None:
    """[doc] VIEW SERVER STATE covers the databases and the finer permissions."""
    world = of_version(version)
    world.execute(f"USE master; GRANT VIEW SERVER STATE TO {USER}; USE testdb")
    for view in ("sys.dm_server_services", "sys.dm_cdc_errors"):
        assert world.send(f"SELECT * FROM {view}", login=USER).errors == []
