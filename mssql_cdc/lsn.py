"""Log sequence numbers, LSN ranges, positions of change rows, and partition keys.

This module contains only values and their texts and reads neither a source nor a table. `source/` and `plan/` decide
what an LSN means at a given time (captured, scanned, end of the log).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_TEXT = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,4})")
_RANGE = re.compile(r"(?:e(\d+)\.)?([0-9a-f]+:[0-9a-f]+:[0-9a-f]+)-([0-9a-f]+:[0-9a-f]+:[0-9a-f]+)")
_SNAPSHOT = re.compile(r"(?:e(\d+)\.)?snapshot-(\d{8}T\d{6})")
_POSITION = re.compile(r"([0-9a-f]{4})-([0-9a-f]{20})-([0-9a-f]{8})-([0-9a-f]{20})-([0-9a-f])")
_SNAPSHOT_COMMAND = 0xFFFFFFFF
_LAST_CHANGE = "f" * 20


@dataclass(frozen=True, slots=True, order=True)
class Lsn:
    """A 10-byte SQL Server log sequence number; ordered like its bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != 10:
            raise ValueError(f"An LSN has 10 bytes; found {len(self.raw)}: {self.raw.hex()}")

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Parse `27:ac0:2`, `00000027:00000ac0:0002` or 20 hexadecimal digits (with an optional `0x` prefix)."""
        match = _TEXT.fullmatch(text)
        if match:
            parts = zip(match.groups(), (8, 8, 4), strict=True)
            return cls(bytes.fromhex("".join(part.zfill(size) for part, size in parts)))
        digits = text[2:] if text[:2] in {"0x", "0X"} else text
        if re.fullmatch(r"[0-9a-fA-F]{20}", digits):
            return cls(bytes.fromhex(digits))
        raise ValueError(f"Not an LSN: {text!r}; expected for instance 00000027:00000ac0:0002")

    @property
    def text(self) -> str:
        """`00000027:00000ac0:0002`, Debezium's format, always lowercase (rule B16)."""
        digits = self.raw.hex()
        return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"

    @property
    def compact(self) -> str:
        """`27:ac0:2`, for partition keys and messages."""
        return ":".join(part.lstrip("0") or "0" for part in self.text.split(":"))

    def increment(self) -> Lsn:
        """Return the next LSN, like `sys.fn_cdc_increment_lsn`."""
        return Lsn((int.from_bytes(self.raw, "big") + 1).to_bytes(10, "big"))

    def decrement(self) -> Lsn:
        """Return the previous LSN, like `sys.fn_cdc_decrement_lsn`."""
        return Lsn((int.from_bytes(self.raw, "big") - 1).to_bytes(10, "big"))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        """In JSON an LSN is its text. Only pydantic calls this, so importing this module stays cheap."""
        from pydantic_core import core_schema  # noqa: PLC0415

        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(cls.parse, core_schema.str_schema()),
            python_schema=core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda lsn: lsn.text, when_used="json"),
        )

    def __bool__(self) -> bool:
        return any(self.raw)

    def __str__(self) -> str:
        return self.text


ZERO_LSN = Lsn(bytes(10))


@dataclass(frozen=True, slots=True)
class LsnRange:
    """The half-open range `(from_, to]` of commit LSNs in one epoch (0 until the source is restored)."""

    from_: Lsn
    to: Lsn
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.to < self.from_:
            raise ValueError(f"A range cannot end before it begins: ({self.from_.text}, {self.to.text}]")

    @property
    def is_empty(self) -> bool:
        """Whether the range can contain no commit LSN."""
        return self.from_ == self.to

    @property
    def partition_key(self) -> str:
        """`27:ac0:2-27:ad8:5`, prefixed with `e<epoch>.` after a restore."""
        return f"{_epoch_prefix(self.epoch)}{self.from_.compact}-{self.to.compact}"

    @classmethod
    def parse(cls, key: str) -> LsnRange:
        """Parse a partition key."""
        match = _RANGE.fullmatch(key)
        if not match:
            raise ValueError(f"Not the partition key of a range: {key!r}; expected like 27:ac0:2-27:ad8:5")
        epoch, from_, to = match.groups()
        return cls(Lsn.parse(from_), Lsn.parse(to), int(epoch or 0))

    def __contains__(self, commit_lsn: Lsn) -> bool:
        return self.from_ < commit_lsn <= self.to


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The position of one change row in the total order (rule B11), split into its parts."""

    epoch: int
    commit_lsn: Lsn
    command_id: int
    change: str
    operation: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a `_pos` text."""
        match = _POSITION.fullmatch(text)
        if not match:
            raise ValueError(f"Not a position: {text!r}; expected five groups of lower-case hexadecimal digits")
        epoch, commit, command, change, operation = match.groups()
        return cls(int(epoch, 16), Lsn(bytes.fromhex(commit)), int(command, 16), change, int(operation, 16))

    @property
    def text(self) -> str:
        """The `_pos` text; texts sort like positions."""
        return _position(self.epoch, self.commit_lsn, self.command_id, self.change, self.operation)


def snapshot_position_text(epoch: int, commit: Lsn, *, number: int, chunk: int = 0, row: int = 0) -> str:
    """Return `_pos` of row `row` in chunk `chunk` of snapshot `number`: after every change that `commit` made.

    With chunk and row 0 it is also the bound `(epoch, lsn, MAX, number)` of the sweep (rule C19).

    Args:
        epoch: how many times the source was restored before the snapshot.
        commit: the position whose changes the rows include.
        number: the snapshot's number in its table, up to 6 hexadecimal digits.
        chunk: the chunk's number, up to 6 hexadecimal digits.
        row: the row's number in its chunk, up to 8 hexadecimal digits.

    Raises:
        ValueError: a number has more digits.
    """
    return _position(epoch, commit, _SNAPSHOT_COMMAND, snapshot_change(number, chunk, row), 0)


def snapshot_change(number: int, chunk: int, row: int) -> str:
    """Return the change part of a snapshot position.

    Args:
        number: the snapshot's number in its table, up to 6 hexadecimal digits.
        chunk: the chunk's number, up to 6 hexadecimal digits.
        row: the row's number in its chunk, up to 8 hexadecimal digits.

    Raises:
        ValueError: a number has more digits.
    """
    for value, digits, what in (
        (number, 6, "snapshot number"),
        (chunk, 6, "chunk"),
        (row, 8, "row in chunk"),
    ):
        if not 0 <= value < 16**digits:
            raise ValueError(f"The {what} {value} does not fit {digits} hexadecimal digits")
    return f"{number:06x}{chunk:06x}{row:08x}"


def cut_text(epoch: int, to: Lsn) -> str:
    """Return the largest `_pos` of the range that ends at `to`: a cut is the predicate `_pos <= cut` (rule A4)."""
    return _position(epoch, to, _SNAPSHOT_COMMAND, _LAST_CHANGE, 15)


def snapshot_key(at: datetime, *, epoch: int = 0) -> str:
    """Return the partition key of a snapshot, `snapshot-20261121T080509` (UTC)."""
    if at.tzinfo is None:
        raise ValueError("The time of a snapshot key needs a time zone")
    return f"{_epoch_prefix(epoch)}snapshot-{at.astimezone(UTC):%Y%m%dT%H%M%S}"


def parse_snapshot_key(key: str) -> datetime | None:
    """Return when the snapshot with this partition key was requested; None for any other key."""
    match = _SNAPSHOT.fullmatch(key)
    return datetime.strptime(match[2], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) if match else None


def later_snapshot_key(key: str, by: timedelta) -> str:
    """Return the key of a snapshot requested this much later, in the same epoch."""
    match = _SNAPSHOT.fullmatch(key)
    at = parse_snapshot_key(key)
    if match is None or at is None:
        raise ValueError(f"Not the partition key of a snapshot: {key!r}; expected like snapshot-20261121T080509")
    return snapshot_key(at + by, epoch=int(match[1] or 0))


def _position(epoch: int, commit: Lsn, command_id: int, change: str, operation: int) -> str:
    if not 0 <= epoch < 16**4:
        raise ValueError(f"The epoch {epoch} does not fit 4 hexadecimal digits")
    return f"{epoch:04x}-{commit.raw.hex()}-{command_id:08x}-{change}-{operation:x}"


def _epoch_prefix(epoch: int) -> str:
    return f"e{epoch}." if epoch else ""
