"""Debezium's event serial numbers (EVT-15). They require all tables of the database in one order (rule E28)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, Any]


@dataclass(slots=True)
class SerialNumbers:
    """`event_serial_no`: the ordinal within one (commit, change) LSN, incremented by 1 per row and 2 per update."""

    commit_lsn: str | None = None
    change_lsn: str | None = None
    number: int = 0

    def next(self, commit_lsns: pa.Array, change_lsns: pa.Array, counts: Numbers) -> Numbers:
        """Return the numbers of the next events (EVT-15).

        Args:
            commit_lsns: The LSNs of their transactions.
            change_lsns: The LSNs of their changes; the numbers restart with each pair of LSNs.
            counts: The numbers of change-table rows that they occupy, 1 or 2.
        """
        if not len(counts):
            return counts
        goes_on = (self.commit_lsn, self.change_lsn) == (commit_lsns[0].as_py(), change_lsns[0].as_py())
        is_new = np.concatenate([[True], changes(commit_lsns) | changes(change_lsns)])
        first = np.flatnonzero(is_new)
        total = np.cumsum(counts)
        numbers = total - (total - counts)[first][np.cumsum(is_new) - 1]
        if goes_on:
            numbers[: first[1] if len(first) > 1 else None] += self.number
        self.commit_lsn, self.change_lsn = commit_lsns[-1].as_py(), change_lsns[-1].as_py()
        self.number = int(numbers[-1])
        return numbers


def changes(values: pa.Array) -> Numbers:
    """Return, for each value from the second on, whether it differs from the one before it."""
    differ = pc.not_equal(values.slice(1), values.slice(0, len(values) - 1))
    return pc.fill_null(differ, fill_value=False).to_numpy(zero_copy_only=False)
