"""Waits after a failure, also where the clock was set back since: each stood still for as long as it had been ahead."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mssql_cdc.plan.decisions import Range, Wait
from mssql_cdc.plan.facts import Cursor, Outcome
from mssql_cdc.plan.waits import is_held_back
from mssql_cdc_tests.unit.plan.simulation import NOW, facts, lsn, member, planned
from mssql_cdc_tests.unit.plan.test_planner import pending

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("ago", "held"),
    [(0, True), (9, True), (10, False), (3_600, False), (-3, True), (-3_600, False)],
)
def test_a_failure_holds_back_for_its_wait_and_no_longer(ago: int, *, held: bool):
    earlier = Outcome(1, NOW - timedelta(seconds=ago))
    assert is_held_back(facts(member("a", 8)), earlier) is held


def test_a_retry_that_was_planned_by_a_clock_ahead_is_due():
    stuck = facts(member("a", 8), member("b", 4), cursor=pending(8))
    waits = replace(
        stuck, cursor=Cursor(stuck.cursor.pending_key, 1, NOW + timedelta(seconds=5), tables=("shop.dbo.b",))
    )
    assert planned(replace(waits, captured=lsn(8)), Wait).until == NOW + timedelta(seconds=5)
    ahead = replace(waits, cursor=replace(waits.cursor, not_before=NOW + HOUR))
    assert planned(ahead, Range).attempt == 2
