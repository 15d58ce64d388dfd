"""What the tests of hostile clients are about."""

import logging
from collections.abc import Iterator

import pytest

from mssql_sandbox.server import SandboxServer
from tests.tds.raw_client import raw_client


@pytest.fixture
def server_is_not_to_blame(sandbox: SandboxServer, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The server logs nothing as its own fault, and after the test a well-behaved client gets its answer."""
    yield
    with raw_client(sandbox.port) as client:
        assert b"\xad" in client.log_in(sandbox.password)
        client.batch("SELECT 7")
        assert b"\xd1\x04\x07\0\0\0" in client.receive()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
