"""Users' post-processors (SPI-10), which change the key and the value of a record before it is written.

Like Debezium's `io.debezium.processors.spi.PostProcessor`, they see each record of a table's change (snapshot,
streaming, incremental), never tombstones, schema changes, transactions or heartbeats. An entry point in the group
`mssql_cdc.post_processors` names the class. ReselectColumns, which works on the lake's values, is in `reselect.py`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.extension_points import RESELECT
from mssql_cdc.errors import ConversionError
from mssql_cdc.extensions import load_extension
from mssql_cdc.records.connect_values import Schema, check_json, dumped, without_values
from mssql_cdc.records.json_texts import Texts

Struct = dict[str, Any]
logger = logging.getLogger("mssql_cdc")


class PostProcessor(Protocol):
    """Changes records in place."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Receive the post-processor's properties, without the name prefix; called once, before all other methods."""
        ...

    def apply(self, key: Struct | None, value: Struct) -> None:
        """Change a record's key (None: it has none) and value: the JSON of Kafka Connect's converter without schemas.

        Numbers are int or Decimal. The fields must stay those of the schema.
        """
        ...

    def close(self) -> None:
        """Release its resources; called once, after the other methods."""
        ...


@dataclass(frozen=True, slots=True)
class PostProcessors:
    """The post-processors of a connector, in order; `redact` removes secrets from what they raise."""

    own: tuple[tuple[str, PostProcessor], ...] = ()
    redact: Callable[[str], str] = str

    @classmethod
    def of(cls, connector: Connector) -> PostProcessors:
        """Load and configure them (raises ConfigurationError)."""
        found: list[tuple[str, PostProcessor]] = []
        for one in connector.records.extensions.own_post_processors:
            if one.type != RESELECT:
                setting = f"{one.name}.type"
                made = load_extension(
                    ExtensionGroup.POST_PROCESSORS, one.type, setting=setting, methods=("configure", "apply", "close")
                )
                made.configure(one.read())
                found.append((one.name, made))
        return cls(tuple(found), connector.redact)

    def close(self) -> None:
        """Close all of them, even if some raise an error."""
        for name, processor in self.own:
            try:
                processor.close()
            except Exception as error:  # noqa: BLE001 (any: the records are already written)
                said = self.redact(f"{type(error).__name__}: {error}")
                logger.warning("The post-processor %s cannot be closed: %s", name, said)

    def process(
        self, keys: Texts | None, values: Texts, positions: pa.Array, schemas: tuple[Schema | None, Schema]
    ) -> tuple[Texts | None, Texts]:
        """Return keys and values as the post-processors leave them.

        Args:
            keys: The keys, without schemas; None: the records have none.
            values: The envelopes, without schemas.
            positions: `_pos` of each record, for error messages.
            schemas: The schemas of key and value.

        Raises:
            ConversionError: A post-processor fails, or produces what the schema does not allow.
        """
        found_keys: list[str] = []
        found_values: list[str] = []
        texts = keys.to_pylist() if keys is not None else [None] * len(values)
        for key, value, position in zip(texts, values.to_pylist(), positions.to_pylist(), strict=True):
            new_key, new_value = self._one(key, value, position, schemas)
            found_keys.append(new_key or "null")
            found_values.append(new_value)
        return None if keys is None else pa.array(found_keys, pa.string()), pa.array(found_values, pa.string())

    def _one(
        self, key: str | None, value: str, position: str, schemas: tuple[Schema | None, Schema]
    ) -> tuple[str | None, str]:
        structs = parsed(key) if key is not None else None, parsed(value)
        for name, processor in self.own:
            try:
                processor.apply(*structs)
                for schema, struct in zip(schemas, structs, strict=True):
                    if schema is not None and struct is not None:
                        check_json(schema, struct)
            except Exception as error:  # noqa: BLE001 (any: code of users)
                what = f"The post-processor {name!r} fails for the change at {position}"
                raise ConversionError(f"{what}: {without_values(error)}") from None
        return None if structs[0] is None else dumped(structs[0]), dumped(structs[1])


def parsed(text: str) -> Struct:
    """Return a struct as post-processors see it."""
    return json.loads(text, parse_float=Decimal)
