"""Column masks as pure functions (features FLT-06 … FLT-10).

A rule says what happens to one value; which columns it is for is decided by name, as in Debezium. When masks are
applied is the business of `events/`. Propagating a source type never switches a mask off here, as it would in
Debezium (FLT-10): a value that was to be hidden stays hidden.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.secret import Secret

CHARACTER_TYPES = frozenset(
    {"char", "varchar", "nchar", "nvarchar", "text", "ntext", "sysname", "uniqueidentifier", "xml"}
)
BINARY_TYPES = frozenset({"binary", "varbinary", "image", "rowversion", "timestamp"})

# Java's MessageDigest names -> hashlib's.
ALGORITHMS = {
    "MD5": "md5",
    "SHA": "sha1",
    "SHA1": "sha1",
    "SHA-1": "sha1",
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA3-224": "sha3_224",
    "SHA3-256": "sha3_256",
    "SHA3-384": "sha3_384",
    "SHA3-512": "sha3_512",
}

MaskKind = Literal["truncate", "fill", "hash"]
_KIND_ORDER: tuple[MaskKind, ...] = ("truncate", "fill", "hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRule:
    """What one `column.truncate…` or `column.mask…` property does to a value.

    `length` counts characters (`truncate`, `fill`); `algorithm` (a Java name), `salt` and `version` (1 or 2) are for
    `hash`.
    """

    kind: MaskKind
    columns: PatternList
    length: int = 0
    algorithm: str = ""
    salt: Secret | None = None
    version: int = 2

    def applies_to(self, type_name: str) -> bool:
        """Whether values of this SQL Server type are changed at all; others pass through, as in Debezium."""
        name = type_name.lower()
        return name in CHARACTER_TYPES or (self.kind == "truncate" and name in BINARY_TYPES)

    def apply(self, value: str | None, *, column_length: int | None = None) -> str | None:
        """The masked text. `column_length`: declared characters, None when unknown or (max)."""
        if self.kind == "fill":
            return "*" * self.length
        if value is None:
            return None
        if self.kind == "truncate":
            return value[: self.length]
        digest = self._digest(value)
        return digest[:column_length] if column_length is not None and column_length > 0 else digest

    def apply_bytes(self, value: bytes | None) -> bytes | None:
        """The truncated bytes; only `truncate` rules concern binary columns."""
        if value is None or self.kind != "truncate":
            return value
        return value[: self.length]

    def _digest(self, value: str) -> str:
        digest = hashlib.new(ALGORITHMS[self.algorithm.upper()], usedforsecurity=False)
        digest.update((self.salt.read() if self.salt else "").encode())
        digest.update(java_serialized(value) if self.version == 1 else value.encode(errors="replace"))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class MaskRules:
    """All masks of a connector: the first rule in Debezium's order of kinds wins."""

    rules: tuple[MaskRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)

    def mask_for(self, catalog: str, schema: str, table: str, column: str) -> MaskRule | None:
        """The rule of a column, by `schema.table.column` or `db.schema.table.column`, or None."""
        name = f"{schema}.{table}.{column}"
        for rule in self.rules:
            if rule.columns.matches(name) or rule.columns.matches(f"{catalog}.{name}"):
                return rule
        return None


def ordered(rules: list[MaskRule]) -> MaskRules:
    """The rules in Debezium's order: truncate, fill, hash v1, hash v2; else as configured."""
    return MaskRules(tuple(sorted(rules, key=lambda rule: (_KIND_ORDER.index(rule.kind), rule.version))))


def java_serialized(value: str) -> bytes:
    """What Java's ObjectOutputStream writes for a String: version 1 of the hash covers these bytes."""
    body = _modified_utf8(value)
    if len(body) <= 0xFFFF:
        return b"\xac\xed\x00\x05\x74" + len(body).to_bytes(2, "big") + body
    return b"\xac\xed\x00\x05\x7c" + len(body).to_bytes(8, "big") + body


def _modified_utf8(value: str) -> bytes:
    """UTF-8 with NUL as C0 80 and every UTF-16 surrogate on its own (JVM specification 4.4.7)."""
    if value.isascii() and "\0" not in value:
        return value.encode("ascii")
    units = value.encode("utf-16-be", "surrogatepass")
    characters = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in characters)
