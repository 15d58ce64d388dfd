"""The command `status`: how far behind the source each table is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, opened, warehouse_option
from mssql_cdc.cli.output import LATE, Cell, Output
from mssql_cdc.errors import StorageError
from mssql_cdc.run.interrupts import require_uninterrupted

if TYPE_CHECKING:
    from mssql_cdc.capture.database import Database
    from mssql_cdc.run.snapshot_status import SnapshotStatus
    from mssql_cdc.run.status import DatabaseStatus, TableStatus

WATCH_SECONDS = 2.0
LATE_SECONDS = 60.0
NUMBERS = ("log lag", "current lag", "rows, 5 min")
COLUMNS = ("table", "status", "newest commit", *NUMBERS, "detail")


@click.command(
    epilog=epilog(
        "mssql-cdc status --config connectors/shop.json",
        "mssql-cdc status --config connectors/shop.json --watch",
        "mssql-cdc status --config connectors/shop.json --json",
    )
)
@config_option
@warehouse_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with an object per table.")
@click.option("--watch", is_flag=True, help="Refresh every 2 seconds until Ctrl+C.")
@debug_option
@click.pass_obj
def status(output: Output, *, config: Path, warehouse: str | None, as_json: bool, watch: bool) -> None:
    """Show how far behind each table is.

    The lag is the age of the oldest change that the change log, or the current table, may lack. It is 0 when
    everything that was captured is there and the capture job scans the log. Without the source, only the lake's part is
    shown. The exit code is the one that `run` would end with.
    """
    with opened(output, config, warehouse) as databases:
        found = _watch(output, databases, as_json=as_json) if watch else _look(databases)
        if not watch:
            _show(output, found, as_json=as_json)
    findings = [one.finding for one in found if one.finding is not None]
    if findings:
        raise max(findings, key=lambda error: error.exit_code)


def _show(output: Output, found: Sequence[DatabaseStatus], *, as_json: bool) -> None:
    if as_json:
        output.json(facts(found), indent=2)
        return
    output.table(COLUMNS, rows(found), right=NUMBERS)
    for line in notes(found):
        output.result(line)


def _look(databases: Sequence[Database]) -> list[DatabaseStatus]:
    """The status of each database; one whose lake cannot be read does not hide the others.

    Once the server has refused the login, only the lake's part of the others is shown.
    """
    from mssql_cdc.run.status import DatabaseStatus, read_status

    found: list[DatabaseStatus] = []
    for database in databases:
        refusal = next((one.refusal for one in found if one.refusal is not None), None)
        try:
            found.append(read_status(database, refusal=refusal))
        except StorageError as error:
            found.append(DatabaseStatus(database.catalog, (), None, error))
    return found


def _watch(output: Output, databases: Sequence[Database], *, as_json: bool) -> list[DatabaseStatus]:
    """Show the status until Ctrl+C, or until the server refuses the login; return the last one."""
    found: list[DatabaseStatus] = []
    with output.screen() as show, suppress(KeyboardInterrupt):
        while True:
            found = _look(databases)
            require_uninterrupted()  # A driver call may have mistaken Ctrl+C for an error of the source.
            if as_json:
                output.json(facts(found))
            else:
                show(COLUMNS, rows(found), notes(found), right=NUMBERS)
            if any(one.refusal is not None for one in found):
                break  # More attempts would lock the account, which capture itself uses.
            time.sleep(WATCH_SECONDS)
    return found


def rows(found: Sequence[DatabaseStatus]) -> list[tuple[Cell, ...]]:
    """The cells of the table."""
    return [_cells(one, database.snapshots.of(one.table)) for database in found for one in database.tables]


def _cells(one: TableStatus, incremental: str | None) -> tuple[Cell, ...]:
    gaps = f"{one.open_gaps} open gaps" if one.open_gaps else ""
    detail = "; ".join(text for text in (one.detail, incremental, gaps) if text)
    lags = (lag_cell(one.lag.log), lag_cell(one.lag.current))
    return (one.table.text, one.status, _at(one.newest), *lags, f"{one.recent_rows:,}", detail)


def notes(found: Sequence[DatabaseStatus]) -> list[str]:
    """Lines about each database's source and waiting signals."""
    lines: list[str] = []
    for one in found:
        if one.error is not None:
            whose = "the lake" if isinstance(one.error, StorageError) else "the source"
            what = "source unreachable" if one.error.retriable else f"{whose} cannot be read"
            lines.append(f"{one.database}: {what}, so the lags are unknown: {one.error}")
        elif one.health is not None:
            problem = f"; {one.health.problem}" if one.health.problem else ""
            lines.append(f"{one.database}: the capture job scanned the log at {_at(one.health.scanned)}{problem}")
        if one.restored is not None:
            lines.append(f"{one.database}: {one.restored}")
        if one.snapshots.signals:
            lines.append(f"{one.database}: signals that have not taken effect: {', '.join(one.snapshots.signals)}")
    return lines


def facts(found: Sequence[DatabaseStatus]) -> list[dict[str, object]]:
    """The same as values, an object per table; one without a table for a database with no known table."""
    return [
        {
            "database": database.database,
            **_table_facts(one, database.snapshots),
            "incremental_snapshots_paused": database.snapshots.state.paused,
            "open_signals": list(database.snapshots.signals),
            "last_scan": database.health.scanned.isoformat() if database.health and database.health.scanned else None,
            "capture_problem": database.health.problem if database.health else None,
            "source_error": str(database.error) if database.error else None,
            "source_restored": str(database.restored) if database.restored else None,
        }
        for database in found
        for one in database.tables or (None,)
    ]


def _table_facts(one: TableStatus | None, snapshots: SnapshotStatus) -> dict[str, object]:
    return {
        "table": one.table.text if one else None,
        "status": one.status if one else None,
        "detail": one.detail if one else None,
        "position": one.position if one else None,
        "newest_commit": one.newest.isoformat() if one and one.newest else None,
        "log_lag_seconds": one.lag.log if one else None,
        "current_lag_seconds": one.lag.current if one else None,
        "rows_in_5_minutes": one.recent_rows if one else 0,
        "open_gaps": one.open_gaps if one else 0,
        "snapshot_paused": one is not None and one.table.text in snapshots.paused,
        "incremental_snapshot": snapshots.of(one.table) if one else None,
    }


def lag_cell(seconds: float | None) -> Cell:
    """A lag in readable form; red from one minute up."""
    if seconds is None:
        return "–"
    if seconds < LATE_SECONDS:
        return f"{seconds:.1f} s" if seconds else "0 s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s", LATE


def _at(at: datetime | None) -> str:
    return "–" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
