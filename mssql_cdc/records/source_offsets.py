"""Debezium's source offsets: where a connector resumes, as Kafka Connect's REST API shows them.

`{"offsets": [{"partition": {"server": …, "database": …}, "offset": {…}}]}` is read and written here. `resume.py` finds
the place in the lake's stream. Offsets that a file of Kafka Connect or an engine stores are read by `offset_files.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn

_NONE = "NULL"
"""What Debezium stores for a missing LSN."""
INCREMENTAL = "INCREMENTAL"
"""What the offset of a row of an incremental snapshot says: it is a streaming offset without a change."""
_KINDS = ("INITIAL", "BLOCKING", INCREMENTAL)

_COLLECTIONS = "incremental_snapshot_collections"
_ORDER = "transaction_data_collection_order_"


@dataclass(frozen=True, slots=True)
class Remaining:
    """A table that an incremental snapshot has not finished, with what the signal said about it."""

    collection: str
    condition: str | None = None
    surrogate: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A position after which a connector resumes (features §3.10).

    `serial` is the number of the last event with these LSNs. `snapshot` is the kind of the snapshot that the offset
    belongs to; None while streaming. `transaction` is the open transaction's id, `remaining` are the tables of an
    unfinished incremental snapshot, which the signal `correlation` requested. `values` is the offset as given.
    """

    values: Mapping[str, Any]
    commit: Lsn | None
    change_lsn: str | None = None
    serial: int = 0
    snapshot: str | None = None
    completed: bool = False
    transaction: str | None = None
    remaining: tuple[Remaining, ...] = ()
    correlation: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SourceOffset:
        """Read an offset.

        Raises:
            ConfigurationError: It is not an offset of this connector.
        """
        try:
            commit, change = (_lsn(values.get(name)) for name in ("commit_lsn", "change_lsn"))
            kind = values.get("snapshot")
            # Before 3.0, `true` stood for the only kind that existed.
            snapshot = None if kind in {None, False, "false"} else "INITIAL" if kind in {True, "true"} else str(kind)
            if snapshot not in {None, *_KINDS}:
                raise ValueError(f"snapshot is {snapshot}; expected {', '.join(_KINDS)}")
            completed = values.get("snapshot_completed") in {True, "true"}
            serial = int(values.get("event_serial_no") or 0)
            remaining = _remaining(values.get(_COLLECTIONS))
            _events(values)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(
                f"{json.dumps(dict(values))} is not an offset of this connector: {error}"
            ) from error
        change_lsn = None if change is None else change.text
        return cls(
            dict(values),
            commit,
            change_lsn,
            serial,
            snapshot,
            completed,
            values.get("transaction_id"),
            remaining,
            values.get("incremental_snapshot_correlation_id"),
        )

    @property
    def is_of_row_read(self) -> bool:
        """Whether this is the offset of a row of an incremental snapshot: its open transaction may be an earlier one.

        Such a row has no LSN of its own, and its number is 0.
        """
        is_numbered = self.change_lsn is not None or self.values.get("event_serial_no") is not None
        is_position = self.values.get("change_lsn") != _NONE
        return self.commit is not None and self.snapshot is None and is_numbered and is_position and not self.serial

    @property
    def events(self) -> dict[str, int]:
        """The number of events that each table has had in the open transaction."""
        return _events(self.values)

    @property
    def is_unfinished_snapshot(self) -> bool:
        """Whether the offset is within an initial or a blocking snapshot."""
        return self.snapshot not in {None, INCREMENTAL} and not self.completed

    @property
    def begins_again(self) -> bool:
        """Whether a connector that resumes there takes the snapshot again: only an initial one is repeated."""
        return self.is_unfinished_snapshot and self.snapshot != "BLOCKING"

    @property
    def reads_again(self) -> bool:
        """Whether a connector that resumes there reads its transaction again: a consumer may have a part of it.

        Debezium resumes after the commit once `snapshot_completed` is set. A streaming offset does not keep this flag:
        after a restart, rows of an incremental snapshot say that it is not set.
        """
        return self.change_lsn is not None or (self.snapshot is not None and not self.completed)


def _events(values: Mapping[str, Any]) -> dict[str, int]:
    """The number of events of each table that an offset lists."""
    return {name.removeprefix(_ORDER): int(count) for name, count in values.items() if name.startswith(_ORDER)}


def _remaining(text: Any) -> tuple[Remaining, ...]:
    """The tables of an incremental snapshot that an offset lists."""
    return tuple(
        Remaining(
            str(one[f"{_COLLECTIONS}_id"]),
            one.get(f"{_COLLECTIONS}_additional_condition"),
            one.get(f"{_COLLECTIONS}_surrogate_key"),
        )
        for one in (json.loads(text) if text else ())
    )


def _lsn(text: Any) -> Lsn | None:
    return None if text in {None, _NONE} else Lsn.parse(str(text))


@dataclass(frozen=True, slots=True)
class FoundOffsets:
    """The offsets of a connector, by database.

    Attributes:
        own: Those of the connector's databases, by the connector's names for them.
        others: Those of other databases, as they were found.
    """

    own: dict[str, SourceOffset]
    others: dict[str, Mapping[str, Any]]

    def require_no_others(self, connector: Connector) -> None:
        """Check that all offsets belong to databases that the connector has.

        Raises:
            ConfigurationError: They are not.
        """
        if self.others:
            raise ConfigurationError(
                f"The offsets name the database {', '.join(self.others)}; database.names has "
                f"{', '.join(connector.databases)}"
            )


def parse_offsets(text: str, connector: Connector) -> dict[str, SourceOffset]:
    """Return the offsets of a connector's databases.

    Args:
        text: The JSON of Kafka Connect's REST API (`GET /connectors/<name>/offsets`).
        connector: The connector that resumes there.

    Raises:
        ConfigurationError: The text has another form, or the offsets are those of another connector or database.
    """
    found = find_offsets(offset_pairs(text), connector)
    found.require_no_others(connector)
    return found.own


def offset_pairs(text: str) -> list[tuple[Mapping[str, Any], Any]]:
    """Return source partitions and their offsets.

    Args:
        text: The JSON of Kafka Connect's REST API.

    Raises:
        ConfigurationError: The text has another form.
    """
    try:
        return [(dict(one["partition"]), one["offset"]) for one in json.loads(text)["offsets"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            'The offsets have another form; expected {"offsets": [{"partition": {"server": …, "database": …}, '
            '"offset": {…}}]}, as GET /connectors/<name>/offsets prints it'
        ) from error


def find_offsets(pairs: Iterable[tuple[Mapping[str, Any], Any]], connector: Connector) -> FoundOffsets:
    """Return offsets by database.

    Before Debezium 2.0, a connector for one database did not have the database's name in its partition. Kafka Connect
    keeps that offset alongside the later one, in no particular order, so it counts only if no partition names a
    database.

    Args:
        pairs: Source partitions and their offsets; None: the partition has none.
        connector: The connector to which they must belong.

    Raises:
        ConfigurationError: They belong to another connector, are not offsets, or two of one database differ.
    """
    known = {name.casefold(): name for name in connector.databases}
    found: dict[str | None, Mapping[str, Any] | None] = {}
    names: dict[str, str] = {}
    for partition, values in pairs:
        server, database = partition.get("server"), partition.get("database")
        if server != connector.topic_prefix:
            raise ConfigurationError(
                f"The offsets belong to the connector with topic.prefix={server}; this one has {connector.topic_prefix}"
            )
        if values is not None and not isinstance(values, Mapping):
            raise ConfigurationError(f"{json.dumps(values)} is not an offset of this connector: expected a JSON object")
        key = None if database is None else str(database).casefold()
        if key is not None:
            names[key] = known.get(key, str(database))
        earlier = found.get(key)
        if values is not None and earlier is not None and values != earlier:
            of = "a partition without a database" if key is None else f"the database {names[key]}"
            raise ConfigurationError(f"There are two offsets of {of}, and they differ. Leave the one that counts")
        found[key] = earlier if values is None else cast("Mapping[str, Any]", values)
    unnamed = found.pop(None, None)
    if unnamed is not None and not found:
        if len(known) > 1:
            names_known = ", ".join(connector.databases)
            raise ConfigurationError(f"The offsets name no database; database.names has {names_known}")
        (key,) = known
        found[key], names[key] = unnamed, known[key]
    kept = {names[key]: values for key, values in found.items() if key is not None and values is not None}
    return FoundOffsets(
        {name: SourceOffset.of(values) for name, values in kept.items() if name.casefold() in known},
        {name: values for name, values in kept.items() if name.casefold() not in known},
    )


def offsets_text(server: str, offsets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the offsets of a connector's databases in the form of Kafka Connect's REST API.

    Args:
        server: `topic.prefix`.
        offsets: The offset of each database.
    """
    entries = [
        {"partition": {"server": server, "database": database}, "offset": dict(values)}
        for database, values in offsets.items()
    ]
    return json.dumps({"offsets": entries}, ensure_ascii=False)
