"""Update masks: the captured columns that a change updated.

A mask has one bit per captured column, column 1 in the lowest bit of the *last* byte (9 columns, all set: `0x01FF`
[est]). Pure arithmetic; `change_rows` decides what counts as a change.
"""

from __future__ import annotations

from collections.abc import Iterable


def full_mask(columns: int) -> bytes:
    """The mask of inserts and deletes: every one of `columns` bits set, computed columns included [est]."""
    return ((1 << columns) - 1).to_bytes((columns + 7) // 8, "big")


def mask_of(ordinals: Iterable[int], columns: int) -> bytes:
    """The mask with the bits of the given 1-based column ordinals set."""
    bits = 0
    for ordinal in ordinals:
        bits |= 1 << (ordinal - 1)
    return bits.to_bytes((columns + 7) // 8, "big")


def is_bit_set(position: int, mask: bytes) -> bool:
    """Whether the bit of the 1-based column `position` is set; a position beyond the mask is not set."""
    if position < 1:
        return False
    return bool(int.from_bytes(mask, "big") >> (position - 1) & 1)


def union(masks: Iterable[bytes], columns: int) -> bytes:
    """Every bit that is set in one of the masks (the net changes function's `all with mask`)."""
    bits = 0
    for mask in masks:
        bits |= int.from_bytes(mask, "big")
    return bits.to_bytes((columns + 7) // 8, "big")
