"""Rows of a change log as Debezium sees them: columns converted, keys extracted, split key changes rejoined.

Batches are converted column by column; a `Row` holds JSON values. `write.py` decides their order, `envelope.py` adds
serial numbers and envelopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.errors import SchemaError
from mssql_cdc.events.nested_arrays import map_value
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.records.converters import Convert, Values, converter
from mssql_cdc.records.defaults import value_of_null
from mssql_cdc.records.names import data_topic, field_name
from mssql_cdc.schema import Column, TableId, TableSchema

SLICE_ROWS = 5_000
Image = dict[str, Any]
Side = Literal["before", "after"]
_BEFORE_SPLIT, _AFTER_SPLIT = 3, 4


@dataclass(slots=True)
class Row:
    """One change: images and keys with their JSON values, and its position.

    `count` is its increment of `event_serial_no`: 2 for an update, which has two rows in the change table (EVT-15).
    """

    shape: TableShape
    pos: str
    op: str
    batch: int
    commit_us: int | None
    commit_lsn: str | None
    change_lsn: str | None
    before: Image | None
    after: Image | None
    key_before: Image | None
    key_after: Image | None
    snapshot: str | None
    operation: int | None
    count: int = 1

    @property
    def key(self) -> Image | None:
        """The key of the newest image."""
        return self.key_before if self.after is None else self.key_after


@dataclass(frozen=True, slots=True)
class Large:
    """A column whose before image CDC omits unless the update changed it (TYP-05), and the value shown `instead`."""

    column: str
    field: str
    instead: Any


@dataclass(frozen=True)
class TableShape:
    """Defines how the rows of one schema version of a table are rendered."""

    schema: TableSchema
    topic: str
    fields: tuple[tuple[str, Column, Convert], ...]
    key_fields: tuple[tuple[str, Column, Convert], ...]
    large: tuple[Large, ...] = ()

    @property
    def table_id(self) -> TableId:
        """The table's id, with its database."""
        return self.schema.table_id

    @classmethod
    def of(cls, schema: TableSchema, connector: Connector) -> TableShape:
        """Build the shape of a schema version under the connector's modes.

        Raises:
            SchemaError: `field.name.adjustment.mode` gives two columns the same name, or a column's type is unknown.
        """
        settings, table = connector.records, schema.table_id

        def fields(columns: Sequence[Column]) -> tuple[tuple[str, Column, Convert], ...]:
            found = [(field_name(c.name, settings.field_name_adjustment), c, converter(c, settings)) for c in columns]
            names = [name for name, _, _ in found]
            if len(set(names)) < len(names):
                raise SchemaError(
                    f"{table}: field.name.adjustment.mode gives two columns the same name: {sorted(names)}"
                )
            return tuple((name, column, convert) for name, column, convert in found if convert is not None)

        own = settings.keys.columns_for(
            table.catalog or "", table.schema, table.name, [column.name for column in schema.columns]
        )
        value_fields = fields(schema.value_columns)
        return cls(
            schema=schema,
            topic=data_topic(connector, table),
            fields=value_fields,
            key_fields=fields([schema.column(name) for name in own or schema.key_columns]),
            large=tuple(
                Large(column.name, name, _undelivered(column, table, connector))
                for name, column, _ in value_fields
                if column.type.before_image != "always"
            ),
        )


def _undelivered(column: Column, table: TableId, connector: Connector) -> Any:
    """Return Debezium's output for a value that the change table lacks; a mask of stars also replaces NULL."""
    mask = connector.filters.mask_for(table.catalog or "", table.schema, table.name, column.name)
    if mask is not None and mask.kind == "fill" and mask.applies_to(column.type.name):
        return "*" * mask.length
    return None if column.nullable else value_of_null(column, connector.records)


@dataclass(frozen=True)
class Shapes:
    """The shapes of all tables and schema versions of one database."""

    history: SchemaHistory
    connector: Connector
    _known: dict[tuple[TableId, int], TableShape] = field(default_factory=dict[tuple[TableId, int], TableShape])

    def of(self, table_id: TableId, version: int) -> TableShape:
        """Return the shape of a version (raises SchemaError if the history does not contain it)."""
        shape = self._known.get((table_id, version))
        if shape is None:
            shape = TableShape.of(self.history.version(table_id, version), self.connector)
            self._known[table_id, version] = shape
        return shape


def rows_of(batch: pa.RecordBatch, table_id: TableId, shapes: Shapes) -> Iterator[Row]:
    """Yield the batch's rows in order; a split key change becomes the original update again.

    Args:
        batch: Rows of a change log, in position order, with both halves of each split key change.
        table_id: The table.
        shapes: How its schema versions are rendered.

    Raises:
        SchemaError: The history lacks a version, or half of a key change is missing.
    """
    split: Row | None = None
    for start in range(0, batch.num_rows, SLICE_ROWS):
        for row in _slice_rows(batch.slice(start, SLICE_ROWS), table_id, shapes):
            if row.op == "d" and row.operation == _BEFORE_SPLIT:
                split = row
                continue
            if split is not None:
                row, split = _joined(split, row), None  # noqa: PLW2901 - the pair is one row
            yield row
    if split is not None:
        raise SchemaError(
            f"{table_id}: the change log contains only one of the two rows of the key change at {split.pos}"
        )


def _joined(first: Row, second: Row) -> Row:
    """Rejoin the update that rule B13 stored as a delete and a create."""
    if second.op != "c" or second.operation != _AFTER_SPLIT or second.pos[:-1] != first.pos[:-1]:
        raise SchemaError(
            f"{first.shape.table_id}: the delete of the key change at {first.pos} is not followed by its create"
        )
    assert first.before is not None
    assert second.after is not None
    second.op, second.count = "u", 2
    second.before, second.key_before = first.before, first.key_before
    for large in second.shape.large:
        # Unchanged large values are equal in both rows; the change table's before image lacks them.
        if second.before[large.field] == second.after[large.field]:
            second.before[large.field] = large.instead
    return second


def _slice_rows(batch: pa.RecordBatch, table_id: TableId, shapes: Shapes) -> Iterator[Row]:
    versions = batch.column("_schema").to_pylist()
    start = 0
    for end in range(1, len(versions) + 1):
        if end == len(versions) or versions[end] != versions[start]:
            yield from _same_version(batch.slice(start, end - start), shapes.of(table_id, versions[start]))
            start = end


def _same_version(batch: pa.RecordBatch, shape: TableShape) -> Iterator[Row]:
    source = batch.column("source")
    operations = batch.column("op").to_pylist()
    before, key_before = _images(batch, shape, "before")
    after, key_after = _images(batch, shape, "after")
    if shape.large:
        _hide_untouched(before, operations, batch.column("_changed").to_pylist(), shape)
    columns = zip(
        batch.column("_pos").to_pylist(),
        operations,
        batch.column("_batch").to_pylist(),
        batch.column("_commit_ts").view(pa.int64()).to_pylist(),
        source.field("commit_lsn").to_pylist(),
        source.field("change_lsn").to_pylist(),
        before,
        after,
        key_before,
        key_after,
        batch.column("_snapshot").to_pylist(),
        source.field("operation").to_pylist(),
        strict=True,
    )
    for values in columns:
        yield Row(shape, *values, count=2 if values[1] == "u" else 1)


def _images(batch: pa.RecordBatch, shape: TableShape, side: Side) -> tuple[list[Image | None], list[Image | None]]:
    """Return one image and one key per row; None where the row has no such image."""
    image = batch.column(side)
    present = image.is_valid()
    if not pc.any(present).as_py():
        nothing: list[Image | None] = [None] * len(image)
        return nothing, nothing
    exact = batch.column("_exact").field(side)

    def values(column: Column, convert: Convert) -> Values:
        where = image.type.get_field_index(column.name)
        if column.excluded or where < 0:  # A key column hidden by a column filter: only the key contains it (EVT-03).
            return convert(batch.column("key").field(column.name), None)
        texts = map_value(exact, column.name) if column.type.loss != "never" else None
        return convert(image.field(where), texts)

    names = [name for name, _, _ in shape.fields]
    columns = [values(column, convert) for _, column, convert in shape.fields]
    keys = [name for name, _, _ in shape.key_fields]
    known = dict(zip(names, columns, strict=True))
    key_columns = [
        known[name] if name in known else values(column, convert) for name, column, convert in shape.key_fields
    ]
    mask = present.to_pylist()
    images = _dicts(names, columns, mask)
    return images, _dicts(keys, key_columns, mask) if keys else [None] * len(mask)


def _dicts(names: list[str], columns: list[Values], mask: list[bool]) -> list[Image | None]:
    if not columns:
        return [{} if here else None for here in mask]
    rows = zip(*columns, strict=True)
    return [dict(zip(names, row, strict=True)) if here else None for here, row in zip(mask, rows, strict=True)]


def _hide_untouched(
    before: list[Image | None], operations: list[str], changed: list[list[str] | None], shape: TableShape
) -> None:
    """Set unchanged large values to NULL in the before image of an update, as Debezium 3.3.1 shows them.

    The lake contains them nevertheless: `source/sqlserver/images` copies them from the after image.
    """
    for image, op, names in zip(before, operations, changed, strict=True):
        if image is None or op != "u":
            continue
        for large in shape.large:
            if names is None or large.column not in names:
                image[large.field] = large.instead
