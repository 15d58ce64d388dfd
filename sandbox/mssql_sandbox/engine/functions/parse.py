"""PARSE and TRY_PARSE: text as people of a culture write it, to numbers and dates (.NET's rules, culture en-US)."""

from __future__ import annotations

import re
from typing import Any

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.types import DATES, MONEY, NUMBERS, SqlType, reported_name
from mssql_sandbox.errors import SqlError, error

_NUMBER = re.compile(r"\s*([+-]?)\s*(\d[\d,]*(?:\.\d*)?|\.\d+)((?:e[+-]?\d+)?)\s*([+-]?)\s*", re.IGNORECASE)
_WEEKDAY = re.compile(r"^\s*(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\s*,?\s*", re.IGNORECASE)


def parse_text(text: str, source: SqlType, target: SqlType, *, culture: str = "en-US", try_: bool = False) -> Any:
    """The value that a text stands for, or None with `try_`; 9819 for text that is none, 10761 for other types."""
    if target.name not in (NUMBERS | DATES) - {"bit"}:
        raise error(10761, type=reported_name(target))
    try:
        plain = _WEEKDAY.sub("", text) if target.name in DATES else _plain_number(text, target)
        return converter(source, target)(plain)
    except (SqlError, ValueError):
        if try_:
            return None
        raise error(9819, value=text, target=reported_name(target), culture=culture) from None


def _plain_number(text: str, target: SqlType) -> str:
    """The number without separators of thousands, its sign in front; money may have its symbol, and parentheses."""
    sign = ""
    if target.name in MONEY:
        text = text.replace("$", "")
        if (inner := re.fullmatch(r"\s*\((.*)\)\s*", text)) is not None:
            sign, text = "-", inner[1]
    match = _NUMBER.fullmatch(text)
    if match is None or (match[1] and match[4]):
        raise ValueError(text)
    return f"{sign or match[1] or match[4]}{match[2].replace(',', '')}{match[3]}"
