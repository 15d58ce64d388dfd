"""The one wanted key (`records --key`), which is compared with the keys of records by value, whatever their form.

How a number is written and the order of fields do not matter, nor does a schema next to a key: each version of a table
has a different one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.json_texts import Texts, json_text
from mssql_cdc.records.number_texts import with_numbers_as_written
from mssql_cdc.records.string_texts import string_text

_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'
_DECODER = json.JSONDecoder(parse_float=Decimal)


@dataclass(frozen=True, slots=True)
class SelectedKey:
    """A key: its `text` in JSON, and its fields."""

    text: str
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> SelectedKey:
        """Read a key, with or without its schema.

        Raises:
            ConfigurationError: It is not a JSON object.
        """
        try:
            found = _DECODER.decode(text)
        except ValueError as error:
            raise ConfigurationError(f"The key {text} is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise ConfigurationError(f'The key {text} is not a JSON object; expected for instance {{"id": 1}}')
        fields = cast("dict[str, Any]", found)
        if set(fields) == {"schema", "payload"} and isinstance(fields["payload"], dict):
            fields = cast("dict[str, Any]", fields["payload"])
            text = json.dumps(json.loads(text)["payload"])
        return cls(text, fields)

    def is_in(self, keys: Texts, schemas: Iterable[Mapping[str, Any]]) -> pa.Array:
        """Return which keys of records equal this key.

        Args:
            keys: JSON texts.
            schemas: The schemas with which keys are written in the form of Java's `toString`, if they are.
        """
        texts = set(self._java_texts(schemas))
        prefix = ""
        found: list[str] = []
        for text in pc.unique(keys).drop_null().to_pylist():
            if text.startswith(_SCHEMA):
                if not prefix or not text.startswith(prefix):
                    prefix = text[: _DECODER.raw_decode(text, len(_SCHEMA))[1]] + _PAYLOAD
                payload = text[len(prefix) : -1]
            else:
                payload = text
            if text in texts or _is_same(_DECODER.decode(payload), self.fields):
                found.append(text)
        return pc.is_in(keys, value_set=pa.array(found, pa.string()))

    def _java_texts(self, schemas: Iterable[Mapping[str, Any]]) -> Iterable[str]:
        written = with_numbers_as_written(self.text)
        for schema in schemas:
            if {one["field"] for one in schema["fields"]} == set(self.fields):
                yield json_text(string_text(schema, written))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true does not equal 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return first.keys() == second.keys() and all(_is_same(value, second[name]) for name, value in first.items())
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("Sequence[Any]", one), cast("Sequence[Any]", other)
        return len(items) == len(others) and all(map(_is_same, items, others))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
