"""Settings of all tests, and the Spark session of a worker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from mssql_cdc_tests.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST = ("spark", "end_to_end", "dagster", "conformance", "certify", "storm")
_FEW_ROWS = {
    # For a few rows, compiling Spark's generated Java takes longer than everything else; results are the same.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Memory for each query's garbage: fewer collections.
    "spark.driver.defaultJavaOptions": "-Xms1g -Xmn512m",
}
"""Confs that reduce the overhead of a session that runs hundreds of tests."""

# The duration of an example depends on the machine's load and is not a rule.
settings.register_profile(
    "unhurried", settings(), max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the folders with slow modules first: at the end, they would keep one worker busy and the other idle.

    Within a folder the order stays random (pytest-randomly has already shuffled it).
    """
    items.sort(key=lambda item: item.path.parts[-2] not in _LONGEST)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session that everything in this process adopts: starting one costs more than most of its tests.

    Processes started by tests have their own sessions, with the product's settings only.
    """
    from mssql_cdc.spark.session import SparkSettings, start_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own startup warns about unclosed sockets.
        session = start_session(SparkSettings.from_environment(confs=_FEW_ROWS))
    yield session
    session.stop()


@pytest.fixture
def after_groups(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """Do something once, behind so many further groups of chunks of snapshots that this process takes."""
    from mssql_cdc.capture.snapshot import chunk_groups

    planned: list[tuple[int, Callable[[], object]]] = []
    read, count = chunk_groups._read_group, [0]  # pyright: ignore[reportPrivateUsage]

    def counted(*args: object, **named: object) -> None:
        read(*args, **named)  # pyright: ignore[reportArgumentType, reportCallIssue]
        count[0] += 1
        for one in [one for one in planned if one[0] == count[0]]:
            one[1]()

    monkeypatch.setattr(chunk_groups, "_read_group", counted)
    return lambda groups, action: planned.append((count[0] + groups, action))
