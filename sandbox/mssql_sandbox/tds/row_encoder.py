"""Row encoders: Python functions compiled per result schema, from the expressions of type_codecs.py.

A generated function is about three times as fast as closures per cell, and this is the hot path of every large read.
Rows with a NULL are sent as NBCROW, all others as ROW. Many rows are encoded in blocks (block_encoder.py), a few row by
row.
"""

import codecs
import decimal
import functools
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from operator import is_

from mssql_sandbox.engine import types
from mssql_sandbox.engine.collation import encoder
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.block_encoder import NBC_ROW, ROW, BlockEncoder, BlockSource
from mssql_sandbox.tds.collations import collation_bytes, default_collation
from mssql_sandbox.tds.type_codecs import (
    NULLS,
    Frame,
    LengthTable,
    codec_of,
    declared_bytes,
    narrow_name,
    write_parts,
    write_pointer,
)

_FIRST_ROWS, _MOST_ROWS = 16, 256
_BLOCK_BYTES = 64 * 1024
_FEW_ROWS = 8  # below this, a block costs more than its rows

# Base types inside a sql_variant have the codes of the types that cannot be NULL.
_VARIANT_TOKENS: Mapping[str, int] = {
    "tinyint": 0x30, "bit": 0x32, "smallint": 0x34, "int": 0x38, "bigint": 0x7F, "real": 0x3B, "float": 0x3E,
    "money": 0x3C, "smallmoney": 0x7A, "datetime": 0x3D, "smalldatetime": 0x3A,
}  # fmt: skip


class RowEncoder:
    """Encodes the rows of one schema; remembers which columns had NULLs."""

    def __init__(self, schema: tuple[SqlType, ...]) -> None:
        self._schema = schema
        self._environment = _environment(schema)
        self._nullable: frozenset[int] = frozenset()
        self._by_rows: Callable[[Sequence[tuple]], bytes] | None = None
        self._by_columns: BlockEncoder | None = None

    def __call__(self, rows: Iterator[tuple], out: bytearray, limit: int) -> bool:
        """Append blocks of rows until `out` holds `limit` bytes; True when the rows are used up."""
        count = _FIRST_ROWS
        while block := list(islice(rows, count)):
            data = self._encode_few(block) if len(block) < _FEW_ROWS else self._encode_block(block)
            out += data
            if len(block) < count:
                return True
            if len(out) >= limit:
                return False
            count = max(1, min(_MOST_ROWS, count * _BLOCK_BYTES // len(data)))
        return True

    def _encode_few(self, rows: Sequence[tuple]) -> bytes:
        if self._by_rows is None:
            self._by_rows = _compiled(row_encoder_source(self._schema), self._environment)
        return self._by_rows(rows)

    def _encode_block(self, rows: Sequence[tuple]) -> bytes:
        encode = self._by_columns or self._compile_block()
        try:
            return encode(rows)
        except (TypeError, AttributeError, struct.error):
            # No expression accepts a NULL. Looking for NULLs beforehand would cost as much as encoding.
            known = self._nullable
            self._nullable |= {place for place, cells in enumerate(zip(*rows, strict=True)) if None in cells}
            if self._nullable == known:
                raise
        return self._compile_block()(rows)

    def _compile_block(self) -> BlockEncoder:
        source = BlockSource(self._schema, self._nullable)
        packers = {f"pack{number}": packer.pack for number, packer in enumerate(source.structs)}
        environment = {**self._environment, **packers, "heads": source.heads}
        self._by_columns = encode = _compiled(source.text(), environment)
        return encode


def _compiled(source: str, environment: Mapping[str, object]) -> Callable[[Sequence[tuple]], bytes]:
    namespace: dict[str, object] = dict(environment)
    exec(compile(source, "<row encoder>", "exec"), namespace)  # noqa: S102 - our own source
    return namespace["encode"]  # type: ignore[return-value]


@functools.lru_cache(maxsize=1024)
def row_encoder(schema: tuple[SqlType, ...]) -> RowEncoder:
    """The encoder of rows of these types; cached, because compiling one takes milliseconds."""
    return RowEncoder(schema)


def row_encoder_source(schema: tuple[SqlType, ...]) -> str:
    """Python source of the encoder."""
    names = [f"v{position}" for position in range(len(schema))]
    cells = [_expression(type_, name) for type_, name in zip(schema, names, strict=True)]
    optional = [f"b'' if {name} is None else {cell}" for name, cell in zip(names, cells, strict=True)]
    # One expression per byte: a single one over a thousand columns nests too deep for Python's compiler.
    groups = [names[start : start + 8] for start in range(0, len(names), 8)]
    bitmap = ", ".join(" | ".join(f"({n} is None) << {bit}" for bit, n in enumerate(group)) for group in groups)
    return f"""\
def encode(rows):
    out = bytearray()
    for {", ".join(names)}, in rows:
        if {" or ".join(f"{name} is None" for name in names)}:
            out += join(({NBC_ROW!r}, bytes(({bitmap},)),
                {", ".join(optional)}))
        else:
            out += join(({ROW!r}, {", ".join(cells)}))
    return out
"""


@functools.lru_cache(maxsize=1024)
def value_encoder(type_: SqlType) -> Callable[[object], bytes]:
    """The encoder of single framed values that are not NULL."""
    source = f"def encode(v):\n    return {_expression(type_, 'v')}\n"
    namespace: dict[str, object] = dict(_environment((type_,)))
    exec(compile(source, f"<value encoder of {type_.name}>", "exec"), namespace)  # noqa: S102 - our own source
    return namespace["encode"]  # type: ignore[return-value]


def encode_value(value: object, type_: SqlType) -> bytes:
    """One framed value, NULL included."""
    if value is None:
        return NULLS[codec_of(type_).frame(type_)]
    return value_encoder(type_)(value)


def encode_variant(value: tuple[SqlType, object]) -> bytes:
    """A sql_variant: base type, its properties, then the value without its frame."""
    type_, inner = value
    if inner is None:
        return NULLS[Frame.VARIANT]
    codec = codec_of(type_)
    frame = codec.frame(type_)
    if frame not in {Frame.BYTE, Frame.SHORT}:
        raise ValueError(f"{type_} cannot be inside a sql_variant")
    data = value_encoder(type_)(inner)[1 if frame is Frame.BYTE else 2 :]
    properties = _variant_properties(type_)
    token = _VARIANT_TOKENS.get(type_.name, codec.token)
    head = bytes((token, len(properties))) + properties
    return (len(head) + len(data)).to_bytes(4, "little") + head + data


def _variant_properties(type_: SqlType) -> bytes:
    name = type_.name
    if name in types.STRINGS:
        return collation_bytes(type_.collation) + declared_bytes(type_).to_bytes(2, "little")
    if name in types.BINARIES:
        return declared_bytes(type_).to_bytes(2, "little")
    if name in types.EXACT:
        return bytes((type_.precision, type_.scale))
    return bytes((type_.scale,)) if name in types.SCALED_TIMES else b""


def _expression(type_: SqlType, name: str) -> str:
    """The codec's expression with `v` renamed to another variable, in parentheses."""
    source = codec_of(type_).encode(type_)
    return f"({_VARIABLE.sub(name, source)})"


_WIDE = decimal.Context(prec=80)
_VARIABLE = re.compile(r"\bv\b")


@functools.cache
def _lengths(maximum: int) -> LengthTable:
    return LengthTable(maximum)


def _environment(schema: tuple[SqlType, ...]) -> Mapping[str, object]:
    narrow = {narrow_name(t): t.collation or default_collation() for t in schema if t.name in types.SINGLE_BYTE}
    sized = {t for t in schema if codec_of(t).frame(t) is Frame.SHORT}
    return {
        "join": b"".join,
        "utf16": codecs.utf_16_le_encode,
        "scaleb": _WIDE.scaleb,
        "multiply": _WIDE.multiply,
        "trunc": decimal.Decimal.__trunc__,
        "power": lambda scale: decimal.Decimal(10**scale),
        "repeat": repeat,
        "is_": is_,
        "one_byte": tuple(bytes((1, value)) for value in range(256)),
        "int16": struct.Struct("<Bh").pack,
        "int32": struct.Struct("<Bi").pack,
        "int64": struct.Struct("<Bq").pack,
        "float32": struct.Struct("<Bf").pack,
        "float64": struct.Struct("<Bd").pack,
        "days_ticks": struct.Struct("<BiI").pack,
        "days_minutes": struct.Struct("<BHH").pack,
        "parts": write_parts,
        "pointer": write_pointer,
        "variant": encode_variant,
        **{f"lengths{declared_bytes(type_)}": _lengths(declared_bytes(type_)) for type_ in sized},
        **{name: encoder(collation.code_page) for name, collation in narrow.items()},
    }
