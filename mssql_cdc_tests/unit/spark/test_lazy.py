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


def test_a_session_whose_jvm_was_killed_is_replaced_at_the_next_use():
    killed = list[Any]()
    spark = lazy(Starts)
    with patch("mssql_cdc.spark.lazy.has_ended", side_effect=lambda session: session in killed):
        first = spark()
        killed.append(first)
        assert spark.running is None
        second = spark()
        assert second is not first
        assert spark() is second


def test_a_session_that_was_found_is_replaced_once_its_jvm_was_killed():
    start, found = Starts(), object()
    with patch("mssql_cdc.spark.lazy.active_session", return_value=found):
        spark = LazySpark(start)
    with patch("mssql_cdc.spark.lazy.has_ended", side_effect=lambda session: session is found):
        assert spark() is start.session


def test_the_end_of_a_run_suppresses_only_what_a_killed_jvm_cannot_answer():
    class Session:
        def stop(self) -> None:
            raise ConnectionRefusedError(111, "Connection refused")

    spark = lazy(Session)
    spark()
    with pytest.raises(ConnectionRefusedError):
        spark.stop()
    with patch("mssql_cdc.spark.session.has_ended", return_value=True):
        spark.stop()
