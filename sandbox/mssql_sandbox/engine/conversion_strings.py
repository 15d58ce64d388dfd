"""Conversion to character types and to uniqueidentifier: styles, truncation, padding, code pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.text import binary_text, to_text
from mssql_sandbox.engine.types import (
    APPROXIMATE,
    BINARIES,
    EXACT,
    INTEGERS,
    MAX,
    MONEY,
    NATIONAL,
    STRINGS,
    UDTS,
    SqlType,
    reported_name,
)  # fmt: skip
from mssql_sandbox.engine.xml.storing import to_xml
from mssql_sandbox.errors import error

Converter = Callable[[Any], Any]


def to_string(source: SqlType, target: SqlType, style: int | None) -> Converter | None:
    """The function to a character type: text in the style, then truncated, padded and converted to the code page."""
    if source.name in UDTS:
        return None
    if target.name == "xml" and source.name != "xml":
        return to_xml(source, style)
    fit = fitter(target)
    if source.name in STRINGS:
        return fit
    if source.name in BINARIES:
        return _from_binary(source, target, style, fit)
    if source.name in INTEGERS | EXACT | MONEY | APPROXIMATE:
        return _from_number(source, target, style)
    if source.name == "uniqueidentifier":

        def guid(value: Any) -> str:
            if target.length != MAX and target.length < 36:
                raise error(8170)
            return fit(str(value).upper())

        return guid
    return lambda value: fit(to_text(value, source, style))


def fitter(target: SqlType) -> Callable[[str], str]:
    """The function that truncates text to the type's length, pads char and nchar, and applies varchar's code page."""
    length = target.length
    collation = target.collation
    fixed = target.name in {"char", "nchar"}
    if target.name in NATIONAL:
        if length == MAX:
            return lambda text: text
        return lambda text: _pad(cut_utf16(text, length), length, fixed=fixed)
    if collation is None:
        if length == MAX:
            return lambda text: text
        return (lambda text: text[:length].ljust(length)) if fixed else (lambda text: text[:length])

    def narrow(text: str) -> str:
        if not text.isascii():
            if collation.multi_byte:
                return _cut_bytes(text, length, collation, fixed=fixed)
            kept = collation.to_code_page(text)
            text = text if kept == text else kept  # many rows may share one text
        if length != MAX and len(text) > length:
            text = text[:length]
        return text.ljust(length) if fixed else text

    return narrow


def _pad(text: str, length: int, *, fixed: bool) -> str:
    if not fixed:
        return text
    missing = length - utf16_length(text)
    return text + " " * missing if missing > 0 else text


def utf16_length(text: str) -> int:
    """Length in UTF-16 units: what n(var)char lengths count."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


def split_units(text: str) -> str:
    """The text with each supplementary character as two surrogates: the units that collations without _SC count."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(c if c <= "\uffff" else _surrogates(c) for c in text)


def _surrogates(character: str) -> str:
    number = ord(character) - 0x10000
    return chr(0xD800 + (number >> 10)) + chr(0xDC00 + (number & 0x3FF))


def join_units(text: str) -> str:
    """The text with pairs of surrogates joined to one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def cut_utf16(text: str, length: int) -> str:
    """The first `length` UTF-16 units; a supplementary character that would be split is dropped."""
    if len(text) * 2 <= length or text.isascii():
        return text if len(text) <= length else text[:length]
    if utf16_length(text) <= length:
        return text
    units = 0
    for place, character in enumerate(text):
        units += 1 + (character > "\uffff")
        if units > length:
            return text[:place]
    return text


def _cut_bytes(text: str, length: int, collation: Any, *, fixed: bool) -> str:
    data = collation.encode(text)
    if length != MAX and len(data) > length:
        data = data[:length]
    # A character whose bytes were split is lost.
    text = data.decode(collation.codec, "ignore")
    return text + " " * (length - len(data)) if fixed else text


def _from_number(source: SqlType, target: SqlType, style: int | None) -> Converter:
    limit = target.length
    fixed = target.name in {"char", "nchar"}
    national = target.name in NATIONAL
    shown = "numeric" if source.name in EXACT else "expression" if national or source.name in INTEGERS else source.name

    def convert(value: Any) -> str:
        text = to_text(value, source, style)
        if limit not in {MAX, 0} and len(text) > limit:
            # Integers that do not fit varchar become an asterisk; everything else is an error.
            if source.name in APPROXIMATE:
                raise error(232, type=reported_name(target), value=f"{value:.6f}")
            if source.name not in {"int", "smallint", "tinyint"} or national:
                raise error(8115, source=shown, target=reported_name(target))
            text = "*"
        return text.ljust(limit) if fixed else text

    return convert


def _from_binary(source: SqlType, target: SqlType, style: int | None, fit: Callable[[str], str]) -> Converter | None:
    style = style or 0
    if style not in {0, 1, 2}:
        raise error(281, style=style, source=reported_name(source))
    if target.name in {"text", "ntext"}:
        return None
    if target.name in NATIONAL:
        return lambda value: fit(binary_text(value, style, _utf16))
    collation = target.collation

    def decode(data: bytes) -> str:
        return data.decode("latin-1") if collation is None else collation.decode(data)

    return lambda value: fit(binary_text(value, style, decode))


def _utf16(data: bytes) -> str:
    return (data + b"\x00" * (len(data) % 2)).decode("utf-16-le", "surrogatepass")


def to_guid(source: SqlType) -> Converter | None:
    """The function to uniqueidentifier."""
    if source.name == "uniqueidentifier":
        return lambda value: value
    if source.name not in STRINGS:
        return None

    def convert(value: str) -> Any:
        try:
            return parsing.parse_guid(value)
        except ValueError:
            raise error(8169) from None

    return convert
