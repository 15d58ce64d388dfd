"""A fresh database for every test: in a sandbox of its own, or on the server that `MSSQL_TEST_URL` names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.product import VERSIONS
from mssql_sandbox.engine.storage.server import Server
from tests.cdc.client import LocalWorld, World
from tests.cdc.remote import VARIABLE, connection_string, remote_world

Make = Callable[[str], LocalWorld]


@pytest.fixture
def local_world() -> Iterator[LocalWorld]:
    """A sandbox in this process: for rules that need its clock, its procedures or its engine."""
    if connection_string() is not None:
        pytest.skip(f"needs the sandbox's own clock and procedures, but {VARIABLE} names another server")
    made = LocalWorld()
    yield made
    made.close()


@pytest.fixture
def tracking(local_world: LocalWorld) -> LocalWorld:
    """A sandbox in this process whose table t is tracked; the capture job has met it."""
    local_world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    local_world.enable("t")
    local_world.pass_time(0)
    return local_world


@pytest.fixture
def of_version() -> Iterator[Make]:
    """Makes sandboxes of any version in this process."""
    made: list[LocalWorld] = []

    def make(version: str) -> LocalWorld:
        made.append(LocalWorld(Server(clock=Clock(), version=VERSIONS[version])))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A fresh database on whatever server the tests run against."""
    address = connection_string()
    if address is None:
        yield request.getfixturevalue("local_world")
        return
    with remote_world(address) as made:
        yield made
