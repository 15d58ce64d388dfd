"""The rows of a repair's commit: those that were read, at their position in the log, and deletes of the lake's rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.sides import CurrentRows
from mssql_cdc.lake.delta_schema import file_schema
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.sweep import Sweep, sweep_rows
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc.source.values import Texts


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of one version of a current table, each batch with the keys of its rows."""

    batches: tuple[tuple[tuple[Texts, ...], pa.RecordBatch], ...] = ()

    def of(self, keys: Collection[Texts]) -> Iterator[pa.RecordBatch]:
        """The rows with these keys."""
        for texts, batch in self.batches:
            yield batch.filter(pa.array([key in keys for key in texts], pa.bool_()))


def stored_rows(pinned: PinnedTable, compared: Compared, recorded: TableSchema, keys: Collection[Texts]) -> StoredRows:
    """Read the rows with these keys in one pass over the table.

    They are kept in memory, like the texts of their differences: there are at most as many.

    Args:
        pinned: The current table.
        compared: What is compared in the table.
        recorded: The table's newest structure.
        keys: The canonical texts of the keys.
    """
    by_key = replace(compared, schema=replace(compared.schema, columns=compared.schema.keys))
    rows = CurrentRows(by_key, recorded)
    found: list[tuple[tuple[Texts, ...], pa.RecordBatch]] = []
    for batch in pinned.read():
        texts = [by_key.key(row) for row, _ in rows.texts(batch)]
        mine = [key in keys for key in texts]
        if any(mine):
            own = tuple(key for key in texts if key in keys)
            found.append((own, batch.filter(pa.array(mine, pa.bool_()))))
    return StoredRows(tuple(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes(Sweep):
    """The deletes of one group of keys; `first` is the number of deletes in the groups before it."""

    first: int

    def position(self, row: int) -> str:
        """Return the `_pos` of the row-th delete of the group."""
        return Sweep.position(self, self.first + row)


def delete_rows(
    stored: Iterator[pa.RecordBatch], state: TableState, schema: TableSchema, deletes: Deletes
) -> Iterator[pa.RecordBatch]:
    """Synthetic deletes of the lake's rows, for the next commit from this state.

    Args:
        stored: The rows of the current table.
        state: The state of the change log.
        schema: The table's newest structure.
        deletes: Their positions.
    """
    shape = file_schema(state.schema_json, change_log_schema(schema), physical=False)
    some = (batch for batch in stored if batch.num_rows)
    return sweep_rows(some, shape, table_schema=schema, batch_number=state.batch + 1, sweep=deletes)


def changed_keys(state: TableState, *, after: int) -> Mapping[str, str]:
    """The keys with events in commits after a `_batch`, and the newest `_pos` of each.

    Args:
        state: The state of the change log.
        after: The `_batch`.
    """
    found: dict[str, str] = {}
    batches, columns = BatchSlice(after, state.batch), ["_pos", "_key", "_snapshot"]
    for rows in scan(state.uri, batches=batches, columns=columns, storage=state.storage):
        events = rows.filter(pc.is_null(rows.column("_snapshot")))
        for key, position in zip(events.column("_key").to_pylist(), events.column("_pos").to_pylist(), strict=True):
            found[key] = max(position, found.get(key, ""))
    return found


def without(rows: pa.RecordBatch, keys: Collection[str]) -> pa.RecordBatch:
    """The rows with other keys.

    Args:
        rows: Rows with a `_key`.
        keys: The keys to leave out.
    """
    return rows.filter(pc.invert(pc.is_in(rows.column("_key"), value_set=pa.array(keys, pa.string()))))


def moved(rows: pa.RecordBatch, position: Lsn) -> pa.RecordBatch:
    """The rows of the change log, moved to another commit position.

    Args:
        rows: The rows.
        position: The position.
    """
    texts = pc.utf8_replace_slice(rows.column("_pos"), 5, 25, position.raw.hex())
    return rows.set_column(rows.schema.get_field_index("_pos"), rows.schema.field("_pos"), texts)
