"""One Spark session for all Spark tests; the tests themselves use private sessions through the code they test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.spark.session import SparkSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own start-up warns about unclosed sockets.
        session = start_session(SparkSettings.from_environment())
    yield session
    session.stop()


def rows_of(session: SparkSession, uri: str) -> dict[str, dict[str, object]]:
    """The rows of a current table by `_key`."""
    found = session.read.format("delta").load(uri).collect()
    return {row["_key"]: row.asDict(recursive=True) for row in found}
