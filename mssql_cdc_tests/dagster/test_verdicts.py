"""What a table's check advises, by the state of the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from mssql_cdc.defs.verdicts import Condition, Verdict, verdict_of
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.steps import Entry

GAP = Gap("shop.dbo.orders", 0, "00000027:00000010:0003", None, "CDC was switched off")


def verdict(entry: Entry, gaps: Sequence[Gap] = ()) -> Verdict:
    found = Condition(entry, gaps, None, None, timedelta(0), timedelta(days=3))
    return verdict_of(found, lambda text: text)


@pytest.mark.parametrize(
    ("status", "gaps", "advised"),
    [
        ("lost", [GAP], ["materialize the table's partition of the asset snapshots", "; then acknowledge the gap"]),
        ("lost", [], ["materialize the table's partition of the asset snapshots"]),
        ("streaming", [GAP], ["acknowledge the gap"]),
        ("failed", [], ["mend what the problem names; the next run tries again"]),
    ],
)
def test_a_red_check_says_what_to_do(status: str, gaps: list[Gap], advised: list[str]) -> None:
    found = verdict(Entry(status, to="05", reason="gone"), gaps)  # type: ignore[arg-type]
    assert not found.passed
    assert found.what_to_do is not None
    assert found.what_to_do.startswith(advised[0])
    assert all(text in found.what_to_do for text in advised)


def test_a_table_that_was_given_up_before_it_streamed_needs_a_snapshot() -> None:
    """What has a position is read again by a run; what has none has to begin."""
    assert "asset snapshots" in (verdict(Entry("failed", reason="no key")).what_to_do or "")
    assert "asset snapshots" not in (verdict(Entry("failed", to="05", reason="x")).what_to_do or "")


def test_a_table_that_streams_passes() -> None:
    assert verdict(Entry("streaming")) == Verdict(passed=True)
