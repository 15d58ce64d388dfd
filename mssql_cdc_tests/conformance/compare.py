"""Compares two lists of records; fields that depend only on processing time and version are masked."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mssql_cdc_tests.conformance.debezium import Record

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


def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without processing times and version.

    `source.ts_*` is the time of the commit and is compared, except in snapshots and schema changes, where it is the
    time at which each connector itself read.
    """
    found = copy.deepcopy(dict(record))
    value = found["value"]
    if value is None:
        return found
    source = value.get("source")
    if source is not None:
        source["version"] = "<version>"
        # The oracle's converter shows NULL instead of defaults, even if `snapshot` is unset and "false" by default.
        source["snapshot"] = source["snapshot"] or "false"
        if source["snapshot"] != "false" or "tableChanges" in value:
            source.update(dict.fromkeys(TIMES, "<time>"))
        value.update({name: "<time>" for name in TIMES if name in value})
    return found


def differences(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines that describe the differences, in order; none if the lists are equal."""
    found = []
    for place in range(max(len(ours), len(theirs))):
        own = comparable(ours[place]) if place < len(ours) else {}
        other = comparable(theirs[place]) if place < len(theirs) else {}
        paths = list(_paths(own, other, ""))
        if paths:
            name = f"record {place} ({other.get('topic', own.get('topic'))} {json.dumps(other.get('key'))})"
            found += [f"{name}: {path}" for path in paths]
    return found


def _paths(own: Any, other: Any, path: str) -> list[str]:
    if isinstance(own, dict) and isinstance(other, dict):
        found = []
        for name in [*own, *(name for name in other if name not in own)]:
            found += _paths(own.get(name, "<absent>"), other.get(name, "<absent>"), f"{path}.{name}")
        return found
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        return [line for i, (a, b) in enumerate(zip(own, other, strict=True)) for line in _paths(a, b, f"{path}[{i}]")]
    if own == other and type(own) is type(other):
        return []
    return [f"{path[1:]} is {_short(own)}, Debezium has {_short(other)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 120 else f"{text[:117]}..."
