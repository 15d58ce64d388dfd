"""Which servers are read."""

from __future__ import annotations

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.source.sqlserver.catalog import require_version

STANDARD, ENTERPRISE, EXPRESS, AZURE_SQL_DATABASE, MANAGED_INSTANCE = 2, 3, 4, 5, 8


@pytest.mark.parametrize("edition", [STANDARD, ENTERPRISE, EXPRESS])
def test_a_server_before_2016_is_refused_by_name(edition: int):
    """It has neither masks nor row-level security in its catalog: each read failed with the remedy of another error."""
    with pytest.raises(ConfigurationError, match="version 12 of SQL Server; expected 13"):
        require_version(edition, 12)


@pytest.mark.parametrize(
    ("edition", "major"),
    [(ENTERPRISE, 13), (ENTERPRISE, 17), (AZURE_SQL_DATABASE, 12), (MANAGED_INSTANCE, 12), (ENTERPRISE, None)],
)
def test_newer_servers_and_services_of_azure_are_read(edition: int, major: int | None):
    require_version(edition, major)
