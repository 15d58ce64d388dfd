"""`sp_cdc_generate_wrapper_function`: scripts for functions over times, which must run and answer."""

from __future__ import annotations

import pytest

from tests.cdc.client import World

GENERATE = "EXEC sys.sp_cdc_generate_wrapper_function @capture_instance = N'dbo_t'"


def prepared(world: World) -> World:
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, b int)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1, 1)")
    world.wait(1)
    world.execute("UPDATE t SET a = 2")
    world.wait(1)
    world.execute("DELETE t")
    world.capture()
    return world


def create(world: World, more: str = "") -> list[str]:
    """Run the scripts; the functions' names."""
    scripts = world.rows(GENERATE + more)
    for _, script in scripts:
        world.execute(script)
    return [name for name, _ in scripts]


def test_one_script_per_function_of_the_instance(world: World) -> None:
    """[doc] all changes, and net changes where they are supported."""
    prepared(world)
    answer = world.execute(GENERATE)
    assert answer.names[0] == ["function_name", "create_script"]
    assert [row[0] for row in answer.sets[0]] == ["fn_all_changes_dbo_t", "fn_net_changes_dbo_t"]


def test_the_wrapper_shows_letters_for_operations(world: World) -> None:
    """[doc] I, UO, UN, D; flags are set for UN only."""
    create(prepared(world), ", @column_list = N'id, a', @update_flag_list = N'a,b'")
    answer = world.execute("SELECT * FROM dbo.fn_all_changes_dbo_t(NULL, NULL, N'all update old')")
    assert answer.names[0] == ["__CDC_STARTLSN", "__CDC_SEQVAL", "id", "a", "__CDC_OPERATION", "a_uflag", "b_uflag"]
    assert [row[2:5] for row in answer.sets[0]] == [(1, 1, "I"), (1, 1, "UO"), (1, 2, "UN"), (1, 2, "D")]
    assert answer.sets[0][2][5:] == (1, 0)
    assert answer.sets[0][0][5:] == (None, None)


def test_the_wrapper_of_net_changes_collapses(world: World) -> None:
    """[doc] no LSNs; what came and went within the range is not shown."""
    create(prepared(world))
    answer = world.execute("SELECT * FROM dbo.fn_net_changes_dbo_t(NULL, NULL, N'all')")
    assert (answer.names[0], answer.sets[0]) == (["id", "a", "b", "__CDC_OPERATION"], [])


@pytest.mark.parametrize(("closed", "expected"), [(1, ["UN"]), (0, [])])
def test_the_range_is_open_below_and_closed_above_unless_said_otherwise(
    world: World, closed: int, expected: list[str]
) -> None:
    """[doc] commit time > start_time and <= end_time; < with @closed_high_end_point = 0."""
    create(prepared(world), f", @closed_high_end_point = {closed}")
    times = (
        "DECLARE @s datetime, @e datetime; "
        "SELECT @s = MIN(tran_end_time) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 AND start_lsn IN "
        "(SELECT __$start_lsn FROM cdc.dbo_t_CT WHERE __$operation = 2); "
        "SELECT @e = MIN(tran_end_time) FROM cdc.lsn_time_mapping WHERE start_lsn IN "
        "(SELECT __$start_lsn FROM cdc.dbo_t_CT WHERE __$operation = 4); "
    )
    rows = world.rows(times + "SELECT __CDC_OPERATION FROM dbo.fn_all_changes_dbo_t(@s, @e, N'all')")
    assert [row[0] for row in rows] == expected


REFUSALS = {
    "[doc] unknown instance": ("EXEC sys.sp_cdc_generate_wrapper_function @capture_instance = N'no'", 22920),
    "[doc] unknown column": (GENERATE + ", @column_list = N'x'", 22918),
    "[doc] unknown flag": (GENERATE + ", @update_flag_list = N'x'", 22919),
    "[doc] columns without instance": ("EXEC sys.sp_cdc_generate_wrapper_function @column_list = N'id'", 22921),
}


@pytest.mark.parametrize(("statement", "number"), REFUSALS.values(), ids=REFUSALS)
def test_wrong_arguments_are_refused(world: World, statement: str, number: int) -> None:
    prepared(world)
    assert world.error(statement).number == number
