"""Events that several places report: checks, losses, tables unknown to the code location, the database's own tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.signal_list import newest_signals
from mssql_cdc.defs.specs import CHECK
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.small_tables import ReadAt, SmallTable, small_table
from mssql_cdc.plan.decisions import RESTORED_ADVICE, Lost, Restored
from mssql_cdc.run.execute import Done
from mssql_cdc.schema import TableId

ACKNOWLEDGE = "acknowledge the gap in the signals asset (action: acknowledge_gaps) or with `mssql-cdc acknowledge`"
READ_AGAIN = "materialize the table's partition of the asset snapshots, which reads the table again"
TRY_AGAIN = "mend what the problem names; the next run tries again"
"""For a table that cannot be captured now: each survey checks whether it can."""
RELOAD = "run `mssql-cdc discover` and reload the code location to add it to the asset graph"
ABSENT = "absent"
"""The metadata key of a check that is red because the source does not show the table, or it cannot be captured."""
OF_CAPTURE = "of_capture"
"""The metadata key of a check that is not green because of a problem during capture: no snapshot fixes that."""
OWN_TABLES = ("schema_history", "signals", "notifications")
ENDS = {"COMPLETED", "ABORTED"}
"""The types of the last notification about a snapshot."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The commit up to which a table was checked, and its `_batch`."""

    at: ReadAt | None
    batch: int


@dataclass
class OwnTables:
    """The database's own tables: each gets an event when it has grown since the last check."""

    setup: Setup
    database: Database
    _seen: dict[str, _Seen] = field(default_factory=dict[str, "_Seen"])
    _known: KnownTables = field(default_factory=KnownTables)
    _unloaded: bool = False

    def remember(self) -> None:
        """Note the present state, without reading the rows."""
        for name in OWN_TABLES:
            self._new(name)

    def unreported(self, instance: dg.DagsterInstance) -> Iterator[dg.AssetMaterialization]:
        """Yield an event for each table that has none in this instance, so that everything that works is green.

        `signals` gets one even before the first signal.
        """
        for name in OWN_TABLES:
            if instance.get_latest_materialization_event(self.setup.names.extra_key(name)) is None:
                rows = small_table(self.database.layout, name, self.database.storage).rows()
                if name == "signals":
                    yield self._signals()
                elif rows:
                    yield self._rows(name, rows)

    def grown(self) -> Iterator[dg.AssetMaterialization]:
        """Yield an event for each table with new rows, and for the signals when a snapshot that one requested ends."""
        for name in OWN_TABLES:
            new = self._new(name)
            if not new:
                continue
            if name == "signals" or (name == "notifications" and self._end(new)):
                yield self._signals()
            if name != "signals":
                yield self._rows(name, new)

    def _new(self, name: str) -> list[dict[str, Any]]:
        """The rows that were added since the last check, none at the first one; only these are read."""
        found: list[dict[str, Any]] = []
        table = small_table(self.database.layout, name, self.database.storage)
        self._known.get(table.uri, lambda: found.extend(self._read(table, name)), table.storage)
        return found

    def _read(self, table: SmallTable, name: str) -> list[dict[str, Any]]:
        seen = self._seen.get(name)
        after = seen.batch if seen is not None else 0
        reading = table.read(since=seen.at if seen is not None else None, after=after, least=1)
        parts = (part.to_pylist() for part in reading.tables) if seen is not None else ()
        new = [row for rows in parts for row in rows if row["_batch"] > after]
        self._seen[name] = _Seen(reading.at, reading.written)
        return new

    def _end(self, new: Iterable[Mapping[str, Any]]) -> bool:
        """Whether one of these notifications is the last one about a snapshot that a signal requested."""
        ended = {note["id"] for note in new if note["type"] in ENDS}
        signals = small_table(self.database.layout, "signals", self.database.storage)
        return bool(ended) and not ended.isdisjoint(signals.table().column("id").to_pylist())

    def _rows(self, name: str, new: Sequence[Mapping[str, Any]]) -> dg.AssetMaterialization:
        newest = {k: str(v) for k, v in new[-1].items() if v is not None and k not in {"columns", "debezium"}}
        metadata = event_metadata({"rows": len(new), "newest": dg.MetadataValue.json(newest)})
        return dg.AssetMaterialization(self.setup.names.extra_key(name), metadata=metadata)

    def _signals(self) -> dg.AssetMaterialization:
        metadata = event_metadata({"signals": newest_signals(self.database)})
        return dg.AssetMaterialization(self.setup.names.extra_key("signals"), metadata=metadata)

    def unloaded(self, tables: Collection[TableId]) -> Iterator[dg.AssetMaterialization]:
        """Yield a notification, once, about captured tables that the code location does not know."""
        if tables and not self._unloaded:
            self._unloaded = True
            names = ", ".join(table.text for table in tables)
            self.database.log(f"{names}: captured, but not in the table list; {RELOAD}")
            values = {"unknown_tables": names, "what_to_do": RELOAD}
            yield dg.AssetMaterialization(self.setup.names.extra_key("notifications"), metadata=event_metadata(values))


def evaluation(
    setup: Setup,
    table: TableId,
    *,
    passed: bool,
    metadata: Mapping[str, Any],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    partition: str | None = None,
) -> dg.AssetCheckEvaluation:
    """Return a table's check as an event whose texts contain no secrets.

    Args:
        setup: The database.
        table: The table.
        passed: Whether the check is green.
        metadata: The event's metadata.
        severity: WARN when the table is late, ERROR when the lake differs from the source, or will.
        partition: The window that has ended.
    """
    redact = setup.connector.redact
    texts = {
        name: dg.MetadataValue.text(redact(value.text or "")) if isinstance(value, dg.TextMetadataValue) else value
        for name, value in metadata.items()
    }
    return dg.AssetCheckEvaluation(
        asset_key=setup.names.log_key(table),
        check_name=CHECK,
        passed=passed,
        severity=severity,
        partition=partition,
        metadata=texts,
    )


def try_again(setup: Setup) -> str:
    """Return what to do about a table that was given up while it streamed."""
    dagster = setup.connector.dagster
    run = "the next run" if dagster.max_run_seconds else f"the first run of the next window ({dagster.window})"
    return f"mend what the problem names; {run} tries the table again; materialize its newest window to do so at once"


def losses(setup: Setup, done: Done) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield a red check for each table whose loss was detected now."""
    if isinstance(done.decision, Lost | Restored):
        reason = f"{done.decision.reason}; {loss_advice(done)}"
        for table in done.gaps:
            yield evaluation(setup, table, passed=False, metadata=event_metadata({"problem": reason}))


def _is_read(done: Done, table: TableId) -> bool:
    """Whether a snapshot can repair a table: the signal table is never read."""
    member = done.seen.member(table)
    return member is None or not member.signals


def loss_advice(done: Done) -> str:
    """Return what an operator must do about a loss."""
    match done.decision:
        case Lost(repaired=True):
            mode = done.seen.facts.policy.mode
            return f"snapshot.mode={mode} repairs them with a snapshot; acknowledge the gap in the signals asset"
        case Lost() as lost if not any(_is_read(done, table) for table in lost.stopped):
            return "no snapshot is needed; acknowledge the gap in the signals asset"
        case Lost():
            return "materialize the partitions of these tables in the snapshots asset"
        case Restored(automatic=True):
            return "a new epoch begins, in which every table is re-snapshotted"
        case _:
            return RESTORED_ADVICE
