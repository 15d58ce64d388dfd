"""One stand-in server for this folder, and a Dagster instance for each test."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.dagster.kit import Location
from mssql_cdc_tests.dagster.storage import EventLog, StepLogs, cheap_databases
from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with sandbox_process(tmp_path_factory.mktemp("sandbox")) as process:
        yield {
            "host": process.host,
            "port": process.port,
            "user": process.user,
            "password": process.password,
            "numbers": itertools.count(1),
        }


@pytest.fixture
def shop(server: dict[str, Any]) -> Iterator[Shop]:
    """A CDC-enabled database whose capture job is stopped: `Shop.scan` captures."""
    with ExitStack() as stack:
        found = stack.enter_context(open_shop(server))
        # Windows go by commit time, and other tests move the server's clock.
        found.set_clock(datetime.now(UTC))
        yield found


@pytest.fixture(scope="session")
def cheap() -> Iterator[None]:
    with cheap_databases():
        yield


@pytest.fixture(scope="session")
def empty_home(cheap: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Dagster instance whose databases have their tables: creating them takes seconds."""
    home = tmp_path_factory.mktemp("home")
    with opened_instance(home):
        return home


@pytest.fixture
def instance(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    home = shutil.copytree(empty_home, tmp_path_factory.mktemp("home"), dirs_exist_ok=True)
    with opened_instance(home) as made:
        yield made


def opened_instance(home: Path) -> AbstractContextManager[dg.DagsterInstance]:
    """An instance in a folder, with the storage of tests."""
    events = {"module": EventLog.__module__, "class": EventLog.__name__, "config": {"base_dir": str(home / "events")}}
    logs = {"module": StepLogs.__module__, "class": StepLogs.__name__, "config": {"base_dir": str(home / "logs")}}
    return dg.instance_for_test(overrides={"event_log_storage": events, "compute_logs": logs}, temp_dir=str(home))


@pytest.fixture
def locate(shop: Shop, instance: dg.DagsterInstance, tmp_path: Path) -> Callable[..., Location]:
    """Builds a code location for the shop's current tables."""
    return lambda **more: Location.of(shop, tmp_path, instance, **more)


@pytest.fixture
def streaming(shop: Shop, locate: Callable[..., Location]) -> Location:
    """Two tables that stream from now on; nothing has been read yet."""
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    shop.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    location = locate(snapshot_mode="no_data")
    location.settle()
    return location
