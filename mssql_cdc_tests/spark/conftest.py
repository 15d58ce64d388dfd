"""A lake fed by a model source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
