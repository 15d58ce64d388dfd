"""The canonical text of a value, which a source's check session and `check/` each produce for their own side.

Only what both need belongs here: points in time, fractions of a second, the base type of a variant. No reader of
capture uses this module, so a mistake in a reader shows up as a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from mssql_cdc.schema import TYPES, Kind

_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?(?: ?([+-])(\d\d):(\d\d))?")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_EPOCH_DAYS = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time in nanoseconds since 0001-01-01, local, and its offset in minutes."""

    nanoseconds: int
    offset: int = 0

    @classmethod
    def parse(cls, text: str) -> Moment:
        """Parse a text like `2024-05-06 07:08:09.1234567 +02:00`, or a canonical text."""
        found = _MOMENT.fullmatch(text.strip())
        if not found:
            raise ValueError("Not a date or time")
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        days = date(year, month, day).toordinal() - 1
        seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        offset = int(found[9] or 0) * 60 + int(found[10] or 0)
        fraction = int((found[7] or "0").ljust(9, "0"))
        return cls(seconds * 1_000_000_000 + fraction, -offset if found[8] == "-" else offset)

    @classmethod
    def of_micros(cls, micros: int) -> Moment:
        """Make a moment from microseconds since 1970-01-01 (UTC)."""
        return cls((micros + (_EPOCH_DAYS - 1) * _DAY) * 1000)

    @property
    def micros(self) -> int:
        """Microseconds since 1970-01-01 in UTC, truncated, not rounded."""
        utc = self.nanoseconds - self.offset * 60_000_000_000
        return utc // 1000 - (_EPOCH_DAYS - 1) * _DAY

    @property
    def text(self) -> str:
        """The canonical text: ISO 8601 without trailing zeros in the fraction, `2024-05-06T07:08:09.12+02:00`."""
        days, rest = divmod(self.nanoseconds, _DAY * 1000)
        seconds, fraction = divmod(rest, 1_000_000_000)
        day = date.fromordinal(days + 1).isoformat()
        shown = f"{day}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        if fraction:
            shown += f".{fraction:09d}".rstrip("0")
        sign = "-" if self.offset < 0 else "+"
        return f"{shown}{sign}{abs(self.offset) // 60:02d}:{abs(self.offset) % 60:02d}" if self.offset else shown


def time_text(value: str) -> str:
    """`hh:mm:ss`, with a fraction only if it is not zero."""
    whole, _, fraction = value.partition(".")
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".")


def variant_text(base: str, text: str) -> str:
    """The text of a variant's value in the form of its base type."""
    known = TYPES.get(base)
    match known.kind if known else None:
        case Kind.FLOAT:
            return float(text).hex()
        case Kind.DATE | Kind.TIMESTAMP | Kind.INSTANT:
            return Moment.parse(text).text
        case Kind.TIME:
            return time_text(text)
        case Kind.BINARY:
            return text.lower().removeprefix("0x")
        case _ if LONE_SURROGATE.search(text):
            return text.encode("utf-16-be", "surrogatepass").hex()  # Such a text cannot be displayed.
        case _:
            return text
