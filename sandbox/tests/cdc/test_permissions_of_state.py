"""Who may see the state of server and database, in the versions that tell more and less apart."""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld
from tests.cdc.conftest import Make

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


@pytest.fixture
def tracked(of_version: Make) -> Make:
    """Databases of any version under CDC, with a user who may nothing."""

    def make(version: str) -> LocalWorld:
        world = of_version(version)
        world.enable()
        world.add_user(USER)
        return world

    return make


@pytest.mark.parametrize("version", STATES)
def test_state_is_for_those_who_may_view_it(tracked: Make, version: str) -> None:
    """[doc] two errors: one names the permission, 297 ends the statement. 2022 has finer permissions."""
    server, database, finer = STATES[version]
    world = tracked(version)
    for statement, number, text in (
        ("SELECT * FROM sys.dm_server_services", 300, server),
        ("SELECT * FROM sys.dm_cdc_log_scan_sessions", 262, database),
        ("SELECT * FROM sys.dm_db_log_stats(DB_ID())", 300, server),
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
    for statement in ("SELECT * FROM sys.dm_server_services", "SELECT * FROM sys.dm_db_log_stats(DB_ID())"):
        assert world.send(statement, login=USER).errors == []


def test_azure_has_no_permissions_on_the_server(tracked: Make) -> None:
    """[?] VIEW DATABASE STATE shows the log of the database, as earlier revisions of the page said of all servers."""
    world = tracked("azure")
    world.execute(f"GRANT VIEW DATABASE STATE TO {USER}")
    assert world.send("SELECT * FROM sys.dm_db_log_stats(DB_ID())", login=USER).errors == []


@pytest.mark.parametrize("version", STATES)
def test_the_older_permissions_count_everywhere(tracked: Make, version: str) -> None:
    """[doc] VIEW SERVER STATE covers the databases and the finer permissions."""
    world = tracked(version)
    world.execute(f"USE master; GRANT VIEW SERVER STATE TO {USER}; USE testdb")
    for view in ("sys.dm_server_services", "sys.dm_hadr_database_replica_states", "sys.dm_cdc_errors"):
        assert world.send(f"SELECT * FROM {view}", login=USER).errors == []
