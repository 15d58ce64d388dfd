"""A snapshot plans its chunks while it reads: what is planned when, and what a kill in between leaves."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.snapshot import take
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import facts_of
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.storm.lake import Killed, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUP = 2


@pytest.fixture
def tables(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A large table, which comes first by its name, and a small one, read in groups of two chunks of three rows."""
    monkeypatch.setattr(take, "CHUNK_ROWS", 3)
    monkeypatch.setattr(take, "GROUP_CHUNKS", GROUP)
    place.configure()
    place.create("large", "a int NOT NULL, b int NOT NULL, note nvarchar(9) NULL, PRIMARY KEY (a, b)")
    place.create("small", "id int NOT NULL PRIMARY KEY")
    rows = ", ".join(f"({number // 5}, {number % 5}, N'one')" for number in range(24))
    place.sql(f"INSERT INTO dbo.large VALUES {rows}", "INSERT INTO dbo.small VALUES (1), (2)")
    place.settle()
    return place


@pytest.mark.sandbox
def test_the_first_rows_are_in_the_lake_before_a_large_table_is_planned(tables: Place):
    """Each step is made where a group needs it: none reads the keys of more than one chunk, and none has OFFSET."""
    tables.sql("EXEC sandbox.statement_log")
    assert tables.catch_up() == 0
    rows = tables.control.rows(
        "SELECT text, parameters FROM sandbox.statements ORDER BY number", doing="reading the log of statements"
    )
    found = [(row.text, row.parameters) for row in rows if "FROM [dbo].[" in (row.text or "")]
    reads = {table: _first(found, rf"AS \[c0_0\].* FROM \[dbo\]\.\[{table}\]") for table in ("small", "large")}
    planned = [number for number, (text, _) in enumerate(found) if "ROW_NUMBER() OVER (ORDER BY [a], [b])" in text]
    later = [number for number in planned if number > reads["large"]]
    assert len(planned) - len(later) == 1 + GROUP - 1  # The look at whether it can be read; the first group.
    assert len(later) > GROUP
    assert reads["small"] < later[0]
    assert not [text for text, _ in found if "OFFSET" in text]
    steps = [(text, values) for text, values in found if "AS [c0_0]" not in text]
    assert all("SELECT TOP (@P1) " in text for text, _ in steps)
    assert {_first_value(values) for _, values in steps} == {1, 2, 3}
    assert tables.check() == 0


@pytest.mark.sandbox
def test_small_tables_do_not_wait_for_a_large_table_without_a_key(place: Place, monkeypatch: pytest.MonkeyPatch):
    """It is read whole, and is the first by its name; the small one without a key is read before it, too."""
    monkeypatch.setattr(take, "CHUNK_ROWS", 3)
    place.configure()
    place.create("all_events", "note nvarchar(9) NULL")
    place.create("events", "note nvarchar(9) NULL")
    place.create("small", "id int NOT NULL PRIMARY KEY")
    place.sql(
        f"INSERT INTO dbo.all_events VALUES {', '.join(['(1)'] * 24)}",
        "INSERT INTO dbo.events VALUES (1), (2)",
        "INSERT INTO dbo.small VALUES (1), (2)",
    )
    place.settle()
    assert place.catch_up() == 0
    store = small_table(Layout(str(place.warehouse), "shop", place.database), "notifications")
    done = [row["additional_data"] for row in store.rows() if row["type"] == "TABLE_SCAN_COMPLETED"]
    assert [dict(one)["scanned_collection"].rpartition(".")[2] for one in done] == ["events", "small", "all_events"]
    assert place.check() == 0


@pytest.mark.parametrize(
    ("target", "call", "after"),
    [
        pytest.param("mssql_cdc.capture.snapshot.chunk_groups._further", 6, False, marks=pytest.mark.long),
        ("mssql_cdc.capture.snapshot.chunk_groups._further", 6, True),
        ("mssql_cdc.capture.snapshot.chunk_groups.commit", 3, False),
        pytest.param("mssql_cdc.capture.snapshot.chunk_groups.commit", 3, True, marks=pytest.mark.long),
    ],
)
def test_planning_continues_after_the_chunks_that_are_committed(tables: Place, target: str, call: int, *, after: bool):
    """What was planned and not read is planned again, with rows that have come and gone meanwhile."""
    with killed_at(target, call, after=after), pytest.raises(Killed):
        tables.catch_up()
    before = _chunks(tables)
    assert before
    assert None not in [upper for _, _, upper in before]
    tables.sql("DELETE FROM dbo.large WHERE b = 1", "INSERT INTO dbo.large VALUES (1, 77, N'new'), (9, 9, N'new')")
    assert tables.catch_up() == 0
    chunks = _chunks(tables)
    assert chunks[: len(before)] == before
    assert [number for number, _, _ in chunks] == list(range(len(chunks)))
    assert [lower for _, lower, _ in chunks] == [None, *[upper for _, _, upper in chunks[:-1]]]
    assert chunks[-1][2] is None
    tables.settle()
    assert tables.catch_up() == 0
    assert tables.check() == 0


def test_a_snapshot_that_an_earlier_version_planned_whole_goes_on_with_its_chunks(tables: Place):
    with killed_at("mssql_cdc.capture.snapshot.chunk_groups.commit", 1, after=False), pytest.raises(Killed):
        tables.catch_up()
    store = small_table(Layout(str(tables.warehouse), "shop", tables.database), "snapshots")
    plan = json.loads(store.rows()[-1]["plan"])
    for table in plan["tables"]:
        edges = [None, *([["1", "3"], ["3", "0"]] if table["table"]["name"] == "large" else []), None]
        table["chunks"] = [
            {"number": number, "lower": lower, "upper": upper, "keys": None}
            for number, (lower, upper) in enumerate(pairwise(edges))
        ]
        del table["edition"], table["following"]
    store.append(store.state(), [{"id": plan["id"], "plan": json.dumps(plan)}], {"kind": "plan"})
    assert tables.catch_up() == 0
    assert _chunks(tables) == [(0, None, ["1", "3"]), (1, ["1", "3"], ["3", "0"]), (2, ["3", "0"], None)]
    assert tables.check() == 0


@pytest.mark.parametrize("key", ["a, b DESC", pytest.param("a DESC, b", marks=pytest.mark.long)])
def test_a_snapshot_goes_on_with_a_key_in_both_directions(place: Place, monkeypatch: pytest.MonkeyPatch, key: str):
    monkeypatch.setattr(take, "CHUNK_ROWS", 3)
    monkeypatch.setattr(take, "GROUP_CHUNKS", GROUP)
    place.configure(incremental_snapshot_chunk_size="3")
    place.create("large", f"a int NOT NULL, b int NULL, note nvarchar(9) NULL, UNIQUE CLUSTERED ({key})")
    rows = ", ".join(f"({number // 5}, {number % 5 or 'NULL'}, N'one')" for number in range(24))
    place.sql(f"INSERT INTO dbo.large VALUES {rows}")
    place.settle()
    with killed_at("mssql_cdc.capture.snapshot.chunk_groups.commit", 3, after=False), pytest.raises(Killed):
        place.catch_up()
    before = _chunks(place)
    place.sql("DELETE FROM dbo.large WHERE b = 1", "INSERT INTO dbo.large VALUES (1, 77, N'new'), (9, 9, N'new')")
    assert place.catch_up() == 0
    chunks = _chunks(place)
    assert chunks[: len(before)] == before
    assert len(chunks) > len(before) == 2 * GROUP
    assert [lower for _, lower, _ in chunks] == [None, *[upper for _, _, upper in chunks[:-1]]]
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0
    assert place.command("snapshot", "--table", "dbo.large", "--incremental") == 0
    place.sql("UPDATE dbo.large SET note = N'two' WHERE b = 2", "DELETE FROM dbo.large WHERE b IS NULL AND a > 2")
    place.settle()
    dies = killed_at("mssql_cdc.capture.incremental.emission.commit", 1, after=True)
    with patch("mssql_cdc.capture.incremental.chunks.GROUP_ROWS", 6), dies, pytest.raises(Killed):
        place.catch_up()
    assert place.catch_up() == 0
    assert place.check() == 0
    read = place.query("SELECT _snapshot FROM t WHERE _snapshot LIKE 'incremental%'", "large", "changes")
    assert len(read) == 19, "every row once"


def _first(found: list[tuple[str, str]], pattern: str) -> int:
    """The place of the first statement that has the pattern."""
    return next(number for number, (text, _) in enumerate(found) if re.search(pattern, text))


def _first_value(parameters: str) -> int:
    """The value of the first parameter of a prepared statement."""
    (value,) = re.findall(r", =(\d+)", parameters)[:1]
    return int(value)


def _chunks(place: Place) -> list[tuple[int, Any, Any]]:
    """The chunks of the large table that its change log has, oldest first, with their bounds."""
    history = DeltaTable(place.uri("large", "changes")).history()
    commits = [facts for entry in reversed(history) if "bounds" in (facts := facts_of(entry) or {})]
    return [
        (number, *bounds)
        for facts in commits
        for number, bounds in zip(facts["chunks"], json.loads(facts["bounds"]), strict=True)
    ]
