"""One server for all tests of this folder; every test has its own database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.servers import NEEDS_SANDBOX, Server, configured, open_server

_NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if configured() is not None:
        for item in items:
            if item.get_closest_marker("sandbox") is not None:
                item.add_marker(pytest.mark.skip(reason=NEEDS_SANDBOX))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("sandbox")) as found:
        yield found


@pytest.fixture
def place(server: Server, spark: object, tmp_path: Path) -> Iterator[Place]:
    """A CDC-enabled database with a running capture job, a connector file, an empty lake."""
    with open_place(server, tmp_path, server.database(next(_NUMBERS))) as opened:
        yield opened


@pytest.fixture
def case_sensitive(server: Server, spark: object, tmp_path: Path) -> Iterator[Place]:
    """The same in a database whose names differ by case."""
    name = server.database(next(_NUMBERS))
    with open_place(server, tmp_path, name, collation="Latin1_General_CS_AS") as opened:
        yield opened


@pytest.fixture
def orders(place: Place) -> Place:
    """A place whose table of two orders is in the lake."""
    place.create_orders()
    return place


@pytest.fixture
def signalled(place: Place) -> Place:
    """A place whose table of two orders is in the lake, and which has a signal table."""
    place.configure(signal_data_collection=f"{place.database}.dbo.signals")
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create_orders()
    return place
