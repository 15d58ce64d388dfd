"""The asset `transactions`: what was written to `_transactions`, if `provide.transaction.metadata` is set.

It is reported only when there are rows: a database where nothing happens has no transactions to show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from mssql_cdc.defs.asset_events import Writer
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.setup import Setup
from mssql_cdc.follow.transactions import Counted
from mssql_cdc.lake.read import row_count
from mssql_cdc.lake.storage import Storage

REPORT_SECONDS = 60.0
NOTHING = "_transactions has every transaction of the complete cuts: nothing to do"


@dataclass
class TransactionsAsset:
    """Reports what a run wrote, once a minute and at the end of the run."""

    setup: Setup
    writer: Writer
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _counted: Counted = field(default_factory=Counted)
    _reported: datetime | None = None

    def add(self, counted: Counted) -> None:
        """Record what a step wrote."""
        self._counted += counted
        if self._reported is None:
            self._reported = self.clock()

    def turn(self) -> None:
        """Report if a minute has passed since the last time."""
        if self._reported is not None and (self.clock() - self._reported).total_seconds() >= REPORT_SECONDS:
            self.report()

    def report(self) -> None:
        """Report what was written since the last report, if anything was."""
        counted, self._counted = self._counted, Counted()
        if not counted.transactions:
            return
        self._reported = self.clock()
        storage = Storage(dict(self.setup.connector.delta.storage))
        values = {
            "dagster/row_count": row_count(self.setup.layout.own("transactions"), storage),
            "transactions": counted.transactions,
            "events": counted.events,
            "first_commit_lsn": counted.first,
            "last_commit_lsn": counted.last,
            "as_of": counted.as_of,
        }
        self.writer.write(dg.AssetMaterialization(self.setup.transactions_key, metadata=event_metadata(values)))
