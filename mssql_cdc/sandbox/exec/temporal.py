"""System-versioned (temporal) tables: not kept by this server yet; every way to one says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mssql_cdc.sandbox.errors import SqlError

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.query.operators import Operator


def _refuse() -> NoReturn:
    raise SqlError(
        102, "Incorrect syntax near 'SYSTEM_TIME': temporal tables are not known to this server.", severity=15
    )


def make_temporal(*_given: Any) -> None:
    """CREATE TABLE with a period."""
    _refuse()


def plan_history(*_given: Any) -> Operator:
    """FOR SYSTEM_TIME."""
    _refuse()


def set_versioning(*_given: Any) -> None:
    """ALTER TABLE … SET (SYSTEM_VERSIONING = …)."""
    _refuse()
