"""Values as text: the results of CAST and CONVERT to character types, with CONVERT's styles.

What does not belong here: parsing text (parsing.py), truncation and padding (conversion.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from mssql_sandbox.engine.ticks import civil, clock_parts, moment
from mssql_sandbox.engine.types import DATES, MONEY, STRINGS, SqlType, reported_name
from mssql_sandbox.errors import error

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE_STYLES: dict[int, str] = {
    0: "{mon} {d:>2} {yyyy}", 1: "{mm}/{dd}/{yy}", 2: "{yy}.{mm}.{dd}", 3: "{dd}/{mm}/{yy}", 4: "{dd}.{mm}.{yy}",
    5: "{dd}-{mm}-{yy}", 6: "{dd} {mon} {yy}", 7: "{mon} {dd}, {yy}", 9: "{mon} {d:>2} {yyyy}",
    10: "{mm}-{dd}-{yy}", 11: "{yy}/{mm}/{dd}", 12: "{yy}{mm}{dd}", 13: "{dd} {mon} {yyyy}",
    20: "{yyyy}-{mm}-{dd}", 21: "{yyyy}-{mm}-{dd}", 22: "{mm}/{dd}/{yy}", 23: "{yyyy}-{mm}-{dd}",
    25: "{yyyy}-{mm}-{dd}", 100: "{mon} {d:>2} {yyyy}", 101: "{mm}/{dd}/{yyyy}", 102: "{yyyy}.{mm}.{dd}",
    103: "{dd}/{mm}/{yyyy}", 104: "{dd}.{mm}.{yyyy}", 105: "{dd}-{mm}-{yyyy}", 106: "{dd} {mon} {yyyy}",
    107: "{mon} {dd}, {yyyy}", 109: "{mon} {d:>2} {yyyy}", 110: "{mm}-{dd}-{yyyy}", 111: "{yyyy}/{mm}/{dd}",
    112: "{yyyy}{mm}{dd}", 113: "{dd} {mon} {yyyy}", 120: "{yyyy}-{mm}-{dd}", 121: "{yyyy}-{mm}-{dd}",
    126: "{yyyy}-{mm}-{dd}", 127: "{yyyy}-{mm}-{dd}",
}  # fmt: skip
_TIME_STYLES: dict[int, str] = {
    0: "{h12:>2}:{mi}{ap}", 100: "{h12:>2}:{mi}{ap}", 8: "{hh}:{mi}:{ss}", 24: "{hh}:{mi}:{ss}", 108: "{hh}:{mi}:{ss}",
    9: "{h12:>2}:{mi}:{ss}{cf}{ap}", 109: "{h12:>2}:{mi}:{ss}{cf}{ap}", 13: "{hh}:{mi}:{ss}{cf}",
    113: "{hh}:{mi}:{ss}{cf}", 14: "{hh}:{mi}:{ss}{cf}", 114: "{hh}:{mi}:{ss}{cf}", 20: "{hh}:{mi}:{ss}",
    120: "{hh}:{mi}:{ss}", 21: "{hh}:{mi}:{ss}{f}", 25: "{hh}:{mi}:{ss}{f}", 121: "{hh}:{mi}:{ss}{f}",
    22: "{h12:>2}:{mi}:{ss} {ap}", 126: "{hh}:{mi}:{ss}{f}", 127: "{hh}:{mi}:{ss}{f}",
}  # fmt: skip


def to_text(value: object, type_: SqlType, style: int | None = None) -> str:
    """Text of a value other than binary, in CONVERT's `style` (None: CAST); error 281 for an unknown date style."""
    name = type_.name
    if name in STRINGS:
        return value  # type: ignore[return-value]
    if name in DATES:
        return date_text(value, type_, style)
    if name in MONEY:
        return money_text(value, style or 0)  # type: ignore[arg-type]
    if name in {"float", "real"}:
        return float_text(value, style or 0, single=name == "real")  # type: ignore[arg-type]
    if name in {"decimal", "numeric"}:
        return f"{value:f}"
    if name == "uniqueidentifier":
        return str(value).upper()
    if name == "sql_variant":
        inner, content = value  # type: ignore[misc]
        return to_text(content, inner, style)
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    return str(value)


def display(value: object, type_: SqlType) -> str:
    """Text of a value inside a message (duplicate keys, truncated values)."""
    return "<NULL>" if value is None else to_text(value, type_)


def date_text(value: object, type_: SqlType, style: int | None) -> str:
    """Text of a date or time value in a style; CAST uses 0 for datetime and smalldatetime, ISO for the others."""
    name = type_.name
    if style is None:
        style = 0 if name in {"datetime", "smalldatetime"} else 23 if name == "date" else 121
    if style not in _DATE_STYLES and style not in _TIME_STYLES:
        raise error(281, style=style, source=reported_name(type_))
    if (name == "time" and style not in _TIME_STYLES) or (name == "date" and style not in _DATE_STYLES):
        raise error(9809, style=style, source=name, target="varchar")
    point = moment(value, type_)
    offset = point.offset
    if style == 127 and name == "datetimeoffset":
        point = moment(value[0], SqlType("datetime2", scale=type_.scale))  # type: ignore[index]
    fields = _fields(point.day, point.ticks, type_)
    pieces = []
    if style in _DATE_STYLES and name != "time":
        pieces.append(_DATE_STYLES[style].format_map(fields))
    if style in _TIME_STYLES and name != "date":
        if style == 126 and name == "datetime" and point.ticks % 10_000_000 == 0:
            fields["f"] = ""
        time_part = _TIME_STYLES[style].format_map(fields)
        pieces.append(time_part if pieces else time_part.lstrip())
    joined = ("T" if style in {126, 127} else " ").join(pieces)
    if name == "datetimeoffset" and style in _TIME_STYLES:
        if style == 127:
            return joined + "Z"
        sign = "-" if offset < 0 else "+"
        blank = "" if style == 126 else " "
        joined += f"{blank}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    return joined


def _fields(day: int, ticks: int, type_: SqlType) -> dict[str, object]:
    when = civil(day)
    hour, minute, second, fraction = clock_parts(ticks)
    if type_.name == "datetime":
        digits, colon = f"{(fraction + 5_000) // 10_000:03}", ":"
    elif type_.name == "smalldatetime":
        digits, colon = "000", ":"
    else:
        digits, colon = f"{fraction:07}"[: type_.scale], "."
    return {
        "yyyy": f"{when.year:04}", "yy": f"{when.year % 100:02}", "mm": f"{when.month:02}", "dd": f"{when.day:02}",
        "d": when.day, "mon": MONTHS[when.month - 1], "hh": f"{hour:02}", "mi": f"{minute:02}", "ss": f"{second:02}",
        "h12": hour % 12 or 12, "ap": "AM" if hour < 12 else "PM", "f": f".{digits}" if digits else "",
        "cf": f"{colon}{digits}" if digits else "",
    }  # fmt: skip


def money_text(value: Decimal, style: int) -> str:
    """Style 0: two digits; 1: two digits and commas; 2 and 126: four digits."""
    if style in {2, 126}:
        return f"{value:.4f}"
    rounded = value.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{rounded:,f}" if style == 1 else f"{rounded:f}"


def float_text(value: float, style: int, *, single: bool) -> str:
    """Style 0: up to six digits; 1: eight, scientific; 2: sixteen; 3: as many as are needed for an exact round trip."""
    if style == 1:
        return _exponent(f"{value:.7e}")
    if style == 2:
        return _exponent(f"{value:.15e}")
    if style == 3:
        return _exponent(f"{value:.8e}" if single else f"{value:.16e}")
    return _exponent(f"{value:.6g}")


def _exponent(text: str) -> str:
    """Three-digit exponents, as the C library of Windows wrote them."""
    if "e" not in text:
        return text if text != "-0" else "0"
    digits, exponent = text.split("e")
    return f"{digits}e{exponent[0]}{int(exponent[1:]):03}"


def binary_text(value: bytes, style: int, decode: Callable[[bytes], str]) -> str:
    """Style 0: the bytes as text; 1: hexadecimal with 0x; 2: hexadecimal."""
    if style == 0:
        return decode(value)
    return ("0x" if style == 1 else "") + value.hex().upper()


def literal(value: object, type_: SqlType) -> str:
    """A T-SQL literal of this value (used in generated statements and messages)."""
    if value is None:
        return "NULL"
    name = type_.name
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    if isinstance(value, str):
        prefix = "N" if name.startswith("n") or name == "xml" else ""
        return f"{prefix}'{value.replace(chr(39), chr(39) * 2)}'"
    if isinstance(value, uuid.UUID) or name in DATES:
        style = 121 if name in {"datetime", "smalldatetime"} else None
        return f"'{to_text(value, type_, style)}'"
    if name in {"float", "real"}:
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return to_text(value, type_, 2)
