"""Stand-in servers for the tests of the sandbox: one in a thread of the test process, one as a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_sandbox.process import SandboxProcess, sandbox_process

if TYPE_CHECKING:
    from mssql_sandbox.server import SandboxServer


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A server in a thread; its engine can be reached."""
    from mssql_sandbox.server import SandboxServer, serve_in_thread

    with serve_in_thread(SandboxServer(capture_interval=0.1)) as server:
        yield server


@pytest.fixture(scope="module")
def separate_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """A server as a process, as the demo starts it."""
    folder: Path = tmp_path_factory.mktemp("sandbox")
    with sandbox_process(folder, "--capture-interval", "0.1") as process:
        yield process
