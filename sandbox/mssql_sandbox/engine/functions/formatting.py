"""FORMAT: the common .NET format strings for numbers and dates in the invariant and US cultures.

What does not belong here: CONVERT's styles (text.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from mssql_sandbox.engine.conversion_numbers import unit
from mssql_sandbox.engine.functions.definition import TEXT, Call, Registry, refuse
from mssql_sandbox.engine.ticks import Moment, civil, clock_parts, moment
from mssql_sandbox.engine.types import DATES, NUMBERS, SqlType, nvarchar
from mssql_sandbox.errors import error

registry = Registry()
_WIDE = Context(prec=420)
"""Digits of the largest float in front of the point, and of 99 behind it."""
_CULTURES = frozenset({"en-us", "en", ""})
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_STANDARD_DATES = {
    "d": "M/d/yyyy", "D": "dddd, MMMM d, yyyy", "f": "dddd, MMMM d, yyyy h:mm tt", "F": "dddd, MMMM d, yyyy h:mm:ss tt",
    "g": "M/d/yyyy h:mm tt", "G": "M/d/yyyy h:mm:ss tt", "t": "h:mm tt", "T": "h:mm:ss tt", "s": "yyyy-MM-ddTHH:mm:ss",
    "u": "yyyy-MM-dd HH:mm:ssZ", "o": "yyyy-MM-ddTHH:mm:ss.fffffff", "O": "yyyy-MM-ddTHH:mm:ss.fffffff",
    "M": "MMMM d", "m": "MMMM d", "Y": "MMMM yyyy", "y": "MMMM yyyy",
}  # fmt: skip
_DATE_TOKEN = re.compile(
    r"d{1,4}|M{1,4}|y{1,5}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|f{1,7}|F{1,7}|t{1,2}|z{1,3}|K|'[^']*'|\"[^\"]*\"|\\.|.",
    re.DOTALL,
)


@registry.add("FORMAT", 2, 3, result=lambda call: nvarchar(4000, collation=call.collation), takes={1: TEXT, 2: TEXT})
def _format(call: Call) -> Callable[..., Any]:
    type_ = call.types[0]
    if type_.name not in DATES | NUMBERS:
        refuse(call, 0, "format")

    def format_(value: Any, form: str, culture: str = "en-us") -> str | None:
        check_culture(culture)
        return format_date(value, type_, form) if type_.name in DATES else format_number(value, form)

    return format_


def check_culture(name: str) -> None:
    """Refuse a culture that is not known: 9818. Known are en-US and the invariant one."""
    if name.lower() not in _CULTURES:
        raise error(9818, culture=name)


def format_date(value: object, type_: SqlType, form: str) -> str:
    """A date or time in a standard (one letter) or custom .NET format."""
    pattern = _STANDARD_DATES.get(form, form)
    point = moment(value, type_)
    return "".join(_date_token(token, point) for token in _DATE_TOKEN.findall(pattern.removeprefix("%")))


def _date_token(token: str, point: Moment) -> str:
    when = civil(point.day)
    hour, minute, second, fraction = clock_parts(point.ticks)
    if token[0] in "'\"":
        return token[1:-1]
    if token[0] == "\\":
        return token[1:]
    if token[0] in "fF":
        digits = f"{fraction:07}"[: len(token)]
        return digits if token[0] == "f" else digits.rstrip("0")
    if token[0] in "zK":
        return _zone(token, point.offset)
    numbers = {"H": hour, "h": hour % 12 or 12, "m": minute, "s": second}
    if token[0] in numbers:
        return f"{numbers[token[0]]:0{len(token)}}"
    names = {
        "d": str(when.day), "dd": f"{when.day:02}", "ddd": _DAYS[when.weekday()][:3], "dddd": _DAYS[when.weekday()],
        "M": str(when.month), "MM": f"{when.month:02}", "MMM": _MONTHS[when.month - 1][:3],
        "MMMM": _MONTHS[when.month - 1], "y": str(when.year % 100), "yy": f"{when.year % 100:02}",
        "yyy": f"{when.year:03}", "yyyy": f"{when.year:04}", "yyyyy": f"{when.year:05}",
        "t": "AP"[hour >= 12], "tt": ("AM", "PM")[hour >= 12],
    }  # fmt: skip
    return names.get(token, token)


def _zone(token: str, offset: int) -> str:
    hours, minutes = divmod(abs(offset), 60)
    sign = "-" if offset < 0 else "+"
    if token in {"zzz", "K"}:
        return f"{sign}{hours:02}:{minutes:02}"
    return f"{sign}{hours:0{len(token)}}"


def format_number(value: Any, form: str) -> str | None:
    """A number in a standard (N2, C, P1, D5, X, F3, E2, G) or custom (0,#,.,%) .NET format."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if match := re.fullmatch(r"([NnCcPpDdXxFfEeGg])(\d{0,2})", form):
        return _standard_number(number, match[1], int(match[2]) if match[2] else None)
    return _custom_number(number, form)


def _rounded(number: Decimal, digits: int) -> Decimal:
    return number.quantize(unit(digits), ROUND_HALF_UP, _WIDE)


def _standard_number(number: Decimal, letter: str, digits: int | None) -> str | None:
    kind = letter.upper()
    count = 2 if digits is None else digits
    if kind == "N":
        return f"{_rounded(number, count):,f}"
    if kind == "F":
        return f"{_rounded(number, count):f}"
    if kind == "C":
        text = f"${abs(_rounded(number, count)):,f}"
        return f"({text})" if number < 0 else text
    if kind == "P":
        return f"{_rounded(number * 100, count):,f}%"
    if kind == "E":
        mantissa, exponent = f"{number:.{6 if digits is None else digits}e}".split("e")
        return f"{mantissa}{letter}{exponent[0]}{int(exponent[1:]):03}"
    if kind == "G":
        return f"{number.normalize(_WIDE):f}"
    if number != number.to_integral_value():
        return None
    if kind == "D":
        return f"{'-' if number < 0 else ''}{abs(int(number)):0{digits or 1}}"
    text = f"{int(number) & 0xFFFFFFFF if number < 0 else int(number):x}".rjust(digits or 1, "0")
    return text.upper() if letter == "X" else text


def _custom_number(number: Decimal, form: str) -> str:
    sections = form.split(";")
    if number < 0 and len(sections) > 1:
        form, number = sections[1], -number
    elif number == 0 and len(sections) > 2:
        form = sections[2]
    else:
        form = sections[0]
    match = re.search(r"[0#,.]*[0#][0#,.]*", form)
    if match is None:
        return form
    core = match[0]
    if "%" in form:
        number *= 100
    whole, _, fraction = core.partition(".")
    text = f"{abs(_rounded(number, len(fraction.replace(',', '')))):f}"
    digits, _, decimals = text.partition(".")
    minimum = whole.replace(",", "").lstrip("#").count("0")
    digits = digits.lstrip("0").rjust(minimum, "0")
    if "," in whole and digits:
        digits = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", digits)
    keep = len(fraction.rstrip("#")) if "#" in fraction else len(fraction)
    while len(decimals) > keep and decimals.endswith("0"):
        decimals = decimals[:-1]
    body = digits + (f".{decimals}" if decimals else "")
    sign = "-" if number < 0 and body.strip("0.,") else ""
    return sign + form[: match.start()].replace("\\", "") + body + form[match.end() :].replace("\\", "")
