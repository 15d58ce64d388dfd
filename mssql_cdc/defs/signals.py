"""The `signals` asset: request snapshots, acknowledge lost changes, and resume after a restore from its launchpad.

A table's snapshot is its partition in `snapshots` (BLK-01); this asset is for everything else (SIG-01, rules A7, A9).
"""

import uuid
from collections.abc import Iterator
from enum import Enum
from typing import Any

import dagster as dg
from pydantic import Field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import DONE, SignalRow, ask_for_snapshot, ask_to_control, note_signal
from mssql_cdc.config.filters import spoken_name
from mssql_cdc.config.signals import expand_collections
from mssql_cdc.defs.asked import ask_source, judged
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import shown
from mssql_cdc.defs.signal_list import newest_signals
from mssql_cdc.defs.specs import with_notices
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.run.loss import acknowledge, go_on_after_restore
from mssql_cdc.schema import TableId


class Action(Enum):
    """The requested action."""

    snapshot = "snapshot"
    incremental_snapshot = "incremental_snapshot"
    stop_snapshot = "stop_snapshot"
    pause_snapshot = "pause_snapshot"
    resume_snapshot = "resume_snapshot"
    acknowledge_gaps = "acknowledge_gaps"
    go_on_after_restore = "go_on_after_restore"


class SignalRequest(dg.Config):
    """The launchpad's fields. `tables` is required, so that a click on Materialize opens the launchpad."""

    tables: list[str] = Field(
        description="The tables, for example dbo.customers. For acknowledge_gaps and stop_snapshot, an empty list "
        "means all tables; pause_snapshot, resume_snapshot and go_on_after_restore always apply to all tables."
    )
    action: Action = Field(
        default=Action.snapshot,
        description="snapshot: re-snapshot the tables; the other tables keep streaming. incremental_snapshot: read "
        "the tables in chunks while they keep streaming. stop_snapshot, pause_snapshot, resume_snapshot: give up, "
        "pause or continue snapshots of both types. acknowledge_gaps: acknowledge the lost changes of the tables, so "
        "that their checks can turn green again. go_on_after_restore: the source went back in time; start a new epoch, "
        "in which every table is re-snapshotted.",
    )
    condition: str = Field(
        default="",
        description="For snapshot and incremental_snapshot: read only the rows that meet it, for example "
        "color = 'blue'. A sweep then deletes no row.",
    )


def build_signals(setup: Setup) -> dg.AssetsDefinition:
    """Build the `signals` asset of one database."""
    key = setup.names.extra_key("signals")
    spec = dg.AssetSpec(
        key,
        group_name=setup.names.operations_group,
        kinds={"deltalake"},
        description="Signals: click Materialize to open the launchpad, where you can acknowledge lost changes, "
        "resume capture after the source was restored, or request a snapshot of several tables, blocking or "
        "incremental. To take a blocking snapshot of a table, materialize its partition in `snapshots`.",
        metadata={"dagster/uri": setup.layout.own("signals")},
    )

    @dg.multi_asset(
        name=f"signals__{setup.names.stem}",
        specs=[with_notices(setup, spec)],
    )
    def signals(
        context: dg.AssetExecutionContext, config: SignalRequest
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckEvaluation]:
        with shown(setup.connector, context.log.info):
            database = setup.open(run_id=context.run.run_id, log=context.log.info)
            match config.action:
                case Action.snapshot:
                    said = _snapshot(setup, database, config)
                case Action.incremental_snapshot:
                    said = _incremental(setup, database, config)
                case Action.stop_snapshot | Action.pause_snapshot | Action.resume_snapshot:
                    said = _control(setup, database, config)
                case Action.acknowledge_gaps:
                    said = _acknowledge(setup, database, config.tables)
                    yield from _checks(setup, database, config.tables)
                case Action.go_on_after_restore:
                    said = _go_on(database)
            context.log.info("%s", said)
            asked = {"asked_for": said, "signals": newest_signals(database)}
            yield dg.MaterializeResult(key, metadata=event_metadata(asked))

    return signals


def _snapshot(setup: Setup, database: Database, config: SignalRequest) -> str:
    names, condition = [spoken_name(table.parts) for table in _chosen(setup, config.tables)], config.condition or None
    said = ask_for_snapshot(database, str(uuid.uuid4()), names, channel="dagster", condition=condition)
    return f"{said}; the sensor starts it at its next tick"


def _incremental(setup: Setup, database: Database, config: SignalRequest) -> str:
    names = [spoken_name(table.parts) for table in _chosen(setup, config.tables)]
    signal, condition = str(uuid.uuid4()), config.condition or None
    said = ask_for_snapshot(database, signal, names, channel="dagster", kind="incremental", condition=condition)
    return f"{said}; the run that streams reads it beside the changes"


def _control(setup: Setup, database: Database, config: SignalRequest) -> str:
    """Request that snapshots stop, pause or continue."""
    kind = config.action.value.replace("_", "-")
    names: list[str] = []
    if config.action is Action.stop_snapshot and config.tables:
        names = [spoken_name(table.parts) for table in _chosen(setup, config.tables)]
    said = ask_to_control(database, str(uuid.uuid4()), kind, names, channel="dagster")
    return f"{said}; it takes effect at the next chunk, or group of chunks"


def _acknowledge(setup: Setup, database: Database, tables: list[str]) -> str:
    chosen = _chosen(setup, tables) if tables else None
    done = acknowledge(database, chosen, by=f"Dagster run {database.run_id}")
    said = "; ".join(done.lines) or "nothing: there is no open gap"
    note_signal(database, SignalRow(str(uuid.uuid4()), "acknowledge-gaps", None), "dagster", DONE, said)
    return f"acknowledged {said}"


def _go_on(database: Database) -> str:
    after = go_on_after_restore(database, by=f"Dagster run {database.run_id}")
    said = f"epoch {after.epoch} begins; the sensor requests a new snapshot of every table"
    note_signal(database, SignalRow(str(uuid.uuid4()), "go-on-after-restore", None), "dagster", DONE, said)
    return said


def _checks(setup: Setup, database: Database, tables: list[str]) -> Iterator[dg.AssetCheckEvaluation]:
    """Evaluate the checks of these tables, or of all: an acknowledged gap no longer turns a check red.

    There is nothing to report yet about a table that waits for its first snapshot.
    """
    shown, offsets = ask_source(setup, database), database.offsets()
    begun = {*entries_by_name(offsets, database.history().versions), *offsets.present}
    for table in _chosen(setup, tables) if tables else setup.names.tables:
        if table.text in begun or table.text in shown.absent:
            yield judged(setup, database, table, shown)


def _chosen(setup: Setup, wanted: list[str]) -> list[TableId]:
    """Return the requested tables; a name that matches no captured table is an error."""
    known = {table.parts: table for table in setup.names.tables}
    found, unmatched = expand_collections(wanted, known)
    if unmatched or not found:
        captured = ", ".join(".".join(name) for name in known)
        found_none = ", ".join(unmatched) or "The empty list"
        raise ConfigurationError(f"{found_none} matches no captured table; the captured tables are {captured}")
    return [known[name] for name in found]
