"""One order everywhere, two page predicates; changes that function mode cannot order are rejected (rule B11)."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.lsn import LsnRange
from mssql_cdc.source.sqlserver.changes import (
    ORDER_WITH_COMMAND,
    Place,
    conditions,
    page_parameters,
    page_statement,
)
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.sql import quote, text
from mssql_cdc_tests.unit.source.raw import ORDERS, instance, lsn

PLAN = RowPlan.of(ORDERS.columns)
RANGE = LsnRange(lsn(20), lsn(30))


def test_names_and_literals_cannot_break_out() -> None:
    assert quote("a]b") == "[a]]b]"
    assert text("O'Neil") == "N'O''Neil'"


def statements(after: Place | None = None, **more: Any) -> list[str]:
    one = instance(**more)
    return [page_statement(one, PLAN, condition, after) for condition in conditions(one, after)]


@pytest.mark.feature("STR-06")
def test_a_change_table_is_read_in_the_full_order() -> None:
    (sql,) = statements()

    assert "SELECT TOP (@rows) [__$start_lsn] AS [lsn], [__$command_id] AS [cmd]" in sql
    assert "FROM [cdc].[dbo_orders_CT] WHERE [__$start_lsn] > @from AND [__$start_lsn] <= @to" in sql
    assert sql.endswith("ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]")


@pytest.mark.feature("STR-05")
def test_a_function_is_read_where_the_change_table_may_not_be() -> None:
    (sql,) = statements(change_table=None)

    assert "[fn_cdc_get_all_changes_dbo_orders](sys.fn_cdc_increment_lsn(@from), @to, N'all update old')" in sql
    assert "CAST(NULL AS int) AS [cmd]" in sql
    assert sql.endswith("ORDER BY [__$start_lsn], [__$seqval], [__$operation]")


def test_a_page_ends_its_commit_before_the_next_ones_begin() -> None:
    """Review, 5.5: inside one huge transaction every page read what was before it again."""
    after = Place(lsn(25), 4, lsn(24), 3)
    lsn_, command, sequence = "[__$start_lsn] = @lsn", "[__$command_id] = @command", "[__$seqval] = @sequence"

    assert conditions(instance(), after) == [
        f"{lsn_} AND {command} AND {sequence} AND [__$operation] > @operation",
        f"{lsn_} AND {command} AND [__$seqval] > @sequence",
        f"{lsn_} AND [__$command_id] > @command",
        "[__$start_lsn] > @lsn AND [__$start_lsn] <= @to",
    ]
    assert conditions(instance(), replace(after, command_id=None))[:2] == [
        f"{lsn_} AND [__$command_id] IS NULL AND {sequence} AND [__$operation] > @operation",
        f"{lsn_} AND [__$command_id] IS NULL AND [__$seqval] > @sequence",
    ]
    assert conditions(instance(has_command_id=False), after)[:2] == [
        f"{lsn_} AND {sequence} AND [__$operation] > @operation",
        f"{lsn_} AND [__$seqval] > @sequence",
    ]


@pytest.mark.parametrize("more", [{}, {"change_table": None}])
def test_the_text_of_a_page_stays_the_same_from_poll_to_poll(more: dict[str, object]) -> None:
    """Review, 5.8: every text is a plan in the server's cache."""
    places = Place(lsn(25), 4, lsn(24), 3), Place(lsn(250_000), 123_456, lsn(249_999), 1)

    assert statements(places[0], **more) == statements(places[1], **more)
    for rows, wanted in ((7, RANGE), (99_999, LsnRange(lsn(1), lsn(2**70)))):
        lengths = [len(one or "") for place in places for one in page_parameters(wanted, rows, place)]
        assert lengths == [20, 20, 10, 20, 10, 20, 10] * 2


ROW = st.tuples(*[st.integers(0, 2)] * 4)


@given(ROW)
def test_the_conditions_of_a_page_are_the_lexicographic_order(place: tuple[int, ...]) -> None:
    after = Place(lsn(place[0]), place[1], lsn(place[2]), place[3])
    names = ("lsn", "command", "sequence", "operation")
    given_ = dict(zip(names, place, strict=True)) | {"to": 2}

    def holds(condition: str, row: tuple[int, ...]) -> bool:
        values: dict[str, int] = dict(zip(ORDER_WITH_COMMAND, row, strict=True))
        python = re.sub(r"\[([^\]]+)\]", lambda found: str(values[found[1]]), condition)
        python = re.sub(r"@(\w+)", lambda found: str(given_[found[1]]), python)
        return bool(eval(re.sub(r"(?<![<>])=", "==", python).replace("AND", "and")))  # noqa: S307 - this very condition

    for row in itertools.product(range(3), repeat=4):
        found = [holds(condition, row) for condition in conditions(instance(), after)]
        assert sum(found) == (row > place)
