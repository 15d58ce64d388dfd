"""Which staged chunks of a repair wait for the change log together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mssql_cdc.check.repair import STAGED_BYTES, STAGED_CHUNKS, Staged, held_together
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import lsn


def staged(number: int, size: int) -> Staged:
    rows = pa.record_batch({"v": pa.array([b"x" * size], pa.binary())})
    return Staged([(str(number),)], (rows,), LogMark(lsn(number)))


@pytest.mark.parametrize(
    ("count", "size", "together"),
    [
        (3, 10, [3]),
        (STAGED_CHUNKS, 10, [STAGED_CHUNKS]),
        (STAGED_CHUNKS + 1, 10, [STAGED_CHUNKS, 1]),
        (4, STAGED_BYTES // 2, [2, 2]),
        (3, STAGED_BYTES + 1, [1, 1, 1]),
    ],
    ids=["few", "as many as fit", "one more", "large rows", "rows beyond the limit"],
)
def test_chunks_are_held_together_up_to_a_number_and_a_size(count: int, size: int, together: list[int]):
    groups = list(held_together(staged(number, size) for number in range(count)))
    assert [len(group) for group in groups] == together
    assert [one.mark.lsn for group in groups for one in group] == [lsn(number) for number in range(count)]


def test_no_chunk_is_read_before_those_that_are_held_were_taken():
    """Locked rows are read late: what waits in memory is written before more is read."""
    read: list[int] = []

    def chunks():
        for number in range(4):
            read.append(number)
            yield staged(number, STAGED_BYTES // 2)

    groups = held_together(chunks())
    next(groups)
    assert read == [0, 1]
