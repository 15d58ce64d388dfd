"""Debezium's column masks: hash, asterisks, truncation (FLT-06 to FLT-10), on Arrow arrays.

`config/` decides which column has which mask; this module applies masks to values. A mask that reaches a column whose
values it cannot hide is an error: ignoring it would store them unmasked.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config.masks import MaskRule
from mssql_cdc.errors import SchemaError
from mssql_cdc.schema.types import SqlServerType

_JAVA_STRING_HEADER = b"\xac\xed\x00\x05"
_SUPPLEMENTARY = r"[\x{10000}-\x{10FFFF}]"
_JAVA_SHORT, _JAVA_LONG = b"\x74", b"\x7c"


@dataclass(frozen=True, slots=True)
class StarMask:
    """`column.mask.with.<n>.chars`: every value, even NULL, becomes `length` asterisks."""

    length: int

    def apply(self, values: pa.Array, sql_type: SqlServerType) -> pa.Array:
        """The masked values."""
        _require_text(values, sql_type)
        return pa.repeat(pa.scalar("*" * self.length), len(values))


@dataclass(frozen=True, slots=True)
class Truncate:
    """`column.truncate.to.<n>.chars`: strings cut to `length` UTF-16 units, binary values to `length` bytes."""

    length: int

    def apply(self, values: pa.Array, sql_type: SqlServerType) -> pa.Array:
        """The shortened values; NULL stays NULL."""
        if pa.types.is_binary(values.type):
            return pc.binary_slice(values, 0, self.length)
        _require_text(values, sql_type)
        # All other texts have the same length in Java, so only these need the slow path.
        wide = pc.match_substring_regex(values, _SUPPLEMENTARY)
        cut = pc.utf8_slice_codeunits(values, 0, self.length)
        if not pc.any(wide).as_py():
            return cut
        return pa.array([None if v is None else _cut_utf16(v, self.length) for v in values.to_pylist()], values.type)


@dataclass(frozen=True, slots=True)
class HashMask:
    """`column.mask.hash[.v2].<algorithm>.with.salt.<salt>`: hex digest, truncated to the column's length.

    Version 1 hashes the string as Java serializes it, version 2 its UTF-8 bytes; the salt comes first in both.
    """

    algorithm: str
    salt: str
    version: int = 1

    def apply(self, values: pa.Array, sql_type: SqlServerType) -> pa.Array:
        """The digests; NULL stays NULL. Each distinct value is hashed once."""
        _require_text(values, sql_type)
        encoded = values.dictionary_encode()
        length = sql_type.jdbc_length
        digests = pa.array([self._digest(text)[:length] for text in encoded.dictionary.to_pylist()], pa.string())
        return digests.take(encoded.indices)

    def _digest(self, text: str) -> str:
        name = self.algorithm.replace("-", "").lower()
        body = text.encode() if self.version == 2 else _java_serialised(text)
        return hashlib.new(name, self.salt.encode() + body, usedforsecurity=False).hexdigest()


Mask = StarMask | Truncate | HashMask


def mask_of(rule: MaskRule) -> Mask:
    """The mask of a rule; this resolves its salt (raises MissingSecretError)."""
    if rule.kind == "fill":
        return StarMask(rule.length)
    if rule.kind == "truncate":
        return Truncate(rule.length)
    return HashMask(rule.algorithm, rule.salt.read() if rule.salt else "", rule.version)


def _require_text(values: pa.Array, sql_type: SqlServerType) -> None:
    if not pa.types.is_string(values.type):
        raise SchemaError(f"A column of type {sql_type.declaration} cannot be masked: its values are no text")


def _cut_utf16(text: str, units: int) -> str:
    # Truncating within a surrogate pair would leave half a character, which no Arrow string can contain: drop it.
    return text.encode("utf-16-le")[: units * 2].decode("utf-16-le", errors="ignore")


def _java_serialised(text: str) -> bytes:
    body = _modified_utf8(text)
    if len(body) < 2**16:
        return _JAVA_STRING_HEADER + _JAVA_SHORT + struct.pack(">H", len(body)) + body
    return _JAVA_STRING_HEADER + _JAVA_LONG + struct.pack(">Q", len(body)) + body


def _modified_utf8(text: str) -> bytes:
    """Java's modified UTF-8: NUL in two bytes, supplementary characters as two three-byte surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    if max(text, default="") < "\x80" and "\x00" not in text:
        return text.encode()
    out = bytearray()
    for (unit,) in struct.iter_unpack(">H", units):
        out += b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
    return bytes(out)
