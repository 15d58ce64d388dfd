"""The deliberate differences from Debezium, each with its reason: the one table that the documentation shows.

A difference that workloads show has `adapt`: it turns Debezium's records of a workload into those that this connector
must render. Whatever else differs is a defect.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mssql_cdc_tests.conformance.compare import payload

Records = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A deliberate difference.

    Attributes:
        about: what differs.
        debezium: what Debezium does.
        ours: what this connector does.
        why: the reason.
        adapt: Debezium's records of a workload as this connector renders them; None: no workload can show it.
    """

    about: str
    debezium: str
    ours: str
    why: str
    adapt: Callable[[Records], Records] | None = None


def each_value(change: Callable[[dict[str, Any]], None]) -> Callable[[Records], Records]:
    """Return what changes the payload of each record's value."""

    def adapt(records: Records) -> Records:
        found = copy.deepcopy(records)
        for record in found:
            value = payload(record["value"])
            if isinstance(value, dict):
                change(value)
        return found

    return adapt


def _shown_marker(value: dict[str, Any]) -> None:
    source = value.get("source")
    if source is not None and source["snapshot"] is None:
        source["snapshot"] = "false"


DIFFERENCES: Mapping[str, Difference] = {
    "no-converter": Difference(
        about="records without any property of a converter",
        debezium="the converter of the Kafka Connect worker, or of the engine, decides",
        ours="JSON without schemas; NULL is null, and `source.snapshot` is `false`",
        why="the lake has no worker. No setting of Connect's converter shows both values as they are",
        adapt=each_value(_shown_marker),
    ),
    "capture-time": Difference(
        about="`ts_*` of the envelope",
        debezium="when the connector processed the event",
        ours="when the range's `_offsets` row was written",
        why="rendering records again gives the same records",
    ),
    "once": Difference(
        about="a delayed or repeated start",
        debezium="may send events twice",
        ours="sends every event once, in one order",
        why="a range is one commit",
    ),
    "sweep": Difference(
        about="rows that a repeated snapshot no longer finds",
        debezium="nothing",
        ours="a delete in the change log and the current table, none in the records",
        why="the lake must hold what the source holds",
    ),
    "read-uncommitted": Difference(
        about="snapshots at READ UNCOMMITTED",
        debezium="may contain rows that are rolled back",
        ours="are read at READ COMMITTED",
        why="such rows were never in the table",
    ),
    "heartbeats": Difference(
        about="heartbeats",
        debezium="by time, while it polls",
        ours="the same records at complete cuts, at least `heartbeat.interval.ms` apart",
        why="records are rendered from the lake, which only cuts change",
    ),
    "notifications": Difference(
        about="notifications",
        debezium="records of a topic",
        ours="rows of `_notifications`, no records",
        why="the channel `sink` is not built",
    ),
    "mask-and-type": Difference(
        about="a hash mask on a column whose source type is propagated",
        debezium="shows the value without the mask",
        ours="masks the value",
        why="a value that must be hidden stays hidden",
    ),
    "default-notations": Difference(
        about="defaults of dates and times in notations other than ISO's",
        debezium="lets the server parse them",
        ours="shows no default",
        why="rendering records needs no server",
    ),
}


def document() -> str:
    """Return the table that `docs/records.md` shows."""
    rows = [f"| {one.about} | {one.debezium} | {one.ours} | {one.why} |" for one in DIFFERENCES.values()]
    return "\n".join(["| what | Debezium | mssql_cdc | why |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(document() + "\n")
