"""One order everywhere, two page predicates; changes that function mode cannot order are rejected (rule B11)."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import SourceError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.source.sqlserver.changes import OrderGuard, Place, keyset_after, page_statement
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.sql import quote, require_visible, text
from mssql_cdc_tests.unit.source.raw import ORDERS, Row, decoder, instance, lsn, raw, utf16

PLAN = RowPlan.of(ORDERS.columns)
RANGE = LsnRange(lsn(20), lsn(30))


def test_names_and_literals_cannot_break_out() -> None:
    assert quote("a]b") == "[a]]b]"
    assert text("O'Neil") == "N'O''Neil'"


@pytest.mark.feature("STR-06")
def test_a_change_table_is_read_in_the_full_order() -> None:
    sql = page_statement(instance(), PLAN, RANGE, rows=10)

    assert sql.startswith("SELECT TOP (10) [__$start_lsn] AS [lsn], [__$command_id] AS [cmd]")
    assert "FROM [cdc].[dbo_orders_CT] WHERE [__$start_lsn] > 0x00000000000000000014" in sql
    assert sql.endswith("ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]")


@pytest.mark.feature("STR-05")
def test_the_function_is_read_if_the_change_table_is_not_readable() -> None:
    sql = page_statement(instance(change_table=None), PLAN, RANGE, rows=10)

    assert (
        "FROM [cdc].[fn_cdc_get_all_changes_dbo_orders](0x00000000000000000015, 0x0000000000000000001e, "
        "N'all update old')"
    ) in sql
    assert "CAST(NULL AS int) AS [cmd]" in sql
    assert sql.endswith("ORDER BY [__$start_lsn], [__$seqval], [__$operation]")


@pytest.mark.feature("STR-07")
@pytest.mark.parametrize("command", [None, 4])
def test_the_next_page_begins_after_the_last_row(command: int | None) -> None:
    sql = page_statement(instance(), PLAN, RANGE, rows=10, after=Place(lsn(25), command, lsn(24), 3))

    assert "[__$start_lsn] >= 0x00000000000000000019" in sql
    assert ("[__$command_id] > 4" in sql) is (command is not None)


@given(st.tuples(*[st.integers(0, 2)] * 3))
def test_the_page_predicate_is_the_lexicographic_order(place: tuple[int, int, int]) -> None:
    sql = keyset_after(("a", "b", "c"), [str(part) for part in place])
    python = re.sub(r"(?<![<>])=", "==", sql).replace("AND", "and").replace("OR", "or")
    python = re.sub(r"\[(\w)\]", r"\1", python)

    for row in itertools.product(range(3), repeat=3):
        names = dict(zip("abc", row, strict=True))
        assert eval(python, {}, names) is (row > place)  # noqa: S307 - the predicate of this very test


def test_a_reader_that_cannot_see_the_end_fails_with_its_own_error_number() -> None:
    sql = require_visible(lsn(30))

    assert "start_lsn] = 0x0000000000000000001e" in sql
    assert sql.endswith("THROW 50001, 'stale reader', 1")


def watch(*batches: list[Row]) -> None:
    guard, one = OrderGuard(ORDERS), decoder()
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
