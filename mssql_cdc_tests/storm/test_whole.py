"""Fixed schedules of the sandbox, the drivers and Spark, each of which finds a defect that was planted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mssql_cdc_tests.storm.conftest import Make
from mssql_cdc_tests.storm.mutants import WHOLE_MUTANTS
from mssql_cdc_tests.storm.whole_machine import WholeStorm

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def row_goes_while_capture_is_off(played: WholeStorm) -> None:
    played.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    played.come_to_rest()
    played.disable_change_enable("orders", [("orders", 0, None)])


def key_gets_a_column(played: WholeStorm) -> None:
    """CDC identifies the rows by another index, so that the table's own key may change while it is captured."""
    played.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    played.come_to_rest()
    played.another_key("orders", "id, part", wider=False, fresh=False, key=0)
    played.scan(4)
    played.come_to_rest()
    played.other_part("orders", 0)
    played.scan(4)


def key_gets_another_type(played: WholeStorm) -> None:
    """While the table is captured, by an index that lacks the column: a repair would sweep what has the former key."""
    played.disabled("orders")
    played.world.run("DROP INDEX ux_orders ON dbo.orders; CREATE UNIQUE INDEX ux_orders ON dbo.orders (id)")
    played.another_key("orders", "id, part", wider=False, fresh=True, key=0)
    played.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    played.come_to_rest()
    played.world.run("ALTER TABLE dbo.orders DROP CONSTRAINT pk_orders")
    played.world.run("ALTER TABLE dbo.orders ALTER COLUMN part decimal(12, 2) NOT NULL")
    played.world.run("ALTER TABLE dbo.orders ADD CONSTRAINT pk_orders PRIMARY KEY (id, part)")
    played.transaction([("orders", 1, "c")])
    played.scan(4)


def key_goes_and_comes_back(played: WholeStorm) -> None:
    """The same instance captures three structures of which the third is the first one."""
    played.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    played.come_to_rest()
    for columns in ("part, id", "id"):
        played.another_key("orders", columns, wider=False, fresh=False, key=0)
        played.scan(4)
        played.look(3)
    played.other_part("orders", 0)
    played.transaction([("orders", 1, "c")])
    played.scan(4)


def column_gets_longer_between_two_groups_of_a_snapshot(played: WholeStorm) -> None:
    """The long value is captured before the second group is read, so that its own event does not mend the row."""
    played.transaction([("people", key, "a") for key in range(4)])
    played.come_to_rest()
    played.ask("people")

    def alter() -> None:
        played.structure_changes("people", "longer", fresh=False, key=3)
        played.scan(500)

    played.look_while(alter, at=3)


def column_comes_back_with_another_type(played: WholeStorm) -> None:
    played.transaction([("people", 0, "a")])
    played.come_to_rest()
    for kind in ("default", "another type"):
        played.structure_changes("people", kind, fresh=True, key=0)
        played.transaction([("people", 0, kind)])
        played.scan(500)
        played.look(2)


def late_run_meets_a_wider_column(played: WholeStorm) -> None:
    played.transaction([("orders", 0, "a")])
    played.come_to_rest()
    played.late_rival_widens_a_column("orders", 0, [("orders", 1, "x")])


def records_are_written_while_the_third_run_of_a_snapshot_waits(played: WholeStorm) -> None:
    played.come_to_rest()
    commits = "snapshot.chunk_groups.commit"
    deaths = [(commits, 1, True), (commits, 1, False)]
    played.records_are_written_during_a_snapshot("people", 4, deaths, [("orders", 0, "a")])


@pytest.mark.parametrize(
    ("schedule", "what", "seen"),
    [
        (row_goes_while_capture_is_off, "rows that were deleted while capture was off are not swept", "differs"),
        (key_gets_a_column, "a changed key is not noticed", "the current table of orders differs"),
        (key_gets_another_type, "the type of a key column is not part of the key", "orders holds a row twice"),
        (key_goes_and_comes_back, "a structure that returns gets its former version", "does not come to rest"),
        (
            column_gets_longer_between_two_groups_of_a_snapshot,
            "rows are read with a structure that the change table no longer has",
            "the change log of people differs",
        ),
        (
            late_run_meets_a_wider_column,
            "a schema change takes over what another run committed meanwhile",
            "a position is there twice",
        ),
        (
            column_comes_back_with_another_type,
            "a column of another type continues in the former one's Delta column",
            "stay given up",
        ),
        (
            records_are_written_while_the_third_run_of_a_snapshot_waits,
            "a snapshot that another run continues is not open",
            "rows of snapshots of people",
        ),
    ],
)
def test_fixed_schedule_of_the_whole_finds_a_defect(
    make: Make, schedule: Callable[[WholeStorm], None], what: str, seen: str
):
    _play(make, schedule)
    (mutant,) = (mutant for mutant in WHOLE_MUTANTS if mutant.what == what)
    with mutant.planted(), pytest.raises(AssertionError, match=seen):
        _play(make, schedule)


@pytest.mark.parametrize("names", [["people", "orders"], ["orders", "people"]])
def test_records_have_the_events_of_a_table_that_had_the_name_of_a_lost_one(make: Make, names: list[str]):
    """It was read under the other name and has its own back, under which no structure is recorded yet."""
    played = WholeStorm(make)
    with played.stack:
        played.transaction([("people", 0, "a"), ("orders", 0, "a")])
        played.come_to_rest()
        played.name_of_a_lost_table_is_taken(names, changes=[], before=2, looks=3)


def _play(make: Make, schedule: Callable[[WholeStorm], None]) -> None:
    played = WholeStorm(make)
    try:
        schedule(played)
    finally:
        played.teardown()
