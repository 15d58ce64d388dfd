"""Errors of several things, each of which is done whatever becomes of the others."""

from __future__ import annotations

import os
import signal

import pytest

from mssql_cdc.errors import (
    CheckDiffersError,
    LoginRefusedError,
    MssqlCdcError,
    SourceUnavailableError,
    StorageError,
    TaskError,
)
from mssql_cdc.run.collected import Collected
from mssql_cdc.run.interrupts import noted_interrupts


def after(**errors: Exception | None) -> Collected:
    """What is collected after each of these was done, or failed."""
    collected = Collected()
    for name, error in errors.items():
        with collected.of(name):
            if error is not None:
                raise error
    return collected


def test_the_worst_error_is_raised_and_names_all() -> None:
    collected = after(a=StorageError("broken"), b=None, c=CheckDiffersError("differs"), d=SourceUnavailableError("off"))
    with pytest.raises(CheckDiffersError, match=r"^a: broken; c: differs; d: off$"):
        collected.raise_worst()


def test_the_only_error_of_several_has_its_name() -> None:
    with pytest.raises(StorageError, match=r"^a: broken$"):
        after(a=StorageError("broken"), b=None).raise_worst()


def test_the_error_of_the_only_one_is_raised_as_it_is() -> None:
    error = StorageError("broken")
    with pytest.raises(StorageError) as raised:
        after(a=error).raise_worst()
    assert raised.value is error


def test_nothing_is_raised_without_an_error() -> None:
    after(a=None, b=None).raise_worst()
    Collected().raise_worst()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OSError("no space"), StorageError, "OSError: no space"),
        (RuntimeError("gone"), TaskError, "RuntimeError: gone"),
        (ValueError("a value of a row"), TaskError, "^a: ValueError at "),
    ],
    ids=["files", "others", "values"],
)
def test_an_error_of_a_library_becomes_one_of_the_projects(
    error: Exception, kind: type[MssqlCdcError], said: str
) -> None:
    with pytest.raises(kind, match=said) as raised:
        after(a=error, b=None).raise_worst()
    assert "a value of a row" not in str(raised.value)


def test_a_login_that_is_refused_is_not_tried_again() -> None:
    with pytest.raises(LoginRefusedError, match="wrong password"):
        after(a=StorageError("broken"), b=LoginRefusedError("wrong password"), c=AssertionError("tried"))


def test_an_error_that_ctrl_c_has_caused_is_none() -> None:
    with noted_interrupts():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            after(a=SourceUnavailableError("the driver's call was ended"), b=AssertionError("tried"))
