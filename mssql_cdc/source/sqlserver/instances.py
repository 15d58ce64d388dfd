"""Capture instances as values (rules B14, B15; EVO-04).

The catalog's rows are read in `catalog`; which instance serves a range is decided in `plan/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class CaptureInstance:
    """One capture instance. It is the same one only while `object_id` and `created` stay the same (B14).

    `object_id` is the change table's; `schema.columns` are what it captures, and `ordinals` their places in the
    update mask. `change_table` is (schema, name), None where the login may not read it: then the instance's function
    is read instead. `warnings` are lines for the user about columns whose change rows cannot be trusted (E27).
    """

    name: str
    object_id: int
    change_table: tuple[str, str] | None
    source_object_id: int
    created: datetime
    start_lsn: Lsn
    schema: TableSchema
    ordinals: tuple[int, ...]
    has_command_id: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A source table under CDC with its instances, oldest first."""

    table_id: TableId
    object_id: int
    instances: tuple[CaptureInstance, ...]

    @property
    def newest(self) -> CaptureInstance:
        """The instance whose structure a new snapshot has."""
        return self.instances[-1]


def by_age(instances: Sequence[CaptureInstance]) -> tuple[CaptureInstance, ...]:
    """Oldest first; of several with one start the newest by creation counts last, and so wins (EVO-04)."""
    return tuple(sorted(instances, key=lambda instance: (instance.start_lsn, instance.created, instance.object_id)))
