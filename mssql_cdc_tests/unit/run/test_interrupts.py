"""Ctrl+C ends a loop also where an ODBC driver has turned it into an error of its own."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from mssql_cdc.config.model import StreamingSettings
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.run.interrupts import noted_interrupts, require_uninterrupted
from mssql_cdc.run.retries import Retries
from mssql_cdc_tests.unit.config.samples import connector_with


def settings() -> StreamingSettings:
    return connector_with({}).streaming


def test_an_interrupt_that_a_driver_swallowed_ends_the_retries() -> None:
    said: list[str] = []
    with noted_interrupts():
        with suppress(KeyboardInterrupt):  # As pyodbc does while it builds its error.
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            Retries(settings()).wait_seconds(SourceUnavailableError("Communication link failure"), said.append)
    assert said == []


@pytest.mark.feature("ERR-03")
def test_a_success_begins_the_count_of_retries_anew() -> None:
    said: list[str] = []
    retries = Retries(settings())
    for _ in range(2):
        retries.wait_seconds(SourceUnavailableError("gone"), said.append)
        retries.succeeded()
    assert [line.split(" in ")[0] for line in said] == ["gone; retry 1", "gone; retry 1"]


def test_the_former_handler_is_restored() -> None:
    former = signal.getsignal(signal.SIGINT)
    with noted_interrupts():
        require_uninterrupted()
    assert signal.getsignal(signal.SIGINT) is former
