"""Which events Debezium emits for a change: one, two for an update that changes the record's key, or none (TXN-07).

Rendering and counting share this rule. Changes that `skipped.operations` leaves out never become `Changes` (`rows.py`).
As in Debezium, whose query leaves them out, it ignores the events of an update: both halves of a moved one stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from mssql_cdc.config.record_settings import RecordSettings
from mssql_cdc.records.rows import Changes, Numbers, bools


class Emitted(NamedTuple):
    """What becomes of changes, one element per change.

    `moved`: the update changes the record's key. `dropped`: the change has no record. `first`: it has an event, which
    for a `moved` one is the delete. `create`: it has a second event, the create.
    """

    moved: Numbers
    dropped: Numbers
    first: Numbers
    create: Numbers

    @classmethod
    def of(cls, changes: Changes, settings: RecordSettings) -> Emitted:
        """Return what becomes of changes; rows that were read have records, but are not events of a transaction.

        Args:
            changes: Changes of one table.
            settings: How records look.
        """
        moved, dropped = changes.moved, np.full(len(changes), changes.failed)
        if settings.skip_unchanged:
            same = pc.equal(changes.before, changes.after) if changes.unchanged is None else changes.unchanged
            dropped = dropped | changes.is_op("u") & bools(same)
        shown = ~changes.is_op("r") & ~dropped
        return cls(moved, dropped, shown, shown & moved)

    @property
    def events(self) -> Numbers:
        """The number of events of each change."""
        return self.first.astype(np.int64) + self.create
