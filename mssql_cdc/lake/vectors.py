"""Delta's deletion vectors: the numbers of a data file's deleted rows, in the commit itself or in a file of their own.

This module knows the format only; `lake/table_log.py` says which vector belongs to which file.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pa_fs
from pyroaring import BitMap64

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.storage import write_bytes

_MAGIC = 1681511377
_VERSION = b"\x01"
_UUID_TEXT = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {character: value for value, character in enumerate(_Z85)}


@dataclass(frozen=True, slots=True)
class Vector:
    """The descriptor of a deletion vector, as an `add` or `remove` action holds it.

    `kind` is Delta's storageType: `i` inline, `u` a file named by a UUID, `p` an absolute path. `cardinality` is the
    exact number of deleted rows.
    """

    kind: str
    place: str
    size: int
    cardinality: int
    offset: int | None = None

    @classmethod
    def from_action(cls, found: Mapping[str, Any]) -> Vector:
        """The descriptor of an action's `deletionVector`."""
        return cls(
            found["storageType"],
            found["pathOrInlineDv"],
            found["sizeInBytes"],
            found["cardinality"],
            found.get("offset"),
        )

    def to_action(self) -> dict[str, Any]:
        """The `deletionVector` of an action."""
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.kind,
            "pathOrInlineDv": self.place,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }

    @property
    def identity(self) -> str:
        """The identity that distinguishes it from other vectors of the same data file."""
        return f"{self.kind}{self.place}" + (f"@{self.offset}" if self.offset is not None else "")

    @property
    def path(self) -> str:
        """The path of its file, relative to the table.

        Raises:
            StorageError: the vector is not in a file of the table's folder.
        """
        if self.kind != "u":
            raise StorageError(f"The deletion vector {self.identity} is not in the table's folder")
        prefix, text = self.place[:-_UUID_TEXT], self.place[-_UUID_TEXT:]
        name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(text))}.bin"
        return f"{prefix}/{name}" if prefix else name


def read_vector(vector: Vector | None, system: pa_fs.FileSystem) -> BitMap64:
    """The deleted rows; none without a vector.

    Args:
        vector: the descriptor of a live file.
        system: the table's folder.

    Raises:
        StorageError: the vector is damaged, or lies outside the table's folder.
    """
    if vector is None:
        return BitMap64()
    if vector.kind == "i":
        body = z85_decode(vector.place)[: vector.size]
    else:
        with system.open_input_file(vector.path) as source:
            source.seek(vector.offset or 0)
            (size,) = struct.unpack(">i", source.read(4))
            body = source.read(size)
            (checksum,) = struct.unpack(">I", source.read(4))
        if size != vector.size or checksum != zlib.crc32(body):
            raise StorageError(f"The deletion vector file {vector.path} is damaged: its size or checksum is wrong")
    (magic,) = struct.unpack("<I", body[:4])
    if magic != _MAGIC:
        raise StorageError(f"The deletion vector {vector.identity} has the unknown format {magic}")
    return BitMap64.deserialize(body[4:])


def write_vectors(bitmaps: Sequence[BitMap64], system: pa_fs.FileSystem) -> list[Vector]:
    """The vectors of these bitmaps, together in one new file.

    Small ones could be inline in the commit, but then Spark's VACUUM fails with a MatchError (Delta 4.4.0).
    """
    identity = uuid.uuid4()
    place, content = z85_encode(identity.bytes), bytearray(_VERSION)
    found: list[Vector] = []
    for bitmap in bitmaps:
        body = _body(bitmap)
        found.append(Vector("u", place, len(body), len(bitmap), len(content)))
        content += struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    if found:
        write_bytes(system, f"deletion_vector_{identity}.bin", bytes(content))
    return found


def z85_encode(data: bytes) -> str:
    """Encode bytes, whose number is a multiple of four, as ZeroMQ's Z85."""
    found: list[str] = []
    for (word,) in struct.iter_unpack(">I", data):
        left = word
        digits: list[str] = []
        for _ in range(5):
            left, digit = divmod(left, 85)
            digits.append(_Z85[digit])
        found += reversed(digits)
    return "".join(found)


def z85_decode(text: str) -> bytes:
    """Decode Z85.

    Raises:
        StorageError: the text is not Z85.
    """
    try:
        values = [_Z85_VALUES[character] for character in text]
        words = [
            ((((a * 85 + b) * 85 + c) * 85 + d) * 85 + e)
            for a, b, c, d, e in zip(*(values[start::5] for start in range(5)), strict=True)
        ]
        return struct.pack(f">{len(words)}I", *words)
    except (KeyError, ValueError, struct.error):
        raise StorageError(f"A deletion vector's text of {len(text)} characters is not Z85") from None


def _body(bitmap: BitMap64) -> bytes:
    compact = bitmap.copy()
    compact.run_optimize()
    return struct.pack("<I", _MAGIC) + compact.serialize()
