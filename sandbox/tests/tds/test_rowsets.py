"""Rows that clients send: bulk loads as FreeTDS and others write them."""

import struct

import pytest

from mssql_sandbox.engine import types
from mssql_sandbox.tds.rowsets import read_bulk_load
from mssql_sandbox.tds.type_info import type_info
from mssql_sandbox.tds.wire import ProtocolError, b_varchar

COLUMN = bytes(6) + type_info(types.INT) + b_varchar("n")
DESCRIBED = b"\x81\x01\x00" + COLUMN
ROW = b"\xd1\x04" + struct.pack("<i", 7)
DONE = b"\xfd" + bytes(12)


@pytest.mark.parametrize("end", [DONE, b""])
def test_a_bulk_load_ends_with_done_or_with_the_message(end: bytes) -> None:
    # FreeTDS (bcp of db-lib, pymssql's bulk_copy) sends no DONE [wire].
    assert read_bulk_load(DESCRIBED + ROW + ROW + end).rows == [(7,), (7,)]


@pytest.mark.parametrize("cut", range(1, len(ROW)))
def test_a_bulk_load_that_ends_inside_a_row_is_refused(cut: int) -> None:
    with pytest.raises(ProtocolError):
        read_bulk_load(DESCRIBED + ROW + ROW[:-cut])


def test_a_bulk_load_of_nothing_has_no_rows() -> None:
    assert read_bulk_load(DESCRIBED).rows == []
