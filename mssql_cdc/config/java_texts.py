"""Texts as Java writes them: a map in the order of its hashes, a log line with a value in it, a number.

Regular expressions of Java belong to `java_regex.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

_PLACE = re.compile(r"(?<!\\)\{\}")
_DEFAULT_SIZE = 16


def map_text(values: Mapping[str, object], *, copied: int = 0) -> str:
    """The text of a `java.util.HashMap`, in which keys of the same bucket are in insertion order.

    Args:
        values: Keys and values; None is `null`.
        copied: How many of them, the first ones, were copied from another map on creation, which determines its size.
    """
    size = _size_for(int(copied / 0.75 + 1)) if copied else _DEFAULT_SIZE
    while len(values) > size * 3 // 4:
        size *= 2
    ordered = sorted(values, key=lambda key: _spread(key) & (size - 1))
    return "{" + ", ".join(f"{key}={'null' if values[key] is None else values[key]}" for key in ordered) + "}"


def line_with(pattern: str, value: str) -> str:
    r"""A log line as SLF4J formats it with one value, which replaces the first `{}` that is not written `\{}`.

    Args:
        pattern: The line.
        value: The value.
    """
    place = _PLACE.search(pattern)
    if place is None:
        return pattern
    return pattern[: place.start()].replace(r"\{}", "{}") + value + pattern[place.end() :]


def java_double(text: str) -> str:
    """Return a number as Java's `Double.toString` does: with an exponent from ten million up and below 0.001."""
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    if not isinstance(exponent, int):
        return text
    figures = "".join(map(str, digits))
    point = len(figures) + exponent
    if not any(digits):
        shown = "0.0"
    elif -3 < point <= 7:
        whole, rest = figures[: max(point, 0)], figures[max(point, 0) :]
        shown = f"{whole.ljust(point, '0') or '0'}.{'0' * -min(point, 0)}{rest or '0'}"
    else:
        shown = f"{figures[0]}.{figures[1:] or '0'}E{point - 1}"
    return f"-{shown}" if sign else shown


def _size_for(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _spread(key: str) -> int:
    """The hash of a string, as `HashMap` spreads it. Characters are UTF-16 code units."""
    units = key.encode("utf-16-be")
    found = 0
    for place in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[place : place + 2])) & 0xFFFF_FFFF
    return found ^ (found >> 16)
