"""The conversions that CAST and CONVERT do not allow, from the chart in the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mssql_sandbox.engine.types import APPROXIMATE, DATES, NUMBERS

_NARROW, _NATIONAL = ("char", "varchar"), ("nchar", "nvarchar")
_BINARY = ("binary", "varbinary")
_OLD_DATES = ("datetime", "smalldatetime")
_NEW_DATES = ("date", "time", "datetime2", "datetimeoffset")
_TEXTS = ("text", "ntext")
_LARGE = (*_TEXTS, "image")
_ALL = frozenset({
    *NUMBERS, *DATES, *_NARROW, *_NATIONAL, *_BINARY, *_LARGE, "rowversion", "uniqueidentifier", "xml",
})  # fmt: skip


def _pairs(sources: Iterable[str], *targets: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((source, target) for source in sources for group in targets for target in group if source != target)


def _all_but(*allowed: Iterable[str]) -> frozenset[str]:
    return _ALL.difference(*allowed)


FORBIDDEN = frozenset({
    *_pairs(_BINARY, APPROXIMATE, _TEXTS),
    *_pairs(_NATIONAL, ("image",)),
    *_pairs(_OLD_DATES, _LARGE, ("uniqueidentifier", "xml")),
    ("date", "time"), ("time", "date"),
    *_pairs(_NEW_DATES, NUMBERS, _LARGE, ("rowversion", "uniqueidentifier", "xml")),
    *_pairs(NUMBERS, _NEW_DATES, _LARGE, ("uniqueidentifier", "xml")),
    *_pairs(APPROXIMATE, ("rowversion",)),
    *_pairs(("rowversion",), _NATIONAL, _NEW_DATES, APPROXIMATE, _TEXTS, ("uniqueidentifier", "xml")),
    *_pairs(("uniqueidentifier",), NUMBERS, DATES, _LARGE, ("rowversion", "xml")),
    *_pairs(("image",), _all_but(_BINARY, ("rowversion",))),
    *_pairs(_TEXTS, _all_but(_NARROW, _NATIONAL, _TEXTS, ("xml",))),
    *_pairs(("sql_variant",), _LARGE, ("rowversion", "xml")),
    *_pairs(("xml",), _all_but(_NARROW, _NATIONAL, _BINARY)),
})  # fmt: skip
"""(source, target) of the conversions that are error 529."""
