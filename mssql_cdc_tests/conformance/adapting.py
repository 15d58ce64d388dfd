"""Debezium's records of a workload, turned into those that a deliberate difference asks of this connector.

Each function takes Debezium's records and this connector's. It changes what its difference is about, and nothing else.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from mssql_cdc_tests.conformance.compare import payload
from mssql_cdc_tests.conformance.driver_bugs import spoiled

Records = list[dict[str, Any]]
Adapt = Callable[[Records, Records], Records]


def each_value(change: Callable[[dict[str, Any]], None]) -> Adapt:
    """Return what changes the payload of each record's value."""

    def adapt(theirs: Records, ours: Records) -> Records:
        del ours
        found = copy.deepcopy(theirs)
        for record in found:
            value = payload(record["value"])
            if isinstance(value, dict):
                change(value)
        return found

    return adapt


def shown_marker(value: dict[str, Any]) -> None:
    source = value.get("source")
    if source is not None and source["snapshot"] is None:
        source["snapshot"] = "false"


def without_rows_of_snapshots(theirs: Records, ours: Records) -> Records:
    del ours
    return [record for record in theirs if (payload(record["value"]) or {}).get("op") != "r"]


def where_ours_are(theirs: Records, ours: Records) -> Records:
    """Give the schema changes of the stream the positions that this connector's have."""
    found = copy.deepcopy(theirs)
    pairs = zip(filter(_is_streamed_change, found), filter(_is_streamed_change, ours), strict=False)
    for record, own in pairs:
        source, wanted = payload(record["value"])["source"], payload(own["value"])["source"]
        source.update({name: wanted[name] for name in ("commit_lsn", "change_lsn", "event_serial_no")})
        record["sourceOffset"] = own["sourceOffset"]
    return found


def own_keys_of_snapshots(theirs: Records, ours: Records) -> Records:
    """Give the rows of snapshots the keys that this connector's have."""
    found = copy.deepcopy(theirs)
    for record, own in zip(found, ours, strict=False):
        if (payload(record["value"]) or {}).get("op") == "r":
            record["key"] = own["key"]
    return found


def masked_keys(theirs: Records, ours: Records) -> Records:
    """Give keys, and the keys in headers, the value that the mask gives the column in the images of the same record."""
    del ours
    found, masked = copy.deepcopy(theirs), dict[str, str]()
    for record in found:
        value, key = payload(record["value"]) or {}, payload(record["key"]) or {}
        image = value.get("before") if value.get("op") == "d" else value.get("after")
        if image is not None and image["name"] is not None:
            masked[key["name"]] = image["name"]
    for record in found:
        for struct in filter(None, map(payload, (record["key"], *record["headers"].values()))):
            if isinstance(struct, dict) and struct.get("name") in masked:
                struct["name"] = masked[struct["name"]]
    return found


def without_column(name: str) -> Adapt:
    """Return what removes a column from the images and their schemas."""

    def adapt(theirs: Records, ours: Records) -> Records:
        del ours
        found = copy.deepcopy(theirs)
        for record in found:
            value = payload(record["value"]) or {}
            for image in (value.get("before"), value.get("after")):
                if image is not None:
                    image.pop(name, None)
            for part in record["value"]["schema"]["fields"] if "before" in value else ():
                if part["field"] in {"before", "after"}:
                    part["fields"] = [one for one in part["fields"] if one["field"] != name]
        return found

    return adapt


def until_first_alter(theirs: Records, ours: Records) -> Records:
    """Return what comes before the new capture instance."""
    del ours
    kinds = [payload(one["value"])["tableChanges"][0]["type"] if _is_schema_change(one) else "" for one in theirs]
    return theirs[: kinds.index("ALTER")] if "ALTER" in kinds else theirs


def with_a_snapshot(theirs: Records, ours: Records) -> Records:
    """Make a new table's records begin with a snapshot; its values are those that Debezium's first changes show."""
    known: dict[str, Any] = {}
    for record in theirs:
        if (before := (payload(record["value"]) or {}).get("before")) is not None:
            known.setdefault(json.dumps(payload(record["key"])), before)
    created = next((payload(one["value"])["tableChanges"] for one in theirs if _is_streamed_change(one)), None)
    found, rest = list[dict[str, Any]](), iter([one for one in theirs if not _is_streamed_change(one)])
    for record in copy.deepcopy(ours):
        value = payload(record["value"]) or {}
        if value.get("op") == "r":
            value["after"] = known.get(json.dumps(payload(record["key"])))
            found.append(record)
        elif _is_schema_change(record):
            value["tableChanges"] = created
            found.append(record)
        else:
            found += itertools.islice(rest, 1)
    return [*found, *rest]


def renamed(theirs: Records, ours: Records) -> Records:
    """Give Debezium's records the table's new name where ours have it, and leave out that it is new."""
    theirs = [one for one in theirs if not (_is_streamed_change(one) and not _alters(one))]
    tables = [[(payload(one["value"]) or {}).get("source", {}).get("table") for one in part] for part in (theirs, ours)]
    names = next(((old, new) for old, new in zip(*tables, strict=False) if old != new), None)
    if names is None or None in names:
        return theirs
    texts = [(json.dumps(record), names[1] in json.dumps(own)) for record, own in zip(theirs, ours, strict=False)]
    old, new = map(str, names)
    return [json.loads(text.replace(old, new) if is_new else text) for text, is_new in texts]


def under_its_structure(theirs: Records, ours: Records) -> Records:
    """Show changes under the structure that ours have, with the values that Debezium's have as well.

    Schema changes stand where ours do; a value may be missing, or another notation of the same (3 for '3').
    """
    own_places = {place: own for own in ours if (place := _place(own)) is not None}
    changes = {json.dumps(payload(one["value"])["tableChanges"][0]["id"]): one for one in theirs if _alters(one)}
    rest = [one for one in copy.deepcopy(theirs) if not _alters(one)]
    for record in rest:
        own = own_places.get(_place(record) or ())
        if own is None:
            continue
        value, wanted = payload(record["value"]), payload(own["value"])
        images = [(value[name], wanted[name]) for name in ("before", "after")]
        if all(_agree(image, right) for image, right in images):
            record["value"]["schema"] = own["value"]["schema"]
            value.update({name: wanted[name] for name in ("before", "after")})
    found, known = list[dict[str, Any]](), {_place(one) for one in rest}
    for own in ours:
        if _alters(own):
            id_ = json.dumps(payload(own["value"])["tableChanges"][0]["id"])
            change = copy.deepcopy(changes.get(id_, own))
            payload(change["value"])["source"] = payload(own["value"])["source"]
            found.append({**change, "sourceOffset": own["sourceOffset"]})
        elif (place := _place(own)) is not None and place not in known:
            found.append(own)
        else:
            found += rest[:1]
            del rest[:1]
    return [*found, *rest]


def _agree(image: dict[str, Any] | None, right: dict[str, Any] | None) -> bool:
    """Whether an image has no other values than another one."""
    if image is None or right is None:
        return image is right
    return all(value is None or str(value) == str(right.get(name)) for name, value in image.items())


def _place(record: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Where a streamed change of a row stands; None for other records, and for those behind a first one."""
    value = payload(record["value"]) or {}
    source = value.get("source", {})
    is_change = value.get("op") in {"c", "u", "d"}
    return (record["topic"], value["op"], source["commit_lsn"], source["change_lsn"]) if is_change else None


def _alters(record: Mapping[str, Any]) -> bool:
    return _is_schema_change(record) and payload(record["value"])["tableChanges"][0]["type"] == "ALTER"


def as_the_source_has_it(theirs: Records, ours: Records) -> Records:
    """Give the columns of images the values of ours of which Debezium's are what its driver makes."""
    found = copy.deepcopy(theirs)
    for record, own in zip(found, ours, strict=False):
        value, wanted = payload(record["value"]) or {}, payload(own["value"]) or {}
        for name in ("before", "after"):
            image, right = value.get(name), wanted.get(name)
            if isinstance(image, dict) and isinstance(right, dict):
                image.update({column: one for column, one in right.items() if image.get(column) in spoiled(one)})
    return found


def _is_schema_change(record: Mapping[str, Any]) -> bool:
    return "tableChanges" in (payload(record["value"]) or {})


def _is_streamed_change(record: Mapping[str, Any]) -> bool:
    return _is_schema_change(record) and "snapshot" not in record["sourceOffset"]
