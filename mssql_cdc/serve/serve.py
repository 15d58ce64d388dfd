"""Runs a connector and streams its records: the loop in the calling thread, rendering alongside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import SignalRow
from mssql_cdc.config import Connector
from mssql_cdc.config.signals import concerns, parse_signal
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.signals import apply_signal
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.records.notifications import SINK
from mssql_cdc.records.outputs import Output, begin
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.interrupts import require_uninterrupted
from mssql_cdc.run.loop import run_for
from mssql_cdc.serve.begin import begin as begin_at
from mssql_cdc.serve.control import Control
from mssql_cdc.serve.events import Events
from mssql_cdc.serve.renderer import Renderer
from mssql_cdc.serve.watch import Watch


def serve(
    connector: Connector,
    databases: Sequence[Database],
    output: Output,
    *,
    events: Events,
    offsets: Mapping[str, SourceOffset],
    control: Control | None = None,
    warehouse: str | None = None,
    merge: bool = True,
) -> None:
    """Capture and write records until interrupted; with a mode that does not stream, until its snapshot is written.

    Args:
        connector: The configuration.
        databases: Its databases, opened.
        output: Where the records go.
        events: Receives what happens.
        offsets: Where to resume databases of which the output has nothing yet.
        control: The consumer's signals.
        warehouse: Overrides `delta.warehouse`.
        merge: Update current tables, too.

    Raises:
        MssqlCdcError: The connector cannot start, or cannot continue.
    """
    connector.require_rendered()
    progress = begin(output, connector.topic_prefix, Selection().of_records)
    databases = begin_at(databases, offsets)
    events.emit("started")
    renderer = Renderer(connector, output, progress, offsets=offsets, warehouse=warehouse)
    watch = Watch(events, connector, renderer.sent)

    def notified(database: str, notification: Mapping[str, Any]) -> None:
        watch.notified(database, notification)
        if SINK in connector.notifications.channels:
            renderer.wake()

    databases = [
        replace(one, notify=partial(notified, one.catalog), signalled=partial(watch.signalled, one.catalog))
        for one in databases
    ]
    signals = _Signals(control, connector)
    newest: dict[str, int] = {}

    def step(follower: Follower, done: Done | None) -> bool:
        if renderer.error is not None:
            raise renderer.error
        require_uninterrupted()  # What a signal did to a driver call is not a fault of the source.
        signals.apply(follower.database, done)
        watch(follower, done)
        if done is not None and newest.get(follower.database.catalog) != done.offsets.number:
            newest[follower.database.catalog] = done.offsets.number
            renderer.wake()
        elif _is_idle(done):
            renderer.polled(follower.database.catalog, datetime.now(UTC))
        if _is_complete(done):
            events.log(f"Streaming is disabled for snapshot mode {connector.snapshot.mode}")
            return True
        return False

    try:
        renderer.wake()
        run_for(databases, seconds=None, progress=watch.snapshot, watch=step, merge=merge, require_tables=False)
        renderer.finish()
    finally:
        renderer.stop()
        watch.end()
    if renderer.error is not None:
        raise renderer.error


def _is_idle(done: Done | None) -> bool:
    """Whether a connector that streams has found nothing to read."""
    if done is None or not isinstance(done.decision, Wait):
        return False
    return done.decision.until is None and done.seen.facts.policy.stream


def _is_complete(done: Done | None) -> bool:
    """Whether a connector that does not stream has nothing left to do (`initial_only`)."""
    if done is None or not isinstance(done.decision, Wait) or done.seen.facts.policy.stream:
        return False
    members = done.seen.facts.members
    return all(one.status not in {"new", "snapshot"} and one.closed_until is None for one in members)


class _Signals:
    """Applies the consumer's signals."""

    def __init__(self, control: Control | None, connector: Connector) -> None:
        self._control = control
        self._waiting: dict[str, list[SignalRow]] = {database: [] for database in connector.databases}

    def apply(self, database: Database, done: Done | None) -> None:
        """Apply signals to a database once it has been surveyed."""
        for signal in self._control.take() if self._control is not None else ():
            for name, waiting in self._waiting.items():
                if concerns(parse_signal(signal.id, signal.type, signal.data), name, self._waiting):
                    waiting.append(signal)
        if done is None:
            return
        for signal in self._waiting[database.catalog]:
            database.log(apply_signal(database, signal, done.seen.tables, done.offsets, channel="stdin"))
        self._waiting[database.catalog].clear()


def exit_code_of(error: MssqlCdcError) -> int:
    """Return the exit code of a followed connector: 75 (EX_TEMPFAIL) if starting it again may help."""
    return 75 if error.retriable else error.exit_code
