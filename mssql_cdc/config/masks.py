"""Column masks as rules (features FLT-06 … FLT-10).

A rule says which columns it is for, by name, as in Debezium, and what happens to their values; `events/masks.py`
applies it. Propagating a source type never switches a mask off here, as it would in
Debezium (FLT-10): a value that was to be hidden stays hidden.
"""

from __future__ import annotations

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

    `length` counts characters (`truncate`, `fill`); `algorithm` (hashlib's name), `salt` and `version` (1 or 2)
    are for `hash`.
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
