"""Which records of a database are wanted: between two places in the stream, of some tables, with one key.

Changes are numbered as if all records were wanted, so a selected record is the same as in the whole stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.json_texts import json_text
from mssql_cdc.records.pieces import ChangeLog
from mssql_cdc.records.selected_key import SelectedKey
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Selection:
    """The wanted records; everything by default.

    `start` and `end` are commit LSNs (`00000027:00000ac0:0002`, both inclusive) or times with a zone (the first change
    that was committed at that time or later; exclusive as `end`). `tables` are names like `dbo.orders` or
    `shop.dbo.orders`, of which a renamed table may have several; `key` is a record's key in JSON.
    """

    start: str | None = None
    end: str | None = None
    tables: tuple[str, ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        for text in (self.start, self.end):
            if text is not None:
                _place(text)
        if self.key is not None:
            SelectedKey.parse(self.key)

    @property
    def of_records(self) -> str:
        """What an output stores: a stream that began with these tables and this key continues with them."""
        return json_text({name: value for name, value in asdict(self).items() if name in {"tables", "key"} and value})

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves records out between `start` and `end`."""
        return bool(self.tables) or self.key is not None

    def wanted(self, known: Mapping[TableId, Iterable[TableId]]) -> frozenset[TableId]:
        """Return the wanted tables of a database; none if the names are those of other databases' tables.

        A name stands for the table that has it or, if no table has it now, for those that had it.

        Args:
            known: The database's tables by their current names, each with all names that it has had.
        """
        if not self.tables:
            return frozenset(known)
        return frozenset(table for name in self.tables for table in _named(name, known))

    def require_known(self, known: Mapping[TableId, Iterable[TableId]]) -> None:
        """Refuse names that no table has.

        Args:
            known: The tables of all databases, as `wanted` gets them.

        Raises:
            ConfigurationError: No table has, or had, one of the names.
        """
        unknown = [name for name in self.tables if not _named(name, known)]
        if unknown:
            shown = ", ".join(sorted(table.text for table in known)) or "none"
            raise ConfigurationError(f"No such table: {', '.join(unknown)}; captured are: {shown}")

    def filtered(
        self, records: pa.RecordBatch, topics: Iterable[str], key_schemas: Iterable[Mapping[str, Any]]
    ) -> pa.RecordBatch:
        """Return the wanted records.

        Args:
            records: Records of a database, without those of tables that are not wanted.
            topics: The topics that wanted tables have, or had.
            key_schemas: The schemas with which their keys are written in the form of Java's `toString`, if they are.
        """
        records = records.filter(pc.is_in(records.column("topic"), value_set=pa.array(sorted(topics), pa.string())))
        if self.key is None:
            return records
        return records.filter(SelectedKey.parse(self.key).is_in(records.column("key"), key_schemas))

    def start_position(self, epoch: int, logs: Iterable[ChangeLog]) -> str | None:
        """Return the first wanted position; None without a start.

        Args:
            epoch: The epoch of the LSNs.
            logs: The change logs, in which times are looked up.
        """
        if self.start is None:
            return None
        place = _place(self.start)
        return _first_at(place, logs) if isinstance(place, datetime) else f"{epoch:04x}-{place.raw.hex()}"

    def end_position(self, epoch: int, logs: Iterable[ChangeLog]) -> str | None:
        """Return the first position that is no longer wanted; None without an end."""
        if self.end is None:
            return None
        place = _place(self.end)
        return _first_at(place, logs) if isinstance(place, datetime) else f"{cut_text(epoch, place)}+"


def _named(name: str, known: Mapping[TableId, Iterable[TableId]]) -> set[TableId]:
    own = {table for table in known if name in _names(table)}
    return own or {table for table, all_ in known.items() if any(name in _names(one) for one in all_)}


def _names(table: TableId) -> set[str]:
    return {table.text, f"{table.schema}.{table.name}"}


def _place(text: str) -> Lsn | datetime:
    try:
        return Lsn.parse(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ConfigurationError(
            f"{text!r} is no place in the stream; expected a commit LSN like 00000027:00000ac0:0002, or a time with "
            "its zone like 2026-11-22T08:00:00Z"
        )
    return found.astimezone(UTC)


def _first_at(time: datetime, logs: Iterable[ChangeLog]) -> str:
    """Return the position of the first change committed at or after a time; without one, a text after all positions."""
    return min((found for log in logs if (found := log.first_position(time)) is not None), default="g")
