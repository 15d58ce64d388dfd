"""Debezium's ReselectColumnsPostProcessor (SPI-10), which queries the source again for values that a change lacks.

It works on the lake's values before they are rendered, so that what it reads looks like every other value. Masked
columns are never re-selected: the source has them in the clear.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.config.reselect import ReselectSettings
from mssql_cdc.errors import ConversionError, MssqlCdcError
from mssql_cdc.events.nested_arrays import map_value
from mssql_cdc.lake.canonical import lake_text
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.defaults import literal_default
from mssql_cdc.schema import Column, Kind, TableSchema
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.registry import open_check_source, open_source

Values = tuple[pa.Array, pa.Array | None]
"""The values of a column, and their exact texts."""
Key = tuple[str | None, ...]
Mask = np.ndarray[Any, Any]
KEYS_TOGETHER = 500
"""The number of rows that one read re-selects."""
logger = logging.getLogger("mssql_cdc")


@dataclass(frozen=True, slots=True)
class Reselect:
    """Re-selects columns of changes."""

    connector: Connector
    settings: ReselectSettings

    @classmethod
    def of(cls, connector: Connector) -> Reselect | None:
        """Return the post-processor if `post.processors` includes it."""
        settings = connector.records.extensions.reselect
        if settings is None:
            return None
        if not settings.null_values and not settings.unavailable_values:
            logger.warning("reselect.null.values and reselect.unavailable.values are false: nothing is read again")
        return cls(connector, settings)

    def read(
        self, schema: TableSchema, event_key: Sequence[str], batch: pa.RecordBatch, op: pa.Array
    ) -> dict[str, Values]:
        """Return the values of the columns in which some values were re-selected.

        Args:
            schema: The table's structure.
            event_key: The columns of the records' keys.
            batch: Rows of its change log.
            op: `op` of each row; snapshot rows are as the source had them, so they are left alone.

        Raises:
            ConversionError: A row no longer exists, and `reselect.error.handling.mode` is `fail`.
            MssqlCdcError: The source cannot be read, and the mode is `fail`.
        """
        after = batch.column("after")
        changed = _bools(pc.and_(after.is_valid(), pc.is_in(op, value_set=pa.array(["c", "u"]))))
        wanted = {
            column.name: changed & self._lacks(column, after.field(after.type.get_field_index(column.stored_name)))
            for column in self._columns(schema)
        }
        wanted = {name: rows for name, rows in wanted.items() if rows.any()}
        lookup = self._lookup(schema, event_key)
        if not wanted or not lookup:
            return {}
        rows = np.flatnonzero(np.logical_or.reduce(list(wanted.values())))
        keys = _keys(schema, lookup, batch, rows)
        names = [column.name for column in schema.columns if column.name in {*lookup, *wanted}]
        cut = replace(schema, columns=tuple(schema.column(name) for name in names)).keyed_by(lookup)
        try:
            found = self._found(cut, keys)
        except MssqlCdcError as error:
            if self.settings.on_error == "fail":
                raise
            said = self.connector.redact(str(error))
            logger.warning("Failed to re-select columns for table %s: %s", schema.table_id, said)
            return {}
        places = np.full(batch.num_rows, -1)
        positions = batch.column("_pos")
        for row, key in zip(rows, keys, strict=True):
            place = -1 if found is None else found.places.get(key, -1)
            places[row] = place
            if place < 0:
                self._missing(schema, positions[int(row)].as_py())
        if found is None or (places < 0).all():
            return {}
        exact = batch.column("_exact").field("after")
        return {
            name: found.put(schema.column(name), after, exact, np.where(own, places, -1))
            for name, own in wanted.items()
        }

    def _columns(self, schema: TableSchema) -> list[Column]:
        table = schema.table_id
        catalog = table.catalog or ""
        return [
            column
            for column in schema.value_columns
            if self.settings.selects(table.schema, table.name, column.name)
            and self.connector.filters.mask_for(catalog, table.schema, table.name, column.name) is None
        ]

    def _lacks(self, column: Column, values: pa.Array) -> Mask:
        """Return which values are to be re-selected.

        For a column with a default, Kafka Connect's `Struct` gives Debezium the default instead of NULL, so nothing is
        missing.
        """
        found = np.zeros(len(values), bool)
        if self.settings.null_values and literal_default(column) is None:
            found |= _bools(values.is_null())
        if self.settings.unavailable_values and column.type.kind in {Kind.TEXT, Kind.DOCUMENT, Kind.BINARY}:
            text = self.connector.records.extensions.placeholder
            found |= _bools(pc.equal(values, pa.scalar(text.encode() if column.type.kind is Kind.BINARY else text)))
        return found

    def _lookup(self, schema: TableSchema, event_key: Sequence[str]) -> Sequence[str]:
        """Return the columns by which rows are looked up; none without a key, or if one of them is masked."""
        names = event_key if self.settings.use_event_key else schema.key_columns
        table = schema.table_id
        masks = [self.connector.filters.mask_for(table.catalog or "", table.schema, table.name, one) for one in names]
        return names if all(mask is None for mask in masks) else ()

    def _missing(self, schema: TableSchema, position: str) -> None:
        text = f"Failed to find row in table {schema.table_id} for the change at {position}"  # Never log values.
        if self.settings.on_error == "fail":
            raise ConversionError(f"{text}: reselect.error.handling.mode is fail; warn leaves the value as it is")
        logger.warning("%s", text)

    def _found(self, cut: TableSchema, keys: Sequence[Key]) -> _Found | None:
        catalog = cut.table_id.catalog or ""
        source = open_source(self.connector)
        batches: list[pa.RecordBatch] = []
        unique = list(dict.fromkeys(key for key in keys if None not in key))
        with open_check_source(self.connector).check_session(catalog) as session:
            for start in range(0, len(unique), KEYS_TOGETHER):
                wanted = ChunkRead(
                    schema=cut,
                    chunks=[session.keyed(cut, unique[start : start + KEYS_TOGETHER])],
                    snapshot_number=0,
                    epoch=0,
                    position=Lsn(bytes(10)),
                    captured=None,
                    commit_lsn=None,
                    read_at=datetime.now(UTC),
                )
                batches += source.chunk_reader(catalog, wanted).read()
        if not batches:
            return None
        rows = pa.concat_batches(batches)
        images = [_column(rows, name, _exact(rows, name)) for name in cut.key_columns]
        texts = [_texts(column, *values) for column, values in zip(cut.keys, images, strict=True)]
        return _Found({key: place for place, key in enumerate(zip(*texts, strict=True))}, rows)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows from the source, and their places by key."""

    places: Mapping[Key, int]
    rows: pa.RecordBatch

    def put(self, column: Column, after: pa.StructArray, exact: pa.MapArray, places: Mask) -> Values:
        """Return a column's values, with those from the source where `places` has a row."""
        own = after.field(after.type.get_field_index(column.stored_name))
        taken = pa.array(np.maximum(places, 0))
        is_new = pa.array(places >= 0)
        values, texts = _column(self.rows, column.name, _exact(self.rows, column.name))
        merged = pc.if_else(is_new, values.take(taken).cast(own.type), own)
        if column.type.loss == "never":
            return merged, None
        none = pa.nulls(len(own), pa.string())
        known = map_value(exact, column.name)
        return merged, pc.if_else(
            is_new, none if texts is None else texts.take(taken), none if known is None else known
        )


def _keys(schema: TableSchema, names: Sequence[str], batch: pa.RecordBatch, rows: Mask) -> list[Key]:
    """Return the canonical texts of the keys of some rows."""
    taken = batch.take(pa.array(rows))
    found: list[list[str | None]] = []
    for name in names:
        column = schema.column(name)
        values, exact = _column(taken, column.stored_name, map_value(taken.column("_exact").field("after"), name))
        if column.excluded or column.stored_name not in {field.name for field in taken.column("after").type}:
            values, exact = taken.column("key").field(column.stored_name), None
        found.append(_texts(column, values, exact))
    return list(zip(*found, strict=True))


def _column(rows: pa.RecordBatch, name: str, exact: pa.Array | None) -> Values:
    after = rows.column("after")
    place = after.type.get_field_index(name)
    values = after.field(place) if place >= 0 else pa.nulls(rows.num_rows, pa.string())
    return values, exact


def _exact(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    return map_value(rows.column("exact").field("after"), name)


def _texts(column: Column, values: pa.Array, exact: pa.Array | None) -> list[str | None]:
    if column.type.kind is Kind.DATE:
        values = values.view(pa.int32())
    elif column.type.kind in {Kind.TIMESTAMP, Kind.INSTANT}:
        values = values.view(pa.int64())
    texts: list[str | None] = exact.to_pylist() if exact is not None else [None] * len(values)
    return [lake_text(column, value, text) for value, text in zip(values.to_pylist(), texts, strict=True)]


def _bools(values: pa.Array) -> Mask:
    return pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
