"""Changes that function mode cannot order are rejected, with a memory that a large transaction does not fill (B11)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from mssql_cdc.errors import SourceError
from mssql_cdc.source.sqlserver.order_guard import REMEMBERED, OrderGuard
from mssql_cdc_tests.unit.source.raw import ORDERS, Row, decoder, raw, utf16


def watch(*batches: list[Row]) -> None:
    guard, one = OrderGuard(ORDERS, lambda _: True), decoder()
    for rows in batches:
        for batch in one.push(raw(ORDERS, rows)):
            guard.check(batch)


def change(commit: int, seq: int, operation: int, key: int) -> Row:
    return (commit, None, seq, operation, b"\x03", key, utf16("a"))


def test_a_key_deleted_and_inserted_at_two_change_lsns_is_rejected() -> None:
    with pytest.raises(SourceError, match="GRANT SELECT"):
        watch([change(20, 11, 2, 2), change(20, 12, 1, 2)])


def test_a_key_deleted_and_inserted_on_two_pages_is_rejected() -> None:
    with pytest.raises(SourceError, match="GRANT SELECT"):
        watch([change(20, 11, 2, 2)], [change(20, 12, 1, 2)])


@pytest.mark.parametrize(
    "rows",
    [
        [change(20, 11, 1, 2), change(20, 11, 2, 2)],
        [change(20, 11, 2, 2), change(21, 20, 1, 2)],
        [change(20, 11, 2, 2), change(20, 12, 1, 3)],
        [change(20, 11, 2, 2), change(20, 12, 3, 2), change(20, 12, 4, 2)],
    ],
)
def test_changes_with_an_unambiguous_order_pass(rows: list[Row]) -> None:
    watch(rows)


def test_a_key_is_rejected_although_another_transaction_follows_in_the_same_batch() -> None:
    with pytest.raises(SourceError, match="GRANT SELECT"):
        watch([change(20, 11, 2, 2)], [change(20, 12, 1, 2), change(21, 13, 2, 5)])


def test_a_key_of_an_earlier_transaction_in_the_same_batch_is_rejected() -> None:
    with pytest.raises(SourceError, match="GRANT SELECT"):
        watch([change(20, 11, 2, 2), change(20, 12, 1, 2), change(21, 13, 2, 5)])


def batch(operation: str, keys: Sequence[int], *, commit: str = "20") -> pa.RecordBatch:
    image = pa.StructArray.from_arrays([pa.array(keys, pa.int32())], ["id"])
    nothing = pa.nulls(len(keys), image.type)
    return pa.RecordBatch.from_pydict(
        {
            "op": pa.array([operation] * len(keys)),
            "before": image if operation == "d" else nothing,
            "after": nothing if operation == "d" else image,
            "commit_lsn": pa.array([commit] * len(keys)),
            "change_lsn": pa.array([f"{operation}{key}" for key in keys]),
        }
    )


STEP = REMEMBERED // 2


@pytest.mark.parametrize("operation", ["c", "d"])
def test_nothing_is_remembered_of_a_large_transaction_of_one_kind(operation: str) -> None:
    """Audit of issue 10, 3b: a million insertions of one transaction took 397 MiB."""
    asked: list[str] = []

    def has_both(commit: str) -> bool:
        asked.append(commit)
        return False

    guard, most = OrderGuard(ORDERS, has_both), 0
    for page in range(6):
        guard.check(batch(operation, range(page * STEP, (page + 1) * STEP)))
        most = max(most, guard.remembered)
    assert most <= REMEMBERED
    assert guard.remembered == 0
    assert asked == ["20"]
    guard.check(batch("d", [1], commit="21"))
    with pytest.raises(SourceError, match="transaction 21 deletes and inserts"):
        guard.check(batch("c", [1], commit="21"))


def test_a_large_transaction_that_deletes_and_inserts_is_remembered_to_its_end() -> None:
    asked: list[str] = []

    def has_both(commit: str) -> bool:
        asked.append(commit)
        return True

    guard = OrderGuard(ORDERS, has_both)
    for page in range(4):
        guard.check(batch("c", range(page * STEP, (page + 1) * STEP)))
    assert guard.remembered == 4 * STEP
    assert asked == ["20"]
    guard.check(batch("d", [-1, -2]))
    with pytest.raises(SourceError, match="transaction 20 deletes and inserts"):
        guard.check(batch("d", [STEP + 1]))
