"""A small lake of several tables, and the output of the real Debezium 3.3.1 for such tables."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.events import to_change_log
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.history import load_history, record_versions
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import TableState, commit, create_table, load_state
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.properties import CHANGE_LOG_PROPERTIES, CHANGE_LOG_STATS
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.steps import Entry, OffsetRow, Status
from mssql_cdc.records import JsonLinesStream, write_records
from mssql_cdc.schema import TableId, TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import AT, Change, column, lsn, neutral
from mssql_cdc_tests.unit.config.samples import connector_with

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "debezium_3_3_1.json").read_text(encoding="utf-8"))
"""Columns, rows and a stream recorded from the real Debezium 3.3.1.Final; processing times and version are masked."""
DATABASE = "testDB1"


def table(
    name: str, *columns: Any, keys: tuple[str, ...] = ("id",), database: str = DATABASE, **more: Any
) -> TableSchema:
    """A table `testDB1.dbo.<name>`, by default with the columns id, name and note."""
    default = (
        column("id", "int", nullable=False),
        column("name", "nvarchar", length=50),
        column("note", "nvarchar", length=-1),
    )
    return TableSchema(TableId(database, "dbo", name), columns or default, keys, **more)


@dataclass
class Lake:
    """A warehouse with one database, written like the connector writes it but without a source."""

    folder: Path
    properties: Mapping[str, object] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    database: str = DATABASE

    @property
    def connector(self) -> Connector:
        """The configuration."""
        return connector_with({"database.names": self.database, "delta.warehouse": str(self.folder), **self.properties})

    @property
    def layout(self) -> Layout:
        """The locations of the tables."""
        return Layout(str(self.folder), "server1", self.database)

    def add(self, schema: TableSchema, *, at: datetime = AT) -> TableSchema:
        """Create the change log and return the schema with its version."""
        (known,), _ = record_versions(self.layout, [schema], known=load_history(self.layout), at=at)
        home = self.layout.home(known.table_id)
        create_table(
            home.changes,
            change_log_schema(known),
            owner=home.app_id,
            properties=CHANGE_LOG_PROPERTIES,
            stats_columns=CHANGE_LOG_STATS,
        )
        state = load_state(home.changes, owner=home.app_id)
        assert state is not None
        self.states[known.table_id.text] = state
        return known

    def append(self, schema: TableSchema, *changes: Change, snapshot: str = "1", flag: str | None = None) -> None:
        """Commit changes; `flag` is `_snapshot` of every row, as a sweep writes it."""
        name = schema.table_id.text
        state = self.states[name]
        number = state.batch + 1
        rows = to_change_log(neutral(schema, *changes), table_schema=schema, batch_number=number, snapshot=snapshot)
        if flag is not None:
            place = rows.schema.get_field_index("_snapshot")
            rows = rows.set_column(place, rows.schema.field(place), pa.repeat(flag, rows.num_rows))
        to = lsn(max(change.at for change in changes)).text
        self.states[name] = commit(state, write_files([rows], state.target), {"to": to})
        self.batches[name] = number

    def cut(
        self,
        to: int,
        *,
        complete: bool = True,
        minutes: int = 0,
        only: Collection[str] = (),
        status: Status = "streaming",
        **more: Any,
    ) -> None:
        """Append an offsets row for every table, or only these, `minutes` after the usual time."""
        entries = {
            name: Entry(
                status,
                to=lsn(to).text,
                batch=self.batches.get(name),
                epoch=more.get("epoch", 0),
                folder=self.layout.folder(TableId(*name.split(".", 2))),
            )
            for name in self.states
            if not only or name.rsplit(".", 1)[1] in only
        }
        at = AT + timedelta(minutes=minutes)
        row = OffsetRow(**{"kind": "range", "at": at, "tables": entries, "to": lsn(to).text, **more}, complete=complete)
        append_offsets(self.layout, row, seen=load_offsets(self.layout))

    def records(self, **properties: object) -> list[dict[str, Any]]:
        """Every record, rendered with these additional properties."""
        lake = Lake(self.folder, {**self.properties, **{k.replace("__", "."): v for k, v in properties.items()}})
        output = io.BytesIO()
        count = write_records(lake.connector, output=JsonLinesStream(output))
        found = [json.loads(line) for line in output.getvalue().decode().splitlines()]
        assert count == len(found)
        return found


class Looked(Sequence[Cut]):
    """Complete cuts, a second apart; counts those that are looked at."""

    def __init__(self, count: int) -> None:
        self._count, self.looks = count, 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        at = range(self._count)[place]
        return Cut(at + 1, AT + timedelta(seconds=at), 0, lsn(at + 1).text)


def masked(record: dict[str, Any]) -> dict[str, Any]:
    """The record in the recordings' format: without processing times, version and other omitted fields."""
    value = record["value"]
    if value is not None:
        value = {**value, **{name: "<time>" for name in ("ts_ms", "ts_us", "ts_ns") if name in value}}
        if "source" in value:
            times = dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), "<time>")
            value["source"] = {**value["source"], **times, "version": "<version>"}
    return {"topic": record.get("topic", record.get("destination")), "key": record["key"], "value": value}
