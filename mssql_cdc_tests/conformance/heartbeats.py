"""Compares heartbeats: what each one is, and that its offset is where the records before it end.

How many there are depends on when a connector polls, and is a listed difference.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from mssql_cdc_tests.conformance.bench import Records, Seen
from mssql_cdc_tests.conformance.compare import is_heartbeat, payload
from mssql_cdc_tests.conformance.workload import Course, Reading, Result

INTERVAL = "heartbeat.interval.ms"


def judged_heartbeats(course: Course, reading: Reading, seen: Seen) -> Result:
    """Return the verdict on the heartbeats of a reading."""
    ours, theirs = seen.ours[reading.name].records, seen.theirs[reading.name].records
    lines = [*_misplaced("mssql_cdc", ours), *_misplaced("Debezium", theirs)]
    own, other = _kinds(ours), _kinds(theirs)
    lines += [f"only mssql_cdc has {kind}" for kind in sorted(own - other)]
    lines += [f"only Debezium has {kind}" for kind in sorted(other - own)]
    lines += [f"{name} has none behind the snapshot" for name, has in _behind_snapshot(ours, theirs) if not has]
    count = sum(map(is_heartbeat, theirs))
    verdict = "different" if lines else "listed" if count != sum(map(is_heartbeat, ours)) else "equal"
    shown = ("heartbeats",) if verdict == "listed" else ()
    name = f"{course.name}/heartbeats/{reading.name}"
    restates = "SqlServerConnectorIT.takeSchemaOnlySnapshotAndSendHeartbeat"
    return Result(name, "heartbeats", restates, verdict, count, shown, tuple(lines[:5]))


def _kinds(records: Records) -> set[str]:
    """The heartbeats without their times and offsets."""
    found: set[str] = set()
    for record in filter(is_heartbeat, records):
        kind = copy.deepcopy({name: value for name, value in record.items() if name != "sourceOffset"})
        payload(kind["value"])["ts_ms"] = "<time>"
        found.add(json.dumps(kind, sort_keys=True))
    return found


def _misplaced(name: str, records: Records) -> Iterator[str]:
    """Tell of heartbeats whose offset is not that of the records of the same database before them."""
    ends: dict[str, dict[str, Any]] = {}
    for place, record in enumerate(records):
        database, offset = record["sourcePartition"]["database"], record["sourceOffset"]
        if not is_heartbeat(record):
            ends[database] = offset
            continue
        end = ends.get(database, {})
        if end.get("snapshot_completed"):
            end = {"commit_lsn": end["commit_lsn"], "change_lsn": "NULL", "event_serial_no": 1}
        if offset != end:
            yield f"heartbeat {place} of {name} has the offset {offset}, the records before it end at {end}"


def _behind_snapshot(ours: Records, theirs: Records) -> Iterator[tuple[str, bool]]:
    for name, records in (("mssql_cdc", ours), ("Debezium", theirs)):
        ends = [place for place, one in enumerate(records) if one["sourceOffset"].get("snapshot_completed")]
        yield name, bool(ends) and is_heartbeat(records[ends[-1] + 1])
