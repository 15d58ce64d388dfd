"""One Spark session for all Spark tests, which use private sessions through what they test; a lake over a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.capture.context import Database
from mssql_cdc.spark.session import SparkSettings, start_session
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own start-up warns about unclosed sockets.
        session = start_session(SparkSettings.from_environment())
    yield session
    session.stop()


@pytest.fixture
def source() -> ModelSource:
    return ModelSource("orders", "people")


@pytest.fixture
def database(source, spark, tmp_path) -> Database:
    return model_database(source, spark, tmp_path)


def rows_of(session: SparkSession, uri: str) -> dict[str, dict[str, object]]:
    """The rows of a current table by `_key`."""
    found = session.read.format("delta").load(uri).collect()
    return {row["_key"]: row.asDict(recursive=True) for row in found}
