"""What is captured of which change: numbering, deferred updates, instances side by side, net changes."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import CAPTURE, ENABLE_DB, TRACKED, WAIT, Rule, T, check, enable, prepare

OPERATIONS = "SELECT __$operation, __$command_id, id, a FROM cdc.{} ORDER BY __$start_lsn, __$command_id, __$operation"
U = "CREATE TABLE dbo.u (id int PRIMARY KEY, a int)"
NET = (
    "SELECT __$operation, __$update_mask, id, a FROM cdc.fn_cdc_get_net_changes_dbo_t("
    "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), N'{}') ORDER BY id"
)
CHANGED = "sys.fn_cdc_has_column_changed('dbo_t', '{}', __$update_mask)"
NO_CLR = "EXEC sp_configure 'clr enabled', 0; RECONFIGURE"
CLR = "EXEC sp_configure 'clr enabled', 1; RECONFIGURE"
CHANGES = (
    "INSERT t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    CAPTURE,
)


RULES = {
    "[pub] one counter numbers the changes of all tables of a transaction": Rule(
        (
            *TRACKED,
            U,
            enable("u"),
            "BEGIN TRAN INSERT t VALUES (1, 1, 1) INSERT u VALUES (1, 1) UPDATE t SET a = 2 COMMIT",
            CAPTURE,
        ),
        "SELECT 't', __$command_id FROM cdc.dbo_t_CT UNION SELECT 'u', __$command_id FROM cdc.dbo_u_CT ORDER BY 2",
        [("t", 1), ("u", 2), ("t", 3)],
    ),
    "[pub] and of all instances of a table": Rule(
        (*TRACKED, enable(capture_instance="N'two'"), "INSERT t VALUES (1, 1, 1), (2, 2, 2)", CAPTURE),
        "SELECT 'one', id, __$command_id FROM cdc.dbo_t_CT UNION "
        "SELECT 'two', id, __$command_id FROM cdc.two_CT ORDER BY 3",
        [("one", 1, 1), ("two", 1, 2), ("one", 2, 3), ("two", 2, 4)],
    ),
    "[pub] while start_lsn and seqval are the same in both": Rule(
        (*TRACKED, enable(capture_instance="N'two'"), "INSERT t VALUES (1, 1, 1)", "DELETE t", CAPTURE),
        "SELECT COUNT(*) FROM cdc.dbo_t_CT a JOIN cdc.two_CT b ON a.__$start_lsn = b.__$start_lsn AND "
        "a.__$seqval = b.__$seqval AND a.__$operation = b.__$operation",
        [(2,)],
    ),
    "[doc] the second instance has other columns": Rule(
        (
            *TRACKED,
            enable(capture_instance="N'two'", captured_column_list="N'id, b'", supports_net_changes="0"),
            "INSERT t VALUES (1, 1, 1)",
            "UPDATE t SET a = 2",
            "UPDATE t SET b = 2",
            CAPTURE,
        ),
        "SELECT __$operation, __$update_mask, id, b FROM cdc.two_CT ORDER BY __$start_lsn, __$operation",
        [(2, "03", 1, 1), (3, "02", 1, 1), (4, "02", 1, 2)],
    ),
    "[fab] the boundary between two instances is recorded nowhere": Rule(
        (*TRACKED, WAIT, enable(capture_instance="N'two'"), CAPTURE),
        "SELECT COUNT(*), COUNT(end_lsn), COUNT(DISTINCT start_lsn) FROM cdc.change_tables",
        [(2, 0, 2)],
    ),
    "[doc KB 238254] several keys at once: deletes before inserts": Rule(
        (*TRACKED, *CHANGES, "UPDATE t SET id = id + 10", CAPTURE),
        "SELECT __$operation, __$update_mask, id FROM cdc.dbo_t_CT WHERE __$start_lsn = (SELECT MAX(__$start_lsn) FROM "
        "cdc.dbo_t_CT) ORDER BY __$command_id",
        [(1, "07", 1), (1, "07", 2), (1, "07", 3), (2, "07", 11), (2, "07", 12), (2, "07", 13)],
    ),
    "[psy] several values of a unique column: pairs with one seqval": Rule(
        (
            "CREATE TABLE dbo.t (id int PRIMARY KEY, code varchar(10) NOT NULL UNIQUE)",
            ENABLE_DB,
            enable(),
            "INSERT t VALUES (1, 'x'), (2, 'y')",
            "UPDATE t SET code = code + 'A'",
            CAPTURE,
        ),
        "SELECT COUNT(*) FROM cdc.dbo_t_CT d JOIN cdc.dbo_t_CT i ON d.__$start_lsn = i.__$start_lsn AND "
        "d.__$seqval = i.__$seqval AND d.id = i.id WHERE d.__$operation = 1 AND i.__$operation = 2",
        [(2,)],
    ),
    "[doc] a column of no key is updated in place": Rule(
        (*TRACKED, "CREATE INDEX ix ON t (a)", *CHANGES, "UPDATE t SET a = 9 WHERE id = 1", CAPTURE),
        "SELECT __$operation, __$update_mask FROM cdc.dbo_t_CT WHERE __$operation > 2 ORDER BY __$operation",
        [(3, "02"), (4, "02")],
    ),
    "[doc] one row's key set to itself changes nothing": Rule(
        (*TRACKED, *CHANGES, "UPDATE t SET id = id WHERE id = 1", CAPTURE), "SELECT COUNT(*) FROM cdc.dbo_t_CT", [(3,)]
    ),
    "[doc] MERGE is captured as what it did": Rule(
        (
            *TRACKED,
            "INSERT t VALUES (1, 1, 1), (2, 2, 2)",
            CAPTURE,
            (
                "MERGE t USING (VALUES (1, 9), (5, 5)) s (id, a) ON s.id = t.id WHEN MATCHED THEN UPDATE SET a = s.a "
                "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE;"
            ),
            CAPTURE,
        ),
        "SELECT __$operation, id FROM cdc.dbo_t_CT WHERE __$start_lsn = (SELECT MAX(__$start_lsn) FROM cdc.dbo_t_CT) "
        "ORDER BY id, __$operation",
        [(3, 1), (4, 1), (1, 2), (2, 5)],
    ),
    "[doc] foreign keys that cascade are captured where they arrive": Rule(
        (
            "CREATE TABLE dbo.p (id int PRIMARY KEY)",
            "CREATE TABLE dbo.t (id int PRIMARY KEY, a int REFERENCES dbo.p ON DELETE CASCADE)",
            ENABLE_DB,
            enable(),
            "INSERT p VALUES (1)",
            "INSERT t VALUES (7, 1)",
            "DELETE p",
            CAPTURE,
        ),
        "SELECT __$operation, id FROM cdc.dbo_t_CT ORDER BY __$start_lsn",
        [(2, 7), (1, 7)],
    ),
    "[doc] net: insert and update": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", "UPDATE t SET a = 2", CAPTURE), NET.format("all"), [(2, None, 1, 2)]
    ),
    "[doc] net: insert and delete vanish": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", "DELETE t", CAPTURE), NET.format("all"), []
    ),
    "[doc] net: with merge": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1), (2, 2, 2)", "DELETE t WHERE id = 1", CAPTURE),
        NET.format("all with merge"),
        [(5, None, 2, 2)],
    ),
    "[sys] net: delete and insert of a key are an update": Rule(
        (
            *TRACKED,
            "INSERT t VALUES (1, 1, 1)",
            CAPTURE,
            "EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'",
            enable(),
            "DELETE t",
            "INSERT t VALUES (1, 9, 9)",
            CAPTURE,
        ),
        NET.format("all"),
        [(4, None, 1, 9)],
    ),
    "[doc] net: masks of all updates together": Rule(
        (
            CLR,
            T,
            ENABLE_DB,
            "INSERT t VALUES (1, 1, 1)",
            enable(),
            NO_CLR,
            "UPDATE t SET a = 2",
            "UPDATE t SET b = 2",
            CAPTURE,
        ),
        NET.format("all with mask"),
        [(4, "06", 1, 2)],
    ),
    "[doc] net: an option of the other function": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", CAPTURE), NET.format("all update old"), 313
    ),
    "[sys] blanks and case of the option do not count": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", CAPTURE), NET.format(" ALL With Merge "), [(5, None, 1, 1)]
    ),
    "[doc] has_column_changed": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", "UPDATE t SET b = 2", CAPTURE),
        f"SELECT {CHANGED.format('a')}, {CHANGED.format('b')}, {CHANGED.format('none')} FROM cdc.dbo_t_CT "
        "WHERE __$operation = 4",
        [(0, 1, None)],
    ),
    "[est] bit one is in the last byte": Rule(
        (),
        "SELECT sys.fn_cdc_is_bit_set(1, 0x0100), sys.fn_cdc_is_bit_set(9, 0x0100), sys.fn_cdc_is_bit_set(1, 0x0001)",
        [(0, 1, 1)],
    ),
    "[doc] the change table itself checks nothing": Rule(
        (*TRACKED, "INSERT t VALUES (1, 1, 1)", CAPTURE),
        "SELECT id FROM cdc.dbo_t_CT WHERE __$start_lsn BETWEEN 0x00 AND 0xFFFFFFFFFFFFFFFFFFFF",
        [(1,)],
    ),
    "[doc] a primary key that comes later is ignored": Rule(
        (
            "CREATE TABLE dbo.t (id int NOT NULL, a int)",
            ENABLE_DB,
            enable(),
            "ALTER TABLE t ADD CONSTRAINT PK_t PRIMARY KEY (id)",
            "INSERT t VALUES (1, 1)",
            CAPTURE,
        ),
        "SELECT index_name, supports_net_changes, (SELECT COUNT(*) FROM cdc.dbo_t_CT) FROM cdc.change_tables",
        [(None, 0, 1)],
    ),
    "[doc] character types are not altered without ANSI_WARNINGS": Rule(
        ("CREATE TABLE dbo.t (id int PRIMARY KEY, n nvarchar(10))", ENABLE_DB, enable()),
        "SET ANSI_WARNINGS OFF; ALTER TABLE t ALTER COLUMN n nvarchar(20)",
        22888,
    ),
    "[doc] a table that was renamed goes on": Rule(
        (*TRACKED, "EXEC sp_rename 'dbo.t', 't2'", "INSERT t2 VALUES (1, 1, 1)", CAPTURE),
        "EXEC sys.sp_cdc_help_change_data_capture @source_schema = N'dbo', @source_name = N't'",
        22931,
    ),
    "[doc] the chosen unique index is not to be dropped": Rule(
        (T, "CREATE UNIQUE INDEX ux ON dbo.t (id)", ENABLE_DB, enable(index_name="N'ux'")),
        "DROP INDEX ux ON dbo.t",
        22983,
    ),
    "[doc] nor disabled": Rule(
        (T, "CREATE UNIQUE INDEX ux ON dbo.t (id)", ENABLE_DB, enable(index_name="N'ux'")),
        "ALTER INDEX ux ON dbo.t DISABLE",
        22983,
    ),
    "[doc] rows that are switched in are not captured": Rule(
        (
            *TRACKED,
            T.replace("dbo.t", "dbo.s").replace("PK_t", "PK_s"),
            "INSERT s VALUES (5, 5, 5)",
            "ALTER TABLE s SWITCH TO t",
            "UPDATE t SET a = 6",
            CAPTURE,
        ),
        "SELECT __$operation, id, a, (SELECT COUNT(*) FROM s) FROM cdc.dbo_t_CT ORDER BY __$operation",
        [(3, 5, 5, 0), (4, 5, 6, 0)],
    ),
    "[doc] nor rows that are switched out": Rule(
        (
            *TRACKED,
            "INSERT t VALUES (5, 5, 5)",
            T.replace("dbo.t", "dbo.s").replace("PK_t", "PK_s"),
            "ALTER TABLE t SWITCH TO s",
            CAPTURE,
        ),
        "SELECT __$operation, (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM s) FROM cdc.dbo_t_CT",
        [(2, 0, 1)],
    ),
    "[doc] the target of a switch is empty": Rule(
        (*TRACKED, "INSERT t VALUES (5, 5, 5)", T.replace("dbo.t", "dbo.s").replace("PK_t", "PK_s")),
        "ALTER TABLE s SWITCH TO t",
        4905,
    ),
    "[doc] other indexes are": Rule((*TRACKED, "CREATE INDEX ix ON t (a)", "DROP INDEX ix ON t"), "SELECT 1", [(1,)]),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_changes_are_captured_by_the_rules(world: World, rule: Rule) -> None:
    check(world, rule)


def test_a_trace_flag_keeps_updates_of_one_row_whole(world: World) -> None:
    """[doc KB 302341] 8207: an update of a key of one row is captured as 3 and 4; of several rows as before."""
    prepare(world, (*TRACKED, "INSERT t VALUES (1, 1, 1), (2, 2, 2)"))
    world.execute("DBCC TRACEON (8207, -1)")
    try:
        world.execute("UPDATE t SET id = 9 WHERE id = 1")
        world.execute("UPDATE t SET id = id + 100")
        world.capture()
    finally:
        world.execute("DBCC TRACEOFF (8207, -1)")
    assert [row[0] for row in world.changes("dbo_t", "__$operation")] == [2, 2, 3, 4, 1, 1, 2, 2]
