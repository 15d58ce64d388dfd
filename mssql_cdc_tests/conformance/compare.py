"""Compares two lists of records; fields that depend only on processing time and version are masked."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mssql_cdc_tests.conformance.debezium import Record

LSNS = ("commit_lsn", "change_lsn")
TIMES = ("ts_ms", "ts_us", "ts_ns")


def plain(record: Record) -> dict[str, Any]:
    """A record of the real Debezium in the format of this connector."""
    found = asdict(record)
    return {
        "topic": found["topic"],
        "partition": found["partition"],
        "key": found["key"],
        "value": found["value"],
        "headers": found["headers"],
        "sourcePartition": found["source_partition"],
        "sourceOffset": found["source_offset"],
    }


def payload(data: Any) -> Any:
    """The payload of a key or value, with or without its schema."""
    return data["payload"] if isinstance(data, dict) and set(data) == {"schema", "payload"} else data


def is_heartbeat(record: Mapping[str, Any]) -> bool:
    """Whether a record is a heartbeat."""
    key = payload(record["key"])
    if isinstance(key, str):
        return key.startswith("Struct{serverName=")
    return isinstance(key, dict) and set(key) == {"serverName"}


def row_change(topic: str, value: Any) -> dict[str, Any] | None:
    """The payload of a row change's value with `op`, `source` and images, also where it is a CloudEvent; else None."""
    value = payload(value)
    if not isinstance(value, dict):
        return None
    if "specversion" not in value:
        return value if "op" in value else None
    _, database, schema, table = topic.split(".", 3)
    ids = dict(part.split(":", 1) for part in value["id"].split(";"))
    source = {"db": database, "schema": schema, "table": table} | {name: ids[name] for name in LSNS}
    return {"op": value.get("iodebeziumop"), "source": source, **payload(value["data"])}


def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without processing times and version.

    `source.ts_*` is the time of the commit and is compared, except in snapshots and schema changes, where it is the
    time at which each connector itself read.
    """
    found = copy.deepcopy(dict(record))
    value = payload(found["value"])
    if value is None:
        return found
    if "specversion" in value:
        _mask_cloud_event(value)
        return found
    source = value.get("source")
    if source is not None:
        source["version"] = "<version>"
        if source["snapshot"] not in {"false", None} or "tableChanges" in value:
            source.update(dict.fromkeys(TIMES, "<time>"))
        value.update({name: "<time>" for name in TIMES if name in value})
    return found


def _mask_cloud_event(value: dict[str, Any]) -> None:
    """Mask the version, and the times of rows of snapshots."""
    if "iodebeziumversion" in value:
        value["iodebeziumversion"] = "<version>"
    if "change_lsn:null" in value["id"]:
        value["time"] = "<time>"
        value.update(
            {name: "<time>" for name in ("iodebeziumtsms", "iodebeziumtsus", "iodebeziumtsns") if name in value}
        )


def differences(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines that describe the differences, in order; none if the lists are equal."""
    found = []
    for place in range(max(len(ours), len(theirs))):
        own = comparable(ours[place]) if place < len(ours) else {}
        other = comparable(theirs[place]) if place < len(theirs) else {}
        paths = list(_paths(own, other, ""))
        if paths:
            shown = other or own
            name = f"record {place} ({shown.get('topic')} {json.dumps(payload(shown.get('key')), ensure_ascii=False)})"
            found += [f"{name}: {path}" for path in paths]
    return found


def _paths(own: Any, other: Any, path: str) -> list[str]:
    if isinstance(own, dict) and isinstance(other, dict):
        found = []
        for name in [*own, *(name for name in other if name not in own)]:
            found += _paths(own.get(name, "<absent>"), other.get(name, "<absent>"), f"{path}.{name}")
        return found
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        return [
            line
            for i, (a, b) in enumerate(zip(own, other, strict=True))
            for line in _paths(a, b, f"{path}[{_name(b, i)}]")
        ]
    if own == other and type(own) is type(other):
        return []
    return [f"{path[1:]} is {_short(own)}, Debezium has {_short(other)}"]


def _name(item: Any, place: int) -> str:
    """The name of a field of a schema, or the place of another item of a list."""
    return str(item.get("field", item.get("name", place))) if isinstance(item, dict) else str(place)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 160 else f"{text[:157]}..."
