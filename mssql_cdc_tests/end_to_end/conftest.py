"""One stand-in server for all tests of this folder; every test has its own database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from mssql_sandbox.process import SandboxProcess, sandbox_process

from mssql_cdc_tests.end_to_end.kit import Place, open_place

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with sandbox_process(tmp_path_factory.mktemp("sandbox"), "--capture-interval", "0.2") as process:
        yield process


@pytest.fixture
def place(server: SandboxProcess, spark: object, tmp_path: Path) -> Iterator[Place]:
    """A CDC-enabled database with a running capture job, a connector file, an empty lake."""
    with open_place(server, tmp_path, f"place{next(_NUMBERS)}") as opened:
        yield opened


@pytest.fixture
def case_sensitive(server: SandboxProcess, spark: object, tmp_path: Path) -> Iterator[Place]:
    """The same in a database whose names differ by case."""
    name = f"place{next(_NUMBERS)}"
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
