"""Fixtures for tests against a SQL Server: `sql_server` and `cdc_database`. Installing the package registers them.

The server runs in a thread of the test process: tests can use it without a driver, and a debugger can step into it.
`process.sandbox_process` starts one in a separate process. The server is imported when a test first requests a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mssql_sandbox.server import SandboxServer
    from mssql_sandbox.testing import CdcDatabase


@pytest.fixture(scope="session")
def sql_server() -> Iterator[SandboxServer]:
    """A running server. Override this fixture to start it with other options."""
    from mssql_sandbox.server import SandboxServer, serve_in_thread  # noqa: PLC0415 - see the module's docstring

    with serve_in_thread(SandboxServer(capture_interval=0.2)) as server:
        yield server


@pytest.fixture
def cdc_database(sql_server: SandboxServer) -> Iterator[CdcDatabase]:
    """A new database for each test, with change data capture enabled; dropped after the test."""
    from mssql_sandbox.testing import cdc_database  # noqa: PLC0415 - see the module's docstring

    with cdc_database(sql_server) as database:
        yield database
