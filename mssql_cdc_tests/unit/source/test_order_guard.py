"""Function mode refuses an order that it cannot know (rule B11)."""

from __future__ import annotations

import pytest

from mssql_cdc.errors import SourceError
from mssql_cdc.source.sqlserver.order_guard import OrderGuard
from mssql_cdc_tests.unit.source.raw import ORDERS, Row, decoder, raw, utf16

A = utf16("a")


def watch(*batches: list[Row]) -> None:
    guard, one = OrderGuard(ORDERS), decoder()
    for rows in batches:
        for batch in one.push(raw(ORDERS, rows)):
            guard.check(batch)


def change(commit: int, seq: int, operation: int, key: int) -> Row:
    return (commit, None, seq, operation, b"\x03", key, A)


def test_a_key_deleted_and_inserted_under_two_change_lsns_is_refused() -> None:
    with pytest.raises(SourceError, match="GRANT SELECT"):
        watch([change(20, 11, 2, 2), change(20, 12, 1, 2)])


def test_so_it_is_when_a_page_ends_between_the_two() -> None:
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
def test_what_has_one_order_passes(rows: list[Row]) -> None:
    watch(rows)
