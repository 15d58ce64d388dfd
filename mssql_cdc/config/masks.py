"""Mask rules: which columns `column.truncate…` and `column.mask…` hide, and how (FLT-06 … FLT-10).

`events/masking.py` applies them to values. Unlike in Debezium, propagating a source type never turns a mask off
(FLT-10): a value that must be hidden stays hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.property import GivenProperty
from mssql_cdc.config.report import Report, shown_name
from mssql_cdc.config.secret import Secret

_TEXT_TYPES = frozenset(
    {"char", "varchar", "nchar", "nvarchar", "text", "ntext", "sysname", "uniqueidentifier", "xml", "json"}
)
_STORED_AS_TEXT = frozenset({"sql_variant"})
"""Not a column in Debezium's records, but one in the lake."""
_BINARY_TYPES = frozenset({"binary", "varbinary", "image", "rowversion", "timestamp"})
_ALGORITHMS = (
    {"MD5": "md5", "SHA": "sha1", "SHA1": "sha1", "SHA-1": "sha1"}
    | {f"SHA-{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)}
    | {f"SHA3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)}
)
"""hashlib's names of the algorithms by their names in Java's MessageDigest."""

MaskKind = Literal["truncate", "fill", "hash"]
ParseRule = Callable[[GivenProperty, Report], "MaskRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRule:
    """What one `column.truncate…` or `column.mask…` property does to a value.

    `length` counts characters (`truncate`, `fill`); `algorithm` (hashlib's name), `salt` and `version` (1 or 2) are
    for `hash`. `name` is the property's name without a salt.
    """

    kind: MaskKind
    columns: PatternList
    length: int = 0
    algorithm: str = ""
    salt: Secret | None = None
    version: int = 2
    name: str = field(default="", compare=False)

    def applies_to(self, type_name: str) -> bool:
        """Whether values of this SQL Server type are changed at all; others pass through, as in Debezium.

        Columns of other types are reported wherever a table is added (`capture/notices.py`).
        """
        name = type_name.lower()
        return name in _TEXT_TYPES | _STORED_AS_TEXT or (self.kind == "truncate" and name in _BINARY_TYPES)


def length_rule(kind: MaskKind, least: int) -> ParseRule:
    """Return a parser of rules whose names contain a length."""

    def parse(one: GivenProperty, _: Report) -> MaskRule:
        (length,) = one.parts
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) < least:
            raise ValueError(f"found {length!r} as <n>, expected a whole number of at least {least}")
        columns = PatternList.parse(one.text)
        return MaskRule(kind=kind, columns=columns, length=int(length), name=shown_name(one.name))

    return parse


def hash_rule(version: int) -> ParseRule:
    """Return a parser of rules whose names contain an algorithm and a salt."""

    def parse(one: GivenProperty, _: Report) -> MaskRule:
        algorithm, salt = one.parts
        known = _ALGORITHMS.get(algorithm.upper())
        if known is None:
            raise ValueError(f"the algorithm {algorithm!r} is not known; use one of {', '.join(_ALGORITHMS)}")
        return MaskRule(
            kind="hash",
            columns=PatternList.parse(one.text),
            algorithm=known,
            salt=Secret(salt),
            version=version,
            name=shown_name(one.name),
        )

    return parse
