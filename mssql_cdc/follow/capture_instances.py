"""Notifies when a capture instance that has a successor has been read to its end (EVO-06): it may then be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.notifications import CAPTURE_INSTANCE, Notifier
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureInstance


def tell_read_instances(database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets) -> None:
    """Notify, once, of each instance whose end the change log of its table has passed.

    Args:
        database: The database.
        tables: The captured tables, with the instances that the source has.
        offsets: The offsets after a range.
    """
    ended = list(_ended(tables.values(), offsets))
    if not ended:
        return
    rows = small_table(database.layout, "notifications", database.storage).rows()
    known = {
        (data.get("capture_instance"), data.get("stop_lsn"))
        for data in (dict(row["additional_data"]) for row in rows if row["aggregate_type"] == CAPTURE_INSTANCE)
    }
    for table, instance, stop, reached in ended:
        if (instance.name, stop.text) in known:
            continue
        notifier = Notifier(database, None, aggregate=CAPTURE_INSTANCE)
        notifier.add(
            "COMPLETED",
            server=database.connector.topic_prefix,
            database=database.catalog,
            capture_instance=instance.name,
            start_lsn=instance.start_lsn.text,
            stop_lsn=stop.text,
            commit_lsn=reached.text,
        )
        notifier.flush()
        database.log(f"{table}: the capture instance {instance.name} is read to its end; it may be dropped")


def _ended(tables: Iterable[LakeTable], offsets: Offsets) -> Iterator[tuple[TableId, CaptureInstance, Lsn, Lsn]]:
    """Yield instances with the start of the next one and the position of their table, which is past that start."""
    for member in tables:
        if len(member.captured.instances) < 2:
            continue
        instances = sorted(member.captured.instances, key=lambda one: one.start_lsn)
        entry = member.entry_in(offsets)
        to = entry.to_in(offsets.epoch) if entry is not None and entry.status == "streaming" else None
        if to is None:
            continue
        reached = Lsn.parse(to)
        for older, newer in pairwise(instances):
            if newer.start_lsn < reached:
                yield member.table, older, newer.start_lsn, reached
