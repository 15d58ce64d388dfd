"""Which records of a database are wanted: from and to a place in the stream, of some tables, of one key.

Changes are numbered as if all records were wanted, so a selected record is the same as in the whole stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.json_texts import json_text
from mssql_cdc.records.pieces import ChangeLog
from mssql_cdc.records.shapes import TableShape
from mssql_cdc.records.string_texts import string_text
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Selection:
    """The wanted records; everything by default.

    `start` and `end` are commit LSNs (`00000027:00000ac0:0002`, both inclusive) or times with a zone (the first change
    that was committed at that time or later; exclusive as the end). `tables` are names like `dbo.orders` or
    `shop.dbo.orders`; `key` is a record's key in JSON.
    """

    start: str | None = None
    end: str | None = None
    tables: tuple[str, ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        for text in (self.start, self.end):
            if text is not None:
                _place(text)
        if self.key is not None and not isinstance(_parsed(self.key), dict):
            raise ConfigurationError(f'The key {self.key} is not a JSON object; expected for instance {{"id": 1}}')

    @property
    def of_records(self) -> str:
        """What an output stores: a stream that was begun with these tables and this key goes on with them."""
        return json_text({name: value for name, value in asdict(self).items() if name in {"tables", "key"} and value})

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves records out between `start` and `end`."""
        return bool(self.tables) or self.key is not None

    def wants(self, table: TableId) -> bool:
        """Whether it includes a table."""
        return not self.tables or bool({table.text, f"{table.schema}.{table.name}"} & set(self.tables))

    def check(self, known: Iterable[TableId]) -> None:
        """Raise ConfigurationError if a table is not among the known ones."""
        tables = list(known)
        names = {name for table in tables for name in (table.text, f"{table.schema}.{table.name}")}
        if unknown := set(self.tables) - names:
            shown = ", ".join(sorted(table.text for table in tables)) or "none"
            raise ConfigurationError(f"No such table: {', '.join(sorted(unknown))}; captured are: {shown}")

    def filtered(self, records: pa.RecordBatch, shapes: Iterable[TableShape]) -> pa.RecordBatch:
        """Return the wanted records.

        Args:
            records: Records of a database.
            shapes: The newest shapes of its tables.
        """
        wanted = [shape for shape in shapes if self.wants(shape.table_id)]
        topics = pa.array(sorted({shape.topic for shape in wanted}), pa.string())
        mask = pc.is_in(records.column("topic"), value_set=topics)
        if self.key is not None:
            keys = pa.array(sorted(_key_texts(_parsed(self.key), wanted)), pa.string())
            mask = pc.and_(mask, pc.is_in(records.column("key"), value_set=keys))
        return records.filter(mask)

    def start_position(self, epoch: int, logs: Iterable[ChangeLog]) -> str | None:
        """Return the first wanted position; None without a start.

        Args:
            epoch: The epoch of LSNs.
            logs: The change logs, in which times are looked up.
        """
        if self.start is None:
            return None
        place = _place(self.start)
        return _first_at(place, logs) if isinstance(place, datetime) else f"{epoch:04x}-{place.raw.hex()}"

    def end_position(self, epoch: int, logs: Iterable[ChangeLog]) -> str | None:
        """Return the first position that is not wanted any more; None without an end."""
        if self.end is None:
            return None
        place = _place(self.end)
        return _first_at(place, logs) if isinstance(place, datetime) else f"{cut_text(epoch, place)}+"


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
    """Return the position of the first change that was committed at or after a time; behind all without one."""
    return min((found for log in logs if (found := log.first_position(time)) is not None), default="g")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"The key {text} is not JSON: {error}") from error


def _key_texts(key: dict[str, Any], shapes: Iterable[TableShape]) -> set[str]:
    """Return the key as each table writes it, with its fields in the table's order."""
    found: set[str] = set()
    for shape in shapes:
        names = [*(name for name, _, _ in shape.key_fields), *(name for name, _ in shape.added)]
        if set(names) == set(key):
            text = json_text({name: key[name] for name in names})
            if shape.string_key is not None:
                text = json_text(string_text(shape.string_key, key))
            found.add(text if shape.key_schema is None else f'{{"schema":{shape.key_schema},"payload":{text}}}')
    return found
