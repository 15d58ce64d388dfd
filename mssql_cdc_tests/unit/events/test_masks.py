"""Version 1 of the hash covers what Java's ObjectOutputStream writes for a String."""

import hashlib

import pyarrow as pa
import pytest

from mssql_cdc.events import HashMask
from mssql_cdc.schema.types import SqlServerType


@pytest.mark.feature("FLT-08")
@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("", b"\x74\x00\x00"),
        ("a", b"\x74\x00\x01a"),
        ("\0", b"\x74\x00\x02\xc0\x80"),
        ("é", b"\x74\x00\x02\xc3\xa9"),
        ("😀", b"\x74\x00\x06\xed\xa0\xbd\xed\xb8\x80"),
        ("x" * 65535, b"\x74\xff\xff" + b"x" * 65535),
        ("x" * 65536, b"\x7c\x00\x00\x00\x00\x00\x01\x00\x00" + b"x" * 65536),
    ],
    ids=["empty", "ascii", "nul", "two bytes", "surrogate pair", "longest short", "shortest long"],
)
def test_hash_version_1_covers_java_serialization(value: str, body: bytes) -> None:
    expected = hashlib.sha256(b"salt" + b"\xac\xed\x00\x05" + body).hexdigest()
    found = HashMask("SHA-256", "salt", version=1).apply(pa.array([value]), SqlServerType("varchar", length=-1))
    assert found.to_pylist() == [expected]
