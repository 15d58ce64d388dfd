"""Ctrl+C and SIGTERM end a loop also where an ODBC driver has turned it into an error of its own."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.config.model import StreamingSettings
from mssql_cdc.errors import SourceError, SourceUnavailableError
from mssql_cdc.run.interrupts import SIGNALS, noted_interrupts, require_uninterrupted
from mssql_cdc.run.loop import run_for
from mssql_cdc.run.retries import Retries
from mssql_cdc_tests.unit.config.samples import connector_with


def settings() -> StreamingSettings:
    return connector_with({}).streaming


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_that_a_driver_swallowed_ends_the_retries(number: signal.Signals) -> None:
    said: list[str] = []
    with noted_interrupts():
        with suppress(KeyboardInterrupt):  # As pyodbc does while it builds its error.
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            Retries(settings()).wait_seconds(SourceUnavailableError("Communication link failure"), said.append)
    assert said == []


class Interrupted:
    """A source whose driver ends a call by a signal with an error of its own."""

    @contextmanager
    def session(self, _catalog: str) -> Generator[NoReturn]:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise SourceError("The driver did not supply an error!")
        yield


def test_an_interrupt_that_a_driver_swallowed_is_no_fault_of_a_database(tmp_path: Path) -> None:
    said: list[str] = []
    source: Any = Interrupted()
    made = connector_with({"delta.warehouse": str(tmp_path)})
    database = Database.of(made, "testDB", spark=lambda: pytest.fail("no Spark"), source=source, log=said.append)
    with noted_interrupts(), pytest.raises(KeyboardInterrupt):
        run_for([database], seconds=None)
    assert said == []


def test_a_success_begins_the_count_of_retries_anew() -> None:
    said: list[str] = []
    retries = Retries(settings())
    for _ in range(2):
        retries.wait_seconds(SourceUnavailableError("gone"), said.append)
        retries.succeeded()
    assert [line.split(" in ")[0] for line in said] == ["gone; retry 1", "gone; retry 1"]


def test_the_former_handlers_are_restored() -> None:
    former = [signal.getsignal(number) for number in SIGNALS]
    with noted_interrupts():
        require_uninterrupted()
        assert former != [signal.getsignal(number) for number in SIGNALS]
    assert former == [signal.getsignal(number) for number in SIGNALS]


def test_the_first_signal_is_the_one_that_ends_the_process() -> None:
    with noted_interrupts() as interrupts:
        for number in (signal.SIGTERM, signal.SIGINT):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            require_uninterrupted()
    assert interrupts.noted is signal.SIGTERM
