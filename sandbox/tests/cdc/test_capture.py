"""What committed changes leave in change tables. Every case names its evidence."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cdc.client import World

META = "__$operation, __$update_mask, __$command_id"


@dataclass(frozen=True)
class Case:
    """Statements on a table, and the rows they must leave: operation, mask in hex, command id, values."""

    table: str
    statements: tuple[str, ...]
    columns: str
    expected: tuple[tuple, ...]


CASES = {
    "[fab] a two-row insert numbers its rows": Case(
        "id int PRIMARY KEY, a int",
        ("INSERT t VALUES (1, 10), (2, 20)",),
        "id, a",
        ((2, "03", 1, 1, 10), (2, "03", 2, 2, 20)),
    ),
    "[fab] update keeps mask and command on both images": Case(
        "id int PRIMARY KEY, a int, b int, c int, d int",
        ("INSERT t VALUES (1, 1, 1, 1, 1)", "UPDATE t SET b = 2"),
        "id, b",
        ((2, "1f", 1, 1, 1), (3, "04", 1, 1, 1), (4, "04", 1, 1, 2)),
    ),
    "[est] nine columns have a two-byte mask": Case(
        ", ".join(["id int PRIMARY KEY", *(f"c{n} int" for n in range(2, 10))]),
        ("INSERT t (id) VALUES (1)", "UPDATE t SET c9 = 1"),
        "id, c9",
        ((2, "01ff", 1, 1, None), (3, "0100", 1, 1, None), (4, "0100", 1, 1, 1)),
    ),
    "[dbz PR 7728] a key update is delete and insert": Case(
        "id int PRIMARY KEY, a int",
        ("INSERT t VALUES (1, 1)", "UPDATE t SET id = 6 WHERE id = 1"),
        "id, a",
        ((2, "03", 1, 1, 1), (1, "03", 1, 1, 1), (2, "03", 2, 6, 1)),
    ),
    "[psy] an update of a unique column is delete and insert": Case(
        "id int PRIMARY KEY, code int UNIQUE",
        ("INSERT t VALUES (1, 5)", "UPDATE t SET code = 7"),
        "id, code",
        ((2, "03", 1, 1, 5), (1, "03", 1, 1, 5), (2, "03", 2, 1, 7)),
    ),
    "[doc] an update which changes nothing leaves nothing": Case(
        "id int PRIMARY KEY, a int",
        ("INSERT t VALUES (1, 1)", "UPDATE t SET a = a"),
        "id, a",
        ((2, "03", 1, 1, 1),),
    ),
    "[fab] an untouched max column is NULL before, present after": Case(
        "id int PRIMARY KEY, a int, note nvarchar(max)",
        ("INSERT t VALUES (1, 1, 'long')", "UPDATE t SET a = 2"),
        "id, note",
        ((2, "07", 1, 1, "long"), (3, "02", 1, 1, None), (4, "02", 1, 1, "long")),
    ),
    "[doc] a changed max column has both images": Case(
        "id int PRIMARY KEY, note varchar(max)",
        ("INSERT t VALUES (1, 'old')", "UPDATE t SET note = 'new'", "DELETE t"),
        "id, note",
        ((2, "03", 1, 1, "old"), (3, "02", 1, 1, "old"), (4, "02", 1, 1, "new"), (1, "03", 1, 1, "new")),
    ),
    "[doc] text is NULL in deletes and before images": Case(
        "id int PRIMARY KEY, a int, note text",
        ("INSERT t VALUES (1, 1, 'long')", "UPDATE t SET a = 2", "DELETE t"),
        "id, note",
        ((2, "07", 1, 1, "long"), (3, "02", 1, 1, None), (4, "02", 1, 1, "long"), (1, "07", 1, 1, None)),
    ),
    "[est] computed columns are NULL but in the mask": Case(
        "id int PRIMARY KEY, a int, b int, c AS a + b",
        ("INSERT t VALUES (1, 1, 2)",),
        "id, c",
        ((2, "0f", 1, 1, None),),
    ),
    "[doc] identity values arrive as plain numbers": Case(
        "id int IDENTITY PRIMARY KEY, a int",
        ("INSERT t (a) VALUES (5)", "DELETE t"),
        "id, a",
        ((2, "03", 1, 1, 5), (1, "03", 1, 1, 5)),
    ),
    "[?] commands count within a transaction": Case(
        "id int PRIMARY KEY, a int",
        ("BEGIN TRAN INSERT t VALUES (1, 1) UPDATE t SET a = 2 DELETE t COMMIT",),
        "id, a",
        ((2, "03", 1, 1, 1), (3, "02", 2, 1, 1), (4, "02", 2, 1, 2), (1, "03", 3, 1, 2)),
    ),
    "[doc] what was rolled back is not captured": Case(
        "id int PRIMARY KEY, a int",
        ("BEGIN TRAN INSERT t VALUES (1, 1) ROLLBACK", "INSERT t VALUES (2, 2)"),
        "id, a",
        ((2, "03", 1, 2, 2),),
    ),
    "[doc] nor what was rolled back to a savepoint": Case(
        "id int PRIMARY KEY, a int",
        ("BEGIN TRAN INSERT t VALUES (1, 1) SAVE TRAN s INSERT t VALUES (2, 2) ROLLBACK TRAN s COMMIT",),
        "id, a",
        ((2, "03", 1, 1, 1),),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_capture_leaves_the_documented_rows(world: World, case: Case) -> None:
    world.execute(f"CREATE TABLE dbo.t ({case.table})")
    world.enable("t")
    for statement in case.statements:
        world.execute(statement)
    world.capture()
    rows = world.changes("dbo_t", f"{META}, {case.columns}")
    assert [(row[0], row[1].hex(), *row[2:]) for row in rows] == list(case.expected)


def test_capture_update_rows_share_lsn_and_differ_from_the_commit(world: World) -> None:
    """[fab] seqval is the row's own record, hence below the commit's LSN."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1)")
    world.execute("UPDATE t SET a = 2")
    world.capture()
    rows = world.changes("dbo_t", "__$start_lsn, __$seqval, __$operation, __$end_lsn")
    (insert, before, after) = rows
    assert before[:2] == after[:2]
    assert all(row[1] < row[0] for row in rows)
    assert insert[0] < before[1]
    assert {row[3] for row in rows} == {None}


def test_capture_single_key_update_shares_seqval(world: World) -> None:
    """[dbz] two rows, same start_lsn and seqval, different command_id."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1)")
    world.execute("UPDATE t SET id = 6")
    world.capture()
    _, delete, insert = world.changes("dbo_t", "__$start_lsn, __$seqval, __$command_id")
    assert delete[:2] == insert[:2]
    assert delete[2] < insert[2]


def test_capture_bulk_key_update_has_seqvals_of_their_own(world: World) -> None:
    """[dbz] all deletes precede all inserts, each with its own seqval."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1), (2, 2)")
    world.execute("UPDATE t SET id = id + 10")
    world.capture()
    rows = world.changes("dbo_t", "__$operation, __$seqval, id")[2:]
    assert [(row[0], row[2]) for row in rows] == [(1, 1), (1, 2), (2, 11), (2, 12)]
    assert len({row[1] for row in rows}) == 4


def test_capture_bulk_update_that_sets_keys_to_what_they_were_is_deletes_and_inserts_too(world: World) -> None:
    """[dbz] its test of updating primary keys twice waits for the delete of a key that stays the same."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, 1), (2, 2)")
    world.execute("UPDATE t SET id = a")
    world.capture()
    rows = world.changes("dbo_t", "__$operation, id")[2:]
    assert rows == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_capture_rowversion_is_binary_8_and_in_every_update_mask(world: World) -> None:
    """[est] an update of a table with rowversion also sets the rowversion's bit."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, data int, rv rowversion)")
    world.enable("t")
    world.execute("INSERT t (id, data) VALUES (1, 1)")
    world.execute("UPDATE t SET data = 2")
    world.capture()
    rows = world.changes("dbo_t", "__$operation, __$update_mask, rv")
    assert [(row[0], row[1].hex(), len(row[2])) for row in rows] == [(2, "07", 8), (3, "06", 8), (4, "06", 8)]
    assert rows[2][2] == world.value("SELECT rv FROM t")
    types = world.rows(
        "SELECT TYPE_NAME(system_type_id), max_length FROM sys.columns "
        "WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name = 'rv'"
    )
    assert types == [("binary", 8)]


def test_capture_table_columns_are_nullable_and_ordered(world: World) -> None:
    """[doc][fab] fixed columns first, command id last, captured columns nullable whatever the source says."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int NOT NULL)")
    world.enable("t")
    assert world.rows("SELECT name, is_nullable FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT')") == [
        ("__$start_lsn", 0),
        ("__$end_lsn", 1),
        ("__$seqval", 0),
        ("__$operation", 0),
        ("__$update_mask", 1),
        ("id", 1),
        ("a", 1),
        ("__$command_id", 1),
    ]


def test_capture_of_a_column_list_ignores_the_rest(world: World) -> None:
    """[doc] only captured columns; [?] an update of none of them leaves no row."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, b int)")
    world.enable("t", captured_column_list="N'id, [b]'")
    world.execute("INSERT t VALUES (1, 1, 1)")
    world.execute("UPDATE t SET a = 2")
    world.execute("UPDATE t SET b = 2")
    world.capture()
    rows = world.changes("dbo_t", "__$operation, __$update_mask, id, b")
    assert [(row[0], row[1].hex(), *row[2:]) for row in rows] == [(2, "03", 1, 1), (3, "02", 1, 1), (4, "02", 1, 2)]


def test_capture_begins_with_enabling(world: World) -> None:
    """[doc] rows from before are not captured."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    world.execute("INSERT t VALUES (1)")
    world.enable("t")
    world.execute("INSERT t VALUES (2)")
    world.capture()
    assert world.changes("dbo_t", "id") == [(2,)]


def test_capture_of_interleaved_transactions_follows_commits(world: World) -> None:
    """[doc] start_lsn is the commit's; a row's seqval may lie below an earlier commit."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    world.enable("t")
    world.execute("BEGIN TRAN INSERT t VALUES (1)", name="first")
    world.execute("INSERT t VALUES (2)")
    world.execute("COMMIT", name="first")
    world.capture()
    (second, first) = world.changes("dbo_t", "id, __$start_lsn, __$seqval")
    assert (second[0], first[0]) == (2, 1)
    assert first[2] < second[1] < first[1]


def test_capture_of_two_tables_in_one_transaction_shares_the_mapping_row(world: World) -> None:
    """[doc] one transaction, one row of lsn_time_mapping, whatever number of tables."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    world.execute("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    world.enable("t", "u")
    world.capture()
    before = world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping")
    world.execute("BEGIN TRAN INSERT t VALUES (1) INSERT u VALUES (1) COMMIT")
    world.capture()
    mapped = world.rows("SELECT start_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn")[before:]
    assert mapped == world.changes("dbo_t", "__$start_lsn") == world.changes("dbo_u", "__$start_lsn")
