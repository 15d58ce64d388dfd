"""The check of a table outside a run that captures: executed by an operator, after an acknowledgment, or by the sensor.

What the lake keeps (`check/verdict`) and what the source shows now are combined: a table that disappeared is not green.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.check.verdict import judge
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.newest_checks import newest_checks, value_of
from mssql_cdc.defs.report import ABSENT, OF_CAPTURE, TRY_AGAIN, evaluation
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import CHECK
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Shown:
    """What the source shows: why tables cannot be captured now, and why the whole database is late."""

    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    late: str | None = None


def ask_source(setup: Setup, database: Database) -> Shown:
    """Query the source; if it does not answer, every table is late."""
    try:
        seen = survey(database, quick=True, currents=False)
    except MssqlCdcError as error:
        return Shown(late=f"the source cannot be asked: {error}")
    return Shown(standings(seen, setup.listed).absent, seen.stalled)


def judged(setup: Setup, database: Database, table: TableId, shown: Shown) -> dg.AssetCheckEvaluation:
    """Return the check of a table.

    Args:
        setup: The connector and the database.
        database: Where the lake is.
        table: The table.
        shown: What the source shows.
    """
    verdict, absent = judge(database, table), shown.absent.get(table.text)
    problems = list(verdict.problems)
    if absent is not None and not any(absent in problem for problem in problems):
        problems.append(absent)
    severity, late = dg.AssetCheckSeverity.ERROR, not problems and shown.late is not None
    if late:
        problems, severity = [f"late: {shown.late}"], dg.AssetCheckSeverity.WARN
    if not problems and verdict.facts.get("status") == "snapshot":  # It may have failed: green would hide that.
        problems, severity = ["late: its snapshot has not ended"], dg.AssetCheckSeverity.WARN
    values = {
        **verdict.facts,
        "problem": setup.connector.redact("; ".join(problems)) or None,
        "what_to_do": TRY_AGAIN if absent is not None else None,
        ABSENT: True if absent is not None else None,
        OF_CAPTURE: True if late else None,
    }
    return evaluation(setup, table, passed=not problems, severity=severity, metadata=event_metadata(values))


def result_of(found: dg.AssetCheckEvaluation) -> dg.AssetCheckResult:
    """Return the evaluation as the result that a step yields for a check executed on its own."""
    return dg.AssetCheckResult(
        passed=found.passed,
        asset_key=found.asset_key,
        check_name=CHECK,
        severity=found.severity,
        metadata=found.metadata,
    )


def report_absent(
    setup: Setup, database: Database, instance: dg.DagsterInstance, seen: Survey, before: Collection[str]
) -> Mapping[str, str]:
    """Turn the checks of tables that have disappeared red, and of those that are back green again, without a run.

    Args:
        setup: The connector and the database.
        database: Where the lake is.
        instance: Where the earlier evaluations are.
        seen: What the source shows.
        before: The tables (`TableId.text`) that were absent in the previous survey.

    Returns:
        What is wrong, by table.
    """
    shown = Shown(standings(seen, setup.listed).absent)
    wanted = [table for table in setup.names.tables if table.text in shown.absent or table.text in before]
    for found in _changed(setup, database, instance, shown, wanted):
        instance.report_runless_asset_event(found)
    return {name: setup.connector.redact(f"{name}: {reason}") for name, reason in shown.absent.items()}


def _changed(
    setup: Setup, database: Database, instance: dg.DagsterInstance, shown: Shown, tables: Collection[TableId]
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations of these tables that differ from their newest ones."""
    newest = newest_checks(setup, instance, tables)
    for table in tables:
        last, found = newest.get(table), judged(setup, database, table, shown)
        if last is None or (last.passed, value_of(last, "problem")) != (found.passed, value_of(found, "problem")):
            yield found
