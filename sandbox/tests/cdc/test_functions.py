"""LSN functions and change functions, their corner cases first."""

from __future__ import annotations

import pytest

from tests.cdc.client import World

TABLE = "CREATE TABLE dbo.t (id int PRIMARY KEY, a int)"
ZERO = bytes(10)
ALL = "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t({}, {}, {})"
MIN, MAX = "sys.fn_cdc_get_min_lsn('dbo_t')", "sys.fn_cdc_get_max_lsn()"


def filled(world: World) -> None:
    world.execute(TABLE)
    world.enable("t")
    for statement in (
        "INSERT t VALUES (1, 1)",
        "UPDATE t SET a = 2",
        "INSERT t VALUES (2, 2)",
        "DELETE t WHERE id = 2",
    ):
        world.execute(statement)
        world.wait(1)
    world.capture()


def test_max_lsn_without_cdc_is_208(world: World) -> None:
    """[fab]."""
    failure = world.error("SELECT sys.fn_cdc_get_max_lsn()")
    assert (failure.number, failure.text) == (208, "Invalid object name 'cdc.lsn_time_mapping'.")


def test_max_lsn_is_null_before_the_first_mapping(world: World) -> None:
    """[fab]."""
    world.enable()
    assert world.value("SELECT sys.fn_cdc_get_max_lsn()") is None


def test_max_lsn_is_the_largest_start_lsn(world: World) -> None:
    """[doc] dummy rows included."""
    filled(world)
    assert world.value("SELECT sys.fn_cdc_get_max_lsn()") == world.value(
        "SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping"
    )


def test_min_lsn_of_an_unknown_instance_is_zero(world: World) -> None:
    """[fab]."""
    world.enable()
    assert world.rows("SELECT sys.fn_cdc_get_min_lsn('x'), sys.fn_cdc_get_min_lsn(NULL)") == [(ZERO, ZERO)]


def test_min_lsn_of_the_first_instance_is_there_at_once(world: World) -> None:
    """[fab]."""
    world.execute(TABLE)
    world.stop_capture()
    world.enable("t")
    assert world.value(f"SELECT {MIN}") == world.value("SELECT start_lsn FROM cdc.change_tables")


def test_min_lsn_of_a_later_instance_is_null_until_the_next_scan(world: World) -> None:
    """[fab] though change_tables has the LSN all along."""
    filled(world)
    world.execute("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    world.stop_capture()
    world.enable_table("u")
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_u')") is None
    assert world.value("SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'dbo_u'") is not None
    world.capture()
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_u')") is not None


LSN_STEPS = {
    "[doc] next": ("increment", "0x0000000000000005900005", 12),
    "[?] carry": ("increment", "0x000000270000FFFFFFFF", 0x000000270000FFFFFFFF + 1),
    "[doc] previous": ("decrement", "0x00000027000000010000", 0x00000027000000010000 - 1),
}


@pytest.mark.parametrize(("function", "lsn", "expected"), list(LSN_STEPS.values())[1:], ids=list(LSN_STEPS)[1:])
def test_lsn_arithmetic_counts_80_bits(world: World, function: str, lsn: str, expected: int) -> None:
    value = world.value(f"SELECT sys.fn_cdc_{function}_lsn({lsn})")
    assert int.from_bytes(value, "big") == expected


def test_lsn_to_time_knows_only_mapped_lsns(world: World) -> None:
    """[doc] tran_end_time of the exact row."""
    filled(world)
    ((lsn, time),) = world.rows(
        "SELECT TOP 1 start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC"
    )
    assert world.value(f"SELECT sys.fn_cdc_map_lsn_to_time(0x{lsn.hex()})") == time
    assert world.value("SELECT sys.fn_cdc_map_lsn_to_time(0x01)") is None


@pytest.mark.parametrize(
    ("operator", "offset"),
    [
        ("largest less than", 1),
        ("largest less than or equal", 2),
        ("smallest greater than", 3),
        ("smallest greater than or equal", 2),
    ],
)
def test_time_to_lsn_takes_the_neighbour_that_is_named(world: World, operator: str, offset: int) -> None:
    """[doc] compares tran_end_time; rows are one second apart here."""
    filled(world)
    mapped = world.rows(
        "SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn"
    )
    found = world.value(
        "DECLARE @t datetime = (SELECT tran_end_time FROM cdc.lsn_time_mapping "
        f"WHERE start_lsn = 0x{mapped[2][0].hex()}) SELECT sys.fn_cdc_map_time_to_lsn('{operator}', @t)"
    )
    assert found == mapped[offset][0]


def test_time_to_lsn_before_everything_is_null(world: World) -> None:
    filled(world)
    assert world.value("SELECT sys.fn_cdc_map_time_to_lsn('largest less than', '20000101')") is None


def test_column_functions(world: World) -> None:
    """[doc] unknown columns are NULL, no error."""
    filled(world)
    assert world.rows(
        "SELECT sys.fn_cdc_get_column_ordinal('dbo_t', 'a'), sys.fn_cdc_get_column_ordinal('dbo_t', 'x'), "
        "sys.fn_cdc_is_bit_set(2, 0x02), sys.fn_cdc_is_bit_set(1, 0x02), "
        "sys.fn_cdc_has_column_changed('dbo_t', 'a', 0x02)"
    ) == [(2, None, 1, 0, 1)]


OPTIONS = {
    "[doc] all leaves before images out": ("N'all'", [2, 4, 2, 1]),
    "[doc] all update old has them": ("N'all update old'", [2, 3, 4, 2, 1]),
    "[sys] blanks and case do not matter": ("N' ALL '", [2, 4, 2, 1]),
}


@pytest.mark.parametrize(("option", "operations"), OPTIONS.values(), ids=OPTIONS)
def test_all_changes_has_the_rows_of_its_option(world: World, option: str, operations: list[int]) -> None:
    filled(world)
    answer = world.execute(ALL.format(MIN, MAX, option))
    assert answer.names[0] == ["__$start_lsn", "__$seqval", "__$operation", "__$update_mask", "id", "a"]
    assert [row[2] for row in answer.sets[0]] == operations


BAD_ARGUMENTS = {
    "[doc] NULL from": ("NULL", MAX, "N'all'"),
    "[doc] NULL to": (MIN, "NULL", "N'all'"),
    "[doc] from below the low end": (f"sys.fn_cdc_decrement_lsn({MIN})", MAX, "N'all'"),
    "[doc] to above the maximum": (MIN, f"sys.fn_cdc_increment_lsn({MAX})", "N'all'"),
    "[doc] from after to": (MAX, MIN, "N'all'"),
    "[doc] unknown option": (MIN, MAX, "N'everything'"),
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_all_changes_answers_any_bad_argument_with_313(world: World, arguments: tuple[str, str, str]) -> None:
    filled(world)
    failure = world.error(ALL.format(*arguments))
    assert (failure.number, failure.severity, failure.state) == (313, 16, 3)
    assert failure.text == (
        "An insufficient number of arguments were supplied for the procedure or function "
        "cdc.fn_cdc_get_all_changes_ ... ."
    )


def test_all_changes_range_is_closed_on_both_ends(world: World) -> None:
    """[doc]."""
    filled(world)
    lsns = [row[0] for row in world.rows("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00")]
    low, high = sorted(lsns)[1], sorted(lsns)[2]
    rows = world.rows(ALL.format(f"0x{low.hex()}", f"0x{high.hex()}", "N'all'"))
    assert [row[0] for row in rows] == [low, high]


def test_all_changes_without_permission_is_229(world: World) -> None:
    """[fab] the placeholder's name again."""
    filled(world)
    world.add_user("reader")
    failure = world.error(ALL.format("0x01", "0x02", "N'all'"), login="reader")
    assert (failure.number, failure.severity, failure.state) == (229, 14, 5)
    assert f"'fn_cdc_get_all_changes_...', database '{world.database}', schema 'cdc'" in failure.text


def test_net_changes_collapses_over_the_window(world: World) -> None:
    """[sys][fab] insert and update become one insert; insert and delete vanish."""
    filled(world)
    net = f"SELECT __$operation, __$update_mask, id, a FROM cdc.fn_cdc_get_net_changes_dbo_t({MIN}, {MAX}, "
    assert world.rows(net + "N'all')") == [(2, None, 1, 2)]
    assert world.rows(net + "N'all with merge')") == [(5, None, 1, 2)]


def test_net_changes_exists_only_where_supported(world: World) -> None:
    """[doc] 208 otherwise."""
    world.execute(TABLE)
    world.enable("t", supports_net_changes="0")
    failure = world.error(f"SELECT * FROM cdc.fn_cdc_get_net_changes_dbo_t({MIN}, {MAX}, N'all')")
    assert (failure.number, failure.text) == (208, "Invalid object name 'cdc.fn_cdc_get_net_changes_dbo_t'.")


def test_net_changes_bad_arguments_name_the_net_placeholder(world: World) -> None:
    filled(world)
    failure = world.error(f"SELECT * FROM cdc.fn_cdc_get_net_changes_dbo_t(NULL, {MAX}, N'all')")
    assert failure.text.endswith("cdc.fn_cdc_get_net_changes_ ... .")


def test_change_function_follows_a_new_instance_of_the_same_name(world: World) -> None:
    """A statement sent again after re-enabling shows the new columns."""
    filled(world)
    text = ALL.format(MIN, MAX, "N'all'")
    world.rows(text)
    world.execute("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'")
    world.execute("ALTER TABLE t ADD b int")
    world.enable_table("t")
    world.execute("INSERT t VALUES (9, 9, 9)")
    world.capture()
    answer = world.execute(text)
    assert answer.names[0][-1] == "b"
    assert [row[-1] for row in answer.sets[0]] == [9]
