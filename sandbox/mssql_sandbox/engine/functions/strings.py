"""String functions: LEN, SUBSTRING, CHARINDEX, REPLACE, TRIM, STUFF, CONCAT, and others.

What does not belong here: LIKE of the language (patterns.py has its matcher).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.conversion_binary import encoder
from mssql_sandbox.engine.conversion_strings import join_units, utf16_length
from mssql_sandbox.engine.functions.definition import TEXT, Binder, Call, Registry, same_text, wide_text
from mssql_sandbox.engine.functions.patterns import pattern_index
from mssql_sandbox.engine.types import (
    BIGINT,
    BINARIES,
    INT,
    MAX,
    NATIONAL,
    STRINGS,
    SqlType,
    max_length,
    varchar,
)  # fmt: skip
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add
_LONGEST = 2**31 - 1
_MEMORY = 2**28
"""The longest text that one call creates; a real server has more memory, and the same error if it runs out."""


def _int_or_bigint(place: int) -> Callable[[Call], SqlType]:
    return lambda call: BIGINT if call.types[place].length == MAX else INT


@add("LEN", 1, result=_int_or_bigint(0))
def _len(call: Call) -> Callable[..., Any]:
    text = call.as_units(0)
    if call.types[0].name in BINARIES:
        return lambda value: len(value.rstrip(b" "))
    return lambda value: len(text(value).rstrip(" "))


@add("DATALENGTH", 1, result=_int_or_bigint(0))
def _datalength(call: Call) -> Callable[..., Any]:
    return byte_length(call.types[0])


def byte_length(type_: SqlType) -> Callable[[Any], int]:
    """Function from a value to the bytes it takes in storage."""
    name = type_.name
    if name in NATIONAL:
        return lambda value: 2 * utf16_length(value)
    if name in STRINGS:
        collation = type_.collation
        return lambda value: len(value) if value.isascii() or collation is None else len(collation.encode(value))
    if name in BINARIES:
        return len
    if name == "sql_variant":
        return lambda value: byte_length(value[0])(value[1])
    if name in {"decimal", "numeric"}:
        encode = encoder(type_)
        assert encode is not None
        return lambda _: max_length(type_)
    size = max_length(type_)
    return lambda _: size


@add("LOWER", 1, result=same_text())
def _lower(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)
    return lambda value: text(value).lower()


@add("UPPER", 1, result=same_text())
def _upper(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)
    # 'ß'.upper() is two letters in Python, one in SQL Server.
    return lambda value: "".join(c if len(c.upper()) > 1 else c.upper() for c in text(value))


def _trimmer(sides: str) -> Binder:
    def bind(call: Call) -> Callable[..., Any]:
        """TRIM(text), and TRIM(side characters FROM text), which the parser passes as TRIM(text, characters, side)."""
        text = call.as_text(0)

        def trim(value: Any, characters: str = " ", side: str = sides) -> str:
            found = text(value)
            if side != "TRAILING":
                found = found.lstrip(characters)
            return found if side == "LEADING" else found.rstrip(characters)

        return trim

    return bind


add("LTRIM", 1, 2, result=same_text(), takes={1: TEXT})(_trimmer("LEADING"))
add("RTRIM", 1, 2, result=same_text(), takes={1: TEXT})(_trimmer("TRAILING"))
add("TRIM", 1, 3, result=same_text(), takes={1: TEXT})(_trimmer("BOTH"))


@add("LEFT", 2, result=same_text())
def _left(call: Call) -> Callable[..., Any]:
    text, count = call.as_units(0), call.to(1, BIGINT)

    def left(value: Any, length: Any) -> str:
        wanted = count(length)
        if wanted < 0:
            raise error(537)
        return join_units(text(value)[:wanted])

    return left


@add("RIGHT", 2, result=same_text())
def _right(call: Call) -> Callable[..., Any]:
    text, count = call.as_units(0), call.to(1, BIGINT)

    def right(value: Any, length: Any) -> str:
        wanted = count(length)
        if wanted < 0:
            raise error(536, function="RIGHT")
        return join_units(text(value)[-wanted:]) if wanted else ""

    return right


def _substring_type(call: Call) -> SqlType:
    type_ = call.types[0]
    if type_.name in BINARIES:
        return SqlType("varbinary", MAX if type_.name == "image" else type_.length or 8)
    return same_text()(call)


@add("SUBSTRING", 3, result=_substring_type)
def _substring(call: Call) -> Callable[..., Any]:
    binary = call.types[0].name in BINARIES
    text = (lambda value: value) if binary else call.as_units(0)
    whole: Callable[[Any], Any] = (lambda part: part) if binary else join_units
    first, count = call.to(1, BIGINT), call.to(2, BIGINT)

    def substring(value: Any, start: Any, length: Any) -> Any:
        begin, wanted = first(start) - 1, count(length)
        if wanted < 0:
            raise error(537)
        return whole(text(value)[max(0, begin) : max(0, begin + wanted)])

    return substring


@add("CHARINDEX", 2, 3, result=_int_or_bigint(1))
def _charindex(call: Call) -> Callable[..., Any]:
    needle, hay = call.as_units(0), call.as_units(1)
    fold = folder(call)
    first = call.to(2, BIGINT) if len(call.types) > 2 else None

    def charindex(part: Any, whole: Any, start: Any = 1) -> int:
        begin = max(0, (first(start) if first else 1) - 1)
        return fold(hay(whole)).find(fold(needle(part)), begin) + 1 if needle(part) else 0

    return charindex


def folder(call: Call) -> Callable[[str], str]:
    """Length-keeping case folding by the collation of the call's string arguments."""
    collation = next((t.collation for t in call.types if t.collation is not None), call.collation)
    if collation is None or collation.case_sensitive:
        return lambda text: text
    return lambda text: (
        text.lower() if text.isascii() else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    )


@add("PATINDEX", 2, result=_int_or_bigint(1))
def _patindex(call: Call) -> Callable[..., Any]:
    pattern, hay = call.as_units(0), call.as_units(1)
    collation = next((t.collation for t in call.types if t.collation is not None), call.collation)
    return lambda part, whole: pattern_index(pattern(part), hay(whole), collation)


@add("REPLACE", 3, result=lambda call: wide_text(call, 0, 1, 2))
def _replace(call: Call) -> Callable[..., Any]:
    whole, old, new = call.as_text(0), call.as_text(1), call.as_text(2)
    fold = folder(call)

    def replace(value: Any, part: Any, by: Any) -> str:
        text, wanted, other = whole(value), old(part), new(by)
        if not wanted:
            return text
        folded, key = fold(text), fold(wanted)
        out, place = [], 0
        while (at := folded.find(key, place)) >= 0:
            out += (text[place:at], other)
            place = at + len(key)
        return "".join((*out, text[place:]))

    return replace


@add("TRANSLATE", 3, result=same_text())
def _translate(call: Call) -> Callable[..., Any]:
    whole, old, new = call.as_text(0), call.as_text(1), call.as_text(2)

    def translate(value: Any, characters: Any, others: Any) -> str:
        source, target = old(characters), new(others)
        if len(source) != len(target):
            raise error(9828)
        return whole(value).translate({ord(a): b for a, b in reversed(list(zip(source, target, strict=True)))})

    return translate


@add("REPLICATE", 2, result=lambda call: wide_text(call, 0))
def _replicate(call: Call) -> Callable[..., Any]:
    text, count = call.as_text(0), call.to(1, BIGINT)
    type_ = wide_text(call, 0)

    def replicate(value: Any, times: Any) -> str | None:
        wanted = count(times)
        if wanted < 0:
            return None
        part = text(value)
        if type_.length != MAX:
            return (part * min(wanted, type_.length))[: type_.length]
        if len(part) * wanted > _LONGEST:
            raise error(7119, size=_LONGEST)
        if len(part) * wanted > _MEMORY:
            raise error(701, pool="default")
        return part * wanted

    return replicate


@add("REVERSE", 1, result=same_text())
def _reverse(call: Call) -> Callable[..., Any]:
    text = call.as_units(0)
    return lambda value: join_units(text(value)[::-1])


@add("SPACE", 1, result=varchar(8000))
def _space(call: Call) -> Callable[..., Any]:
    count = call.to(0, BIGINT)
    return lambda value: None if count(value) < 0 else " " * min(8000, count(value))


@add("STUFF", 4, result=lambda call: wide_text(call, 0, 3), null_if_null=False)
def _stuff(call: Call) -> Callable[..., Any]:
    whole, new = call.as_units(0), call.as_text(3)
    first, count = call.to(1, BIGINT), call.to(2, BIGINT)

    def stuff(value: Any, start: Any, length: Any, part: Any) -> str | None:
        if value is None or start is None or length is None:
            return None
        text, begin, wanted = whole(value), first(start), count(length)
        if begin < 1 or wanted < 0 or begin > len(text):
            return None
        return join_units(text[: begin - 1] + ("" if part is None else new(part)) + text[begin - 1 + wanted :])

    return stuff


def _concat_type(call: Call) -> SqlType:
    places = range(len(call.types))
    types = [call.text_type(place) for place in places]
    if any(type_.length == MAX for type_ in types):
        return wide_text(call, *places, length=MAX)
    national = any(type_.name in NATIONAL for type_ in types)
    return wide_text(call, *places, length=min(sum(t.length for t in types) or 1, 4000 if national else 8000))


@add("CONCAT", 2, 254, result=_concat_type, null_if_null=False)
def _concat(call: Call) -> Callable[..., Any]:
    parts = [call.as_text(place) for place in range(len(call.types))]
    return lambda *values: "".join(part(value) for part, value in zip(parts, values, strict=True) if value is not None)


@add("CONCAT_WS", 3, 254, result=_concat_type, null_if_null=False)
def _concat_ws(call: Call) -> Callable[..., Any]:
    parts = [call.as_text(place) for place in range(len(call.types))]

    def concat_ws(separator: Any, *values: Any) -> str:
        between = "" if separator is None else parts[0](separator)
        return between.join(p(v) for p, v in zip(parts[1:], values, strict=True) if v is not None)

    return concat_ws
