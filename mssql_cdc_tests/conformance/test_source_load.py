"""What both connectors ask of the source for the same snapshot: reads, locks and writes of its tables.

docs/snapshots-and-signals.md has the numbers of statements; here are the rules that they follow from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from mssql_cdc_tests.conformance.beside import SIGNALS, debezium_beside
from mssql_cdc_tests.conformance.debezium import DebeziumMachine, Record
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_reading_settings import statements

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sandbox, pytest.mark.timeout(600)]

TABLES = ("orders", "people", "products")
ROWS = 300
CHUNKS = 3
NAMED = re.compile(rf"\[dbo\]\.\[({'|'.join(TABLES)})\]")
WRITE = re.compile(r"^\s*(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


def fill(place: Place) -> None:
    for name in TABLES:
        place.create(name, "id int NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
        place.sql(f"INSERT INTO dbo.{name} SELECT value, N'x' FROM GENERATE_SERIES(1, {ROWS})")


def asked(place: Place) -> list[str]:
    """The statements since the log was switched on."""
    found = [text for text in statements(place, "") if "sandbox." not in text]
    place.sql("EXEC sandbox.statement_log")
    return found


def on_tables(texts: Iterable[str]) -> list[str]:
    """The statements that concern rows of the tables."""
    return [text for text in texts if NAMED.search(text) and "OBJECT_ID(" not in text]


def locking(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if "TABLOCK" in text]


def writes(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if WRITE.match(text)]


@pytest.mark.feature("SNP-15", "SNP-16")
def test_a_snapshot_locks_no_table_with_a_key_where_debezium_locks_each(
    place: Place, machine: DebeziumMachine, tmp_path: Path
):
    fill(place)
    place.settle()
    place.sql("EXEC sandbox.statement_log")
    assert place.catch_up() == 0
    ours = asked(place)
    with debezium_beside(machine, place, tmp_path, {}) as beside:
        beside.engine.wait_until(
            lambda found: any(one.source_offset.get("snapshot_completed") is True for one in found)
        )
        theirs = asked(place)
    assert len(locking(theirs)) == len(TABLES)
    assert locking(ours) == writes(ours) == []
    # To find out whether a table can be read in chunks, its chunk's end, and its rows.
    assert len(on_tables(ours)) <= 3 * len(TABLES)


@pytest.mark.feature("INC-09", "INC-10", "INC-11")
def test_an_incremental_snapshot_writes_nothing_where_debezium_writes_two_rows_a_chunk(
    place: Place, machine: DebeziumMachine, tmp_path: Path
):
    shared = {
        "snapshot.mode": "no_data",
        "signal.data.collection": "both.dbo.signals",
        "incremental.snapshot.chunk.size": str(ROWS // CHUNKS),
    }
    place.configure(**{name.replace(".", "_"): value for name, value in shared.items()})
    place.create("signals", SIGNALS)
    fill(place)
    place.settle()
    assert place.catch_up() == 0
    with debezium_beside(machine, place, tmp_path, shared) as beside:
        beside.engine.wait_until(lambda _: "Final stage" in beside.log)
        place.sql("EXEC sandbox.statement_log")
        place.signal("i1", **{"data-collections": [f"both.dbo.{name}" for name in TABLES]})
        beside.engine.wait_until(lambda found: _reads(found) >= len(TABLES) * ROWS)
        theirs = asked(place)
    assert place.catch_up() == 0
    ours = asked(place)
    assert len(writes(theirs)) >= 2 * CHUNKS * len(TABLES)
    assert writes(ours) == locking(ours) == []
    # The largest key, and for each chunk its end and its rows.
    assert len(on_tables(ours)) <= len(TABLES) * (1 + 2 * CHUNKS)


BY_MODE = pytest.mark.parametrize("mode", ["direct", "function"])
COUNTS = re.compile(r"COUNT_BIG\(\*\) FROM \[cdc\]\.")


@BY_MODE
def test_the_texts_of_statements_do_not_depend_on_which_tables_have_changed(place: Place, mode: str):
    """A server compiles each text anew and keeps its plan: texts with the tables of the moment would never recur."""
    place.configure(data_query_mode=mode)
    fill(place)
    place.settle()
    assert place.catch_up() == 0

    def after_changing(*names: str) -> set[str]:
        change(place, *names)
        place.sql("EXEC sandbox.statement_log")
        assert place.catch_up() == 0
        return set(asked(place))

    known = after_changing(*TABLES) | after_changing(TABLES[0])
    for some in (TABLES[1:2], TABLES[1:], TABLES[::2]):
        assert after_changing(*some) <= known


@BY_MODE
def test_one_statement_counts_the_changes_of_all_tables_for_a_look_and_its_range(place: Place, mode: str):
    """A look needs the counts for the bound of the range, the range to leave out tables without changes."""
    place.configure(data_query_mode=mode)
    fill(place)
    place.settle()
    assert place.catch_up() == 0
    for names in (TABLES[:1], TABLES):
        change(place, *names)
        place.sql("EXEC sandbox.statement_log")
        assert place.catch_up() == 0
        (counting,) = [text for text in asked(place) if COUNTS.search(text)]
        assert len(COUNTS.findall(counting)) == len(TABLES)
    assert place.check() == 0


def change(place: Place, *names: str) -> None:
    """Change some rows of these tables, and wait until that is captured."""
    place.sql(*(f"UPDATE TOP (3) dbo.{name} SET note = CONCAT(note, N'y')" for name in names))
    place.settle()


def _reads(records: list[Record]) -> int:
    return sum(bool(one.value) and one.value.get("op") == "r" for one in records)
