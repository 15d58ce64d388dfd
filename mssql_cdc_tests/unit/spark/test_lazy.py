"""When a lazy session starts, and starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.errors import ConfigurationError, MssqlCdcError, SourceUnavailableError
from mssql_cdc.spark.lazy import LazySpark, is_ready


def lazy(start: Callable[[], Any]) -> LazySpark:
    with patch("mssql_cdc.spark.lazy.active_session", return_value=None):
        return LazySpark(start)


class Starts:
    """A start whose first attempts fail."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls, self.session = list(errors), 0, object()

    def __call__(self) -> Any:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.session


@pytest.mark.parametrize("error", [ConfigurationError, SourceUnavailableError, OSError])
def test_a_failed_start_is_repeated_with_the_next_use(error: type[Exception]):
    start = Starts(error("no place on the disk"))
    spark = lazy(start)
    with pytest.raises(error):
        spark()
    assert spark() is start.session
    assert spark() is start.session
    assert start.calls == 2


def test_a_start_ahead_that_failed_is_told_where_the_session_is_needed_and_then_repeated():
    start = Starts(ConfigurationError("no Java"))
    spark = lazy(start)
    while not is_ready(spark):
        pass
    with pytest.raises(MssqlCdcError, match="no Java"):
        spark()
    assert spark() is start.session
