"""The structs of transaction metadata (SPI-11): Debezium's, and those of a user's factory.

An entry point in the group `mssql_cdc.transaction_metadata_factories` names the factory. Counting and ordering belong
to `transactions.py` in any case; a struct maker only decides what is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from mssql_cdc.config import Connector, reveal
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.extension_points import DEFAULT_FACTORY
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import load_extension
from mssql_cdc.records.connect_values import Schema, check_schema, dumped, to_json
from mssql_cdc.records.event_schemas import TRANSACTION_KEY, TRANSACTION_VALUE
from mssql_cdc.records.json_texts import Texts, json_text
from mssql_cdc.records.schemas import transaction_block

_METHODS = (
    "block_schema", "key_schema", "value_schema", "transaction_block", "transaction_key", "begin_value", "end_value",
)  # fmt: skip
_LEADING = ("string", "int64", "int64")
"""The types of the fields that CloudEvents show: those of Debezium's block, which its converter expects in every
block."""


class TransactionStructMaker(Protocol):
    """Makes the structs, like Debezium's `io.debezium.pipeline.txmetadata.TransactionStructMaker`."""

    def block_schema(self) -> Schema:
        """Return the schema of the block `transaction` in values."""
        ...

    def key_schema(self) -> Schema:
        """Return the schema of the keys of BEGIN and END records."""
        ...

    def value_schema(self) -> Schema:
        """Return the schema of their values."""
        ...

    def transaction_block(self, transaction: str, total_order: int, data_collection_order: int) -> Mapping[str, Any]:
        """Return the block of an event.

        Args:
            transaction: The transaction's id.
            total_order: The event's place among those in the transaction, from 1.
            data_collection_order: Its place among those of its table.
        """
        ...

    def transaction_key(self, transaction: str) -> Mapping[str, Any]:
        """Return the key of BEGIN and END records."""
        ...

    def begin_value(self, transaction: str, ts_ms: int) -> Mapping[str, Any]:
        """Return the value of a BEGIN record."""
        ...

    def end_value(
        self, transaction: str, event_count: int, data_collections: Sequence[Mapping[str, Any]], ts_ms: int
    ) -> Mapping[str, Any]:
        """Return the value of an END record.

        Args:
            transaction: The transaction's id.
            event_count: The number of its events.
            data_collections: `data_collection` and `event_count` of each table.
            ts_ms: The time in milliseconds since 1970.
        """
        ...


class TransactionMetadataFactory(Protocol):
    """Makes the struct maker, like Debezium's `io.debezium.pipeline.txmetadata.spi.TransactionMetadataFactory`."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Receive the connector's properties; called once, before the other methods."""
        ...

    def transaction_struct_maker(self) -> TransactionStructMaker:
        """Return the struct maker."""
        ...


class DefaultTransactionStructMaker:
    """Debezium's structs; a base class for others."""

    def block_schema(self) -> Schema:
        """Return the schema of the block `transaction` in values."""
        return transaction_block()

    def key_schema(self) -> Schema:
        """Return the schema of the keys of BEGIN and END records."""
        return TRANSACTION_KEY

    def value_schema(self) -> Schema:
        """Return the schema of their values."""
        return TRANSACTION_VALUE

    def transaction_block(self, transaction: str, total_order: int, data_collection_order: int) -> Mapping[str, Any]:
        """Return the block of an event.

        Args:
            transaction: As in `TransactionStructMaker`.
            total_order: The same.
            data_collection_order: The same.
        """
        return {"id": transaction, "total_order": total_order, "data_collection_order": data_collection_order}

    def transaction_key(self, transaction: str) -> Mapping[str, Any]:
        """Return the key of BEGIN and END records."""
        return {"id": transaction}

    def begin_value(self, transaction: str, ts_ms: int) -> Mapping[str, Any]:
        """Return the value of a BEGIN record."""
        return {"status": "BEGIN", "id": transaction, "ts_ms": ts_ms}

    def end_value(
        self, transaction: str, event_count: int, data_collections: Sequence[Mapping[str, Any]], ts_ms: int
    ) -> Mapping[str, Any]:
        """Return the value of an END record.

        Args:
            transaction: As in `TransactionStructMaker`.
            event_count: The same.
            data_collections: The same.
            ts_ms: The same.
        """
        counts = [dict(one) for one in data_collections]
        return {
            "status": "END",
            "id": transaction,
            "event_count": event_count,
            "data_collections": counts,
            "ts_ms": ts_ms,
        }


class TransactionTexts:
    """A maker's structs as JSON, built from the texts of Debezium's own structs."""

    def __init__(self, maker: TransactionStructMaker) -> None:
        """Get the schemas from the maker (raises ValueError)."""
        self._maker = maker
        self.block, self.key, self.value = maker.block_schema(), maker.key_schema(), maker.value_schema()
        for schema in (self.block, self.key, self.value):
            check_schema(schema)

    def keys(self, ids: pa.Array) -> Texts:
        """Return the keys of BEGIN or END records."""
        return _texts(self.key, (self._maker.transaction_key(one) for one in ids.to_pylist()))

    def values(self, plain: Texts) -> Texts:
        """Return the values of BEGIN or END records, built from those of Debezium's maker."""
        found = (json.loads(text) for text in plain.to_pylist())
        return _texts(
            self.value,
            (
                self._maker.begin_value(one["id"], one["ts_ms"])
                if one["status"] == "BEGIN"
                else self._maker.end_value(one["id"], one["event_count"], one["data_collections"], one["ts_ms"])
                for one in found
            ),
        )

    def blocks(self, ids: Texts, totals: Texts, tables: Texts) -> Texts:
        """Return the blocks of events; NULL where an event has no place in a transaction.

        Args:
            ids: The events' transactions.
            totals: Their places in the transactions.
            tables: Their places among the events of their tables.
        """
        made = self._blocks(ids, totals, tables)
        return pa.array([None if one is None else dumped(one) for one in made], pa.string())

    def leading(self, ids: Texts, totals: Texts, tables: Texts) -> list[Texts]:
        """Return the first three fields of blocks as JSON texts, which is what CloudEvents show of them.

        Args:
            ids: As for `blocks`.
            totals: The same.
            tables: The same.
        """
        made = self._blocks(ids, totals, tables)
        names = [one["field"] for one in self.block["fields"][: len(_LEADING)]]
        values = [[None if one is None else one[name] for one in made] for name in names]
        return [
            pa.array([None if one is None else json_text(str(one)) for one in column], pa.string()) for column in values
        ]

    @property
    def fits_cloud_events(self) -> bool:
        """Whether Debezium's CloudEvents converter could use what it shows: by position, regardless of names."""
        leading = self.block["fields"][: len(_LEADING)]
        return tuple("name" in one or one["type"] for one in leading) == _LEADING

    def _blocks(self, ids: Texts, totals: Texts, tables: Texts) -> list[dict[str, Any] | None]:
        rows = zip(ids.to_pylist(), totals.to_pylist(), tables.to_pylist(), strict=True)
        made = [None if id_ is None else self._maker.transaction_block(id_, int(a), int(b)) for id_, a, b in rows]
        return [None if one is None else to_json({**self.block, "optional": False}, one) for one in made]


def _texts(schema: Schema, structs: Any) -> Texts:
    return pa.array([dumped(to_json(schema, one)) for one in structs], pa.string())


def transaction_texts(connector: Connector) -> TransactionTexts | None:
    """Return the transaction texts of a user's factory; None: transactions look like Debezium's.

    Raises:
        ConfigurationError: The factory is not installed, or cannot be used.
    """
    name = connector.records.extensions.transaction_factory.strip()
    if name == DEFAULT_FACTORY:
        return None
    setting = "transaction.metadata.factory"
    methods = ("configure", "transaction_struct_maker")
    factory: TransactionMetadataFactory = load_extension(
        ExtensionGroup.TRANSACTION_METADATA_FACTORIES, name, setting=setting, methods=methods
    )
    factory.configure({key: reveal(value) for key, value in connector.properties})
    maker = factory.transaction_struct_maker()
    missing = [method for method in _METHODS if not callable(getattr(maker, method, None))]
    if missing:
        raise ConfigurationError(f"{setting}: the struct maker of {name} lacks {', '.join(missing)}")
    try:
        made = TransactionTexts(maker)
    except ValueError as error:
        raise ConfigurationError(f"{setting}: {name}: {error}") from error
    settings = connector.records
    if settings.writes_cloud_events and settings.cloud_events.extensions and not made.fits_cloud_events:
        raise ConfigurationError(
            f"{setting}: CloudEvents show the first three fields of a transaction block, which must be string, int64, "
            f"int64 as in Debezium; the blocks of {name} begin otherwise. Change them, or set "
            "value.converter.extension.attributes.enable=false"
        )
    return made
