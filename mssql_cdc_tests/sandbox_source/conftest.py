"""One stand-in server for all tests of this folder; every test has its own database."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    with sandbox_process(tmp_path_factory.mktemp("sandbox")) as process:
        yield {
            "host": process.host,
            "port": process.port,
            "user": process.user,
            "password": process.password,
            "numbers": itertools.count(1),
        }


@pytest.fixture
def new_shop(server: dict[str, object]) -> Iterator[Callable[[], Shop]]:
    """Creates CDC-enabled databases whose capture job is stopped: `Shop.scan` captures."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(open_shop(server))


@pytest.fixture
def shop(new_shop: Callable[[], Shop]) -> Shop:
    return new_shop()
