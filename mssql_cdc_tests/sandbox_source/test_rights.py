"""The rights that docs/getting-started.md names are enough on each platform, and what is missing is named at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.source.sqlserver import log_end
from mssql_cdc.source.sqlserver.catalog import database
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop, rows, server_values

READER = ("SELECT ON SCHEMA::cdc", "SELECT ON SCHEMA::dbo", "VIEW DEFINITION")
STATE = {
    "2016": "VIEW SERVER STATE",
    "2019": "VIEW SERVER STATE",
    "2022": "VIEW SERVER PERFORMANCE STATE",
    "2025": "VIEW SERVER PERFORMANCE STATE",
    "azure": "VIEW DATABASE STATE",
}
"""The one right to the server's state that is needed, by version; 2022 has a finer one in the older one."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, object]]]:
    """A server of each version."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp
        yield {
            version: server_values(stack.enter_context(sandbox_process(folder("sandbox"), "--server-version", version)))
            for version in STATE
        }


@pytest.fixture
def platform(servers: dict[str, dict[str, object]], request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A table of one row on a server of the version that the test names."""
    version = request.param
    with open_shop(servers[version], agent=version != "azure") as shop:
        shop.create("t", "id int NOT NULL PRIMARY KEY")
        shop.run("INSERT dbo.t VALUES (1)")
        shop.scan()
        yield shop


@pytest.mark.feature("PRE-04")
@pytest.mark.parametrize(
    ("platform", "state"),
    [*STATE.items(), ("2022", "VIEW SERVER STATE")],
    indirect=["platform"],
)
def test_the_documented_rights_are_enough(platform: Shop, state: str) -> None:
    """The end of the log takes a right to the server's state, but not in Azure SQL Database."""
    reader = platform.seen_by("reader", *READER, state)
    with control(reader.connection, reader.catalog) as opened:
        assert database(opened, reader.catalog).name == reader.catalog
        known = log_end.mark(opened)
        for _ in range(2):
            platform.scan()
        assert log_end.newest_passed(opened, [known], log_end.SeenLog())
    assert [row["after"] for row in rows(reader.changes("t", instance=platform.instance("t")))] == [{"id": 1}]
    assert [row["after"] for row in rows(reader.chunk("t"))] == [{"id": 1}]


@pytest.mark.feature("PRE-04")
@pytest.mark.parametrize("granted", [(), ("VIEW DATABASE STATE",)], ids=["none", "of the database"])
@pytest.mark.parametrize(("platform", "state"), STATE.items(), indirect=["platform"])
def test_a_login_that_may_not_see_the_end_of_the_log_is_told_the_grant_at_once(
    platform: Shop, state: str, granted: tuple[str, ...]
) -> None:
    """Review, bug 16: a snapshot was read first, and then nothing could go on.

    The log's scans are shown to those with VIEW DATABASE STATE, but its end is not: each snapshot failed at its begin.
    """
    reader = platform.seen_by("reader", *READER, *granted)
    with control(reader.connection, reader.catalog) as opened:
        if granted == (state,):
            assert database(opened, reader.catalog).name == reader.catalog
            return
        with pytest.raises(ConfigurationError, match=f"GRANT {state} TO"):
            database(opened, reader.catalog)
