"""A server of its own for the schedules of the whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc_tests.storm.whole import WholeWorld

Make = Callable[[Path], WholeWorld]


@pytest.fixture(scope="module")
def make(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Makes databases of their own on one server."""
    numbers = itertools.count(1)
    with sandbox_process(tmp_path_factory.mktemp("server")) as server:
        yield lambda folder: WholeWorld(server, spark, folder, f"storm{next(numbers)}")
