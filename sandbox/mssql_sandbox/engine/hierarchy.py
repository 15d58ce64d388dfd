"""hierarchyid values: the packed bits of their labels (MS-SSCLRT, "HierarchyId structure"), and the text `/1/2.1/`.

Labels from -72 to 5199 are supported; others are an error.
"""

from __future__ import annotations

from mssql_sandbox.errors import SqlError

Level = tuple[int, ...]
"""The labels of one level: several if values were inserted between others (`2.1`)."""

_PATTERNS = (
    (-72, "0010xx0x1xxxT"),
    (-8, "00111xxxT"),
    (0, "01xxT"),
    (4, "100xxT"),
    (8, "101xxxT"),
    (16, "110xx0x1xxxT"),
    (80, "1110xxx0xxx0x1xxxT"),
    (1104, "11110xxxxx0xxx0x1xxxT"),
)
"""First label of a range and its bits: x the label's distance from the first, T whether the level ends with it."""


def _unknown(what: str) -> SqlError:
    return SqlError(6522, f"hierarchyid: {what} is outside of the labels that this server knows (-72 to 5199).")


def decode(value: bytes) -> list[Level]:
    """The levels of a value; the root has none."""
    bits = "".join(f"{byte:08b}" for byte in value)
    levels: list[Level] = []
    labels: list[int] = []
    place = 0
    while "1" in bits[place:]:
        found = next((known for known in _PATTERNS if _fits(bits, place, known[1])), None)
        if found is None:
            raise _unknown(f"0x{value.hex()}")
        first, pattern = found
        taken = bits[place : place + len(pattern)]
        digits = "".join(bit for bit, mark in zip(taken, pattern, strict=True) if mark == "x")
        ends = taken[-1] == "1"
        # A label followed by another one on the same level is written one higher.
        labels.append(first + int(digits, 2) - (0 if ends else 1))
        place += len(pattern)
        if ends:
            levels.append(tuple(labels))
            labels = []
    return levels


def _fits(bits: str, place: int, pattern: str) -> bool:
    taken = bits[place : place + len(pattern)]
    return len(taken) == len(pattern) and all(
        mark in "xT" or bit == mark for bit, mark in zip(taken, pattern, strict=True)
    )


def encode(levels: list[Level]) -> bytes:
    """The packed form of levels."""
    bits = ""
    for level in levels:
        for number, label in enumerate(level, 1):
            bits += _bits(label, ends=number == len(level))
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[start : start + 8], 2) for start in range(0, len(bits), 8))


def _bits(label: int, *, ends: bool) -> str:
    written = label + (0 if ends else 1)
    known = [(first, pattern) for first, pattern in _PATTERNS if first <= written]
    if not known:
        raise _unknown(str(label))
    first, pattern = known[-1]
    width = pattern.count("x")
    if written - first >= 1 << width:
        raise _unknown(str(label))
    digits = iter(f"{written - first:0{width}b}")
    return "".join(next(digits) if mark == "x" else str(int(ends)) if mark == "T" else mark for mark in pattern)


def to_text(value: bytes) -> str:
    """`/1/2.1/`; the root is `/`."""
    return "/" + "".join(".".join(map(str, level)) + "/" for level in decode(value))


def from_text(text: str) -> bytes:
    """The value of a text; 6522 for an invalid one."""
    parts = text.split("/")
    if not text.startswith("/") or not text.endswith("/"):
        raise SqlError(
            6522, "A .NET Framework error occurred during execution of user-defined routine or aggregate "
            '"hierarchyid": '
            "Microsoft.SqlServer.Types.HierarchyIdException: 24001: SqlHierarchyId.Parse failed because the input "
            "string "
            f"'{text}' is not a valid string representation of a SqlHierarchyId node."
        )  # fmt: skip
    try:
        return encode([tuple(int(label) for label in part.split(".")) for part in parts[1:-1]])
    except ValueError:
        raise _unknown(repr(text)) from None
