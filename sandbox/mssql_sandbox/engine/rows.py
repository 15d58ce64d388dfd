"""Picking values out of rows, which are tuples in storage form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter


def row_getter(places: Sequence[int]) -> Callable[[tuple], tuple]:
    """A function that picks places of a row, always as a tuple."""
    if len(places) == 1:
        place = places[0]
        return lambda row: (row[place],)
    return itemgetter(*places)
