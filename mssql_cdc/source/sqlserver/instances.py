"""Capture instances as values, and which of them a (table, range) reads (rules B14, B15; EVO-04).

Pure: the catalog's rows are read in `metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mssql_cdc.errors import DataLostError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.source.values import CapturedTable, CaptureInstance


@dataclass(frozen=True, slots=True)
class Reading:
    """Which instance serves a table's range, and how far it may go: one schema per (table, range)."""

    instance: CaptureInstance
    range: LsnRange


def choose_instance(table: CapturedTable, wanted: LsnRange) -> Reading:
    """The instance for the beginning of the range, and the range clamped so that it needs no other.

    The newer instance serves only from its start on; the older one everything below (rule B14).

    Raises:
        DataLostError: every instance began after the range does.
    """
    order = by_age(table.instances)
    next_lsn = wanted.from_.increment()
    usable = [instance for instance in order if instance.start_lsn <= next_lsn]
    if not usable:
        oldest = order[0]
        raise DataLostError(
            f"{table.table_id}: changes after {wanted.from_.text} are needed, but the oldest capture instance "
            f"{oldest.name!r} holds them only from {oldest.start_lsn.text}; a new snapshot of the table is needed"
        )
    chosen = usable[-1]
    later = [instance.start_lsn for instance in order if instance.start_lsn > next_lsn]
    to = min([wanted.to, *(start.decrement() for start in later)])
    return Reading(chosen, LsnRange(wanted.from_, to, wanted.epoch))


def by_age(instances: Sequence[CaptureInstance]) -> tuple[CaptureInstance, ...]:
    """Oldest first; of several with one start the newest by creation counts last, and so wins (EVO-04)."""
    return tuple(sorted(instances, key=lambda instance: (instance.start_lsn, instance.created, instance.object_id)))
