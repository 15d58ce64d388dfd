"""Functions on values of any type: NULL handling, choice, hashes, checksums, ids, sql_variant, compression.

What does not belong here: CASE, COALESCE and CAST, which are syntax of the language.
"""

from __future__ import annotations

import gzip
import hashlib
import uuid
import zlib
from collections.abc import Callable
from functools import reduce
from typing import Any

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.comparison import comparison_keys, sort_key
from mssql_sandbox.engine.conversion_binary import encoder
from mssql_sandbox.engine.functions.definition import TEXT, Call, Registry, refuse
from mssql_sandbox.engine.functions.strings import byte_length
from mssql_sandbox.engine.precedence import promote
from mssql_sandbox.engine.types import (
    INT,
    LEGACY_LOBS,
    MAX,
    MONEY,
    NUMBERS,
    SQL_VARIANT,
    STRINGS,
    UNIQUEIDENTIFIER,
    SqlType,
    max_length,
    reported_name,
    sysname,
    varbinary,
)  # fmt: skip
from mssql_sandbox.errors import SqlError

registry = Registry()
add = registry.add


@add("ISNULL", 2, result=lambda call: call.types[0], null_if_null=False)
def _isnull(call: Call) -> Callable[..., Any]:
    other = call.to(1, call.types[0])
    return lambda value, instead: value if value is not None else None if instead is None else other(instead)


def common_type(call: Call, first: int = 0) -> SqlType:
    """The type that all arguments from `first` on are promoted to."""
    return reduce(promote, call.types[first:])


@add("COALESCE", 2, None, result=common_type, null_if_null=False)
def _coalesce(call: Call) -> Callable[..., Any]:
    type_ = common_type(call)
    parts = [call.to(place, type_) for place in range(len(call.types))]
    return lambda *values: next(
        (part(value) for part, value in zip(parts, values, strict=True) if value is not None), None
    )


@add("NULLIF", 2, result=lambda call: call.types[0], null_if_null=False)
def _nullif(call: Call) -> Callable[..., Any]:
    keys = [key or (lambda value: value) for key in comparison_keys(*call.types)]

    def nullif(value: Any, other: Any) -> Any:
        if value is None or other is None:
            return value
        return None if keys[0](value) == keys[1](other) else value

    return nullif


@add("CHOOSE", 2, None, result=lambda call: common_type(call, 1), null_if_null=False)
def _choose(call: Call) -> Callable[..., Any]:
    number = call.to(0, INT)
    type_ = common_type(call, 1)
    parts = [call.to(place, type_) for place in range(1, len(call.types))]

    def choose(place: Any, *values: Any) -> Any:
        at = 0 if place is None else number(place)
        if not 1 <= at <= len(values) or values[at - 1] is None:
            return None
        return parts[at - 1](values[at - 1])

    return choose


def _extreme(*, greatest: bool) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        type_ = common_type(call)
        key = sort_key(type_) or (lambda value: value)
        parts = [call.to(place, type_) for place in range(len(call.types))]

        def extreme(*values: Any) -> Any:
            found = [part(value) for part, value in zip(parts, values, strict=True) if value is not None]
            if not found:
                return None
            return max(found, key=key) if greatest else min(found, key=key)

        return extreme

    return bind


add("GREATEST", 1, 254, result=common_type, null_if_null=False)(_extreme(greatest=True))
add("LEAST", 1, 254, result=common_type, null_if_null=False)(_extreme(greatest=False))


@add("ISNUMERIC", 1, result=INT, null_if_null=False)
def _isnumeric(call: Call) -> Callable[..., Any]:
    type_ = call.types[0]
    if type_.name in NUMBERS:
        return lambda value: int(value is not None)
    if type_.name not in STRINGS:
        return lambda _: 0

    def isnumeric(value: Any) -> int:
        if value is None or not value.strip():
            return 0
        if value.strip() in {"+", "-", ".", "$", ","}:
            return 1
        for parse in (parsing.parse_float, parsing.parse_money):
            try:
                parse(value)
            except ValueError:
                continue
            return 1
        return 0

    return isnumeric


@add("NEWID", 0, result=UNIQUEIDENTIFIER, deterministic=False)
def _newid(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    return uuid.uuid4


@add("NEWSEQUENTIALID", 0, result=UNIQUEIDENTIFIER, deterministic=False)
def _newsequentialid(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    return uuid.uuid1


@add("GETANSINULL", 0, 1, result=SqlType("smallint", precision=5))
def _getansinull(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    return lambda *_: 1


_HASHES = {
    "MD2": "",
    "MD4": "md4",
    "MD5": "md5",
    "SHA": "sha1",
    "SHA1": "sha1",
    "SHA2_256": "sha256",
    "SHA2_512": "sha512",
}


@add("HASHBYTES", 2, result=varbinary(8000), takes={0: TEXT})
def _hashbytes(call: Call) -> Callable[..., Any]:
    encode = encoder(call.types[1])
    if encode is None or call.types[1].name in NUMBERS:
        refuse(call, 1, "hashbytes")

    def hashbytes(algorithm: Any, value: Any) -> bytes | None:
        name = _HASHES.get(algorithm.upper())
        if not name:
            return None
        assert encode is not None
        return hashlib.new(name, encode(value), usedforsecurity=False).digest()

    return hashbytes


def _checksum(*, folded: bool) -> Callable[[Call], Callable[..., Any]]:
    """CHECKSUM by comparison keys (equal values, equal sums), BINARY_CHECKSUM by bytes; not SQL Server's sums."""

    def bind(call: Call) -> Callable[..., Any]:
        functions = []
        for type_ in call.types:
            own = sort_key(type_) if folded else None
            encode = encoder(type_)
            functions.append(
                own if own is not None and type_.name in STRINGS else encode or (lambda v: str(v).encode())
            )

        def checksum(*values: Any) -> int:
            total = 0
            for function, value in zip(functions, values, strict=True):
                data = b"\x00" if value is None else function(value)
                raw = data.encode("utf-16-le", "surrogatepass") if isinstance(data, str) else data
                for byte in raw:
                    total = ((total << 4 | total >> 28) ^ byte) & 0xFFFFFFFF
            return total - 2**32 if total >= 2**31 else total

        return checksum

    return bind


add("CHECKSUM", 1, None, result=INT, null_if_null=False)(_checksum(folded=True))
add("BINARY_CHECKSUM", 1, None, result=INT, null_if_null=False)(_checksum(folded=False))


@add("COMPRESS", 1, result=varbinary(MAX))
def _compress(call: Call) -> Callable[..., Any]:
    encode = encoder(call.types[0])
    if encode is None:
        refuse(call, 0, "COMPRESS")
    return lambda value: gzip.compress(encode(value), mtime=0)  # type: ignore[misc]


@add("DECOMPRESS", 1, result=varbinary(MAX), takes={0: varbinary(MAX)})
def _decompress(_call: Call) -> Callable[..., Any]:
    def decompress(value: Any) -> bytes:
        try:
            return gzip.decompress(value)
        except (OSError, EOFError, zlib.error):
            raise SqlError(50000, "The argument of DECOMPRESS is not in GZIP format.") from None

    return decompress


@add("SQL_VARIANT_PROPERTY", 2, result=SQL_VARIANT, takes={1: TEXT})
def _sql_variant_property(call: Call) -> Callable[..., Any]:
    whole = call.to(0, SQL_VARIANT) if call.types[0].name != "sql_variant" else None

    def variant_property(value: Any, name: Any) -> Any:
        type_, content = whole(value) if whole is not None else value
        found: dict[str, Any] = {
            "basetype": reported_name(type_), "precision": type_.precision, "scale": type_.scale,
            "totalbytes": byte_length(type_)(content) + 2, "maxlength": max_length(type_),
            "collation": type_.collation.name if type_.collation else None,
        }  # fmt: skip
        result = found.get(name.lower())
        if result is None:
            return None
        return (sysname() if isinstance(result, str) else INT, result)

    return variant_property


__all__ = ["LEGACY_LOBS", "MONEY", "common_type", "registry"]
