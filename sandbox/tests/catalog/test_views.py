"""System views through T-SQL."""

from __future__ import annotations

import pytest

from mssql_sandbox.catalog import views
from mssql_sandbox.catalog.definitions import SystemView
from mssql_sandbox.cdc import views as cdc_views
from mssql_sandbox.engine.product import ONLY_IN_AZURE
from tests.cdc.client import World

SCHEMA = """
CREATE TABLE dbo.parent (id int NOT NULL CONSTRAINT PK_parent PRIMARY KEY, code nvarchar(10) NOT NULL UNIQUE);
CREATE TABLE dbo.child (
    id int IDENTITY(5, 2) PRIMARY KEY,
    parent_id int NOT NULL CONSTRAINT FK_child REFERENCES dbo.parent (id) ON DELETE CASCADE,
    price decimal(10, 2) NOT NULL CONSTRAINT DF_price DEFAULT (0),
    total AS price * 2,
    note varchar(max) NULL,
    CONSTRAINT CK_price CHECK (price >= 0)
);
CREATE UNIQUE INDEX ux_child ON dbo.child (parent_id DESC) INCLUDE (price) WHERE parent_id > 0;
"""
ALL_VIEWS = sorted({f"{view.schema}.{view.name}" for view in (*views.VIEWS, *cdc_views.VIEWS)} - ONLY_IN_AZURE)


@pytest.fixture
def filled(world: World) -> World:
    world.execute(SCHEMA)
    world.execute("CREATE VIEW dbo.v AS SELECT id FROM dbo.parent")
    world.execute("INSERT dbo.parent VALUES (1, N'a'), (2, N'b')")
    world.enable("child")
    return world


@pytest.mark.parametrize("name", ALL_VIEWS)
def test_view_rows_fit_their_columns(filled: World, name: str) -> None:
    answer = filled.execute(f"SELECT * FROM {name}")
    assert all(len(row) == len(answer.names[0]) for row in answer.sets[0])


@pytest.mark.parametrize("view", [view for view in views.VIEWS if view.about], ids=lambda view: view.name)
@pytest.mark.parametrize("table", ["dbo.child", "dbo.parent", "cdc.dbo_child_CT", "dbo.v", "dbo.nothing"])
def test_view_asked_about_one_table_gives_its_rows_among_all(filled: World, view: SystemView, table: str) -> None:
    name, about = f"{view.schema}.{view.name}", view.about
    narrowed = filled.execute(f"SELECT * FROM {name} WHERE {about} = OBJECT_ID(N'{table}')")
    # An expression of the column is no search argument: all rows are made, and most are left out.
    whole = filled.execute(f"SELECT * FROM {name} WHERE {about} + 0 = OBJECT_ID(N'{table}')")
    assert narrowed.sets == whole.sets


def test_view_asked_by_an_outer_row_gives_the_rows_of_its_table(filled: World) -> None:
    answer = filled.execute(
        "SELECT t.name, (SELECT COUNT(*) FROM sys.columns AS c WHERE c.object_id = t.object_id) FROM sys.tables AS t "
        "WHERE t.schema_id = 1 AND t.is_ms_shipped = 0 ORDER BY t.name"
    )
    assert answer.sets == [[("child", 5), ("parent", 2)]]


QUERIES = {
    "tables": (
        (
            "SELECT name, SCHEMA_NAME(schema_id), type, type_desc, is_tracked_by_cdc FROM sys.tables "
            "WHERE schema_id = 1 AND is_ms_shipped = 0 ORDER BY name"
        ),
        [("child", "dbo", "U ", "USER_TABLE", 1), ("parent", "dbo", "U ", "USER_TABLE", 0)],
    ),
    "columns": (
        (
            "SELECT c.name, c.column_id, t.name, c.max_length, c.precision, c.scale, c.is_identity, "
            "c.is_computed FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.user_type_id "
            "WHERE c.object_id = OBJECT_ID('dbo.child') ORDER BY c.column_id"
        ),
        [
            ("id", 1, "int", 4, 10, 0, 1, 0),
            ("parent_id", 2, "int", 4, 10, 0, 0, 0),
            ("price", 3, "decimal", 9, 10, 2, 0, 0),
            ("total", 4, "decimal", 9, 12, 2, 0, 1),
            ("note", 5, "varchar", -1, 0, 0, 0, 0),
        ],
    ),
    "indexes": (
        (
            "SELECT name, type_desc, is_unique, is_primary_key, has_filter FROM sys.indexes "
            "WHERE object_id = OBJECT_ID('dbo.parent') AND is_primary_key = 1"
        ),
        [("PK_parent", "CLUSTERED", 1, 1, 0)],
    ),
    "index columns": (
        (
            "SELECT COL_NAME(ic.object_id, ic.column_id), ic.key_ordinal, ic.is_descending_key, ic.is_included_column "
            "FROM sys.index_columns ic JOIN sys.indexes i ON i.object_id = ic.object_id AND i.index_id = ic.index_id "
            "WHERE i.name = 'ux_child' ORDER BY ic.index_column_id"
        ),
        [("parent_id", 1, 1, 0), ("price", 0, 0, 1)],
    ),
    "foreign keys": (
        (
            "SELECT name, OBJECT_NAME(parent_object_id), OBJECT_NAME(referenced_object_id), "
            "delete_referential_action_desc FROM sys.foreign_keys"
        ),
        [("FK_child", "child", "parent", "CASCADE")],
    ),
    "identity": (
        (
            "SELECT name, CAST(seed_value AS int), CAST(increment_value AS int), last_value FROM sys.identity_columns "
            "WHERE object_id = OBJECT_ID('dbo.child')"
        ),
        [("id", 5, 2, None)],
    ),
    "defaults": (
        "SELECT name, definition FROM sys.default_constraints WHERE parent_object_id = OBJECT_ID('dbo.child')",
        [("DF_price", "((0))")],
    ),
    "row counts": (
        "SELECT SUM(rows) FROM sys.partitions WHERE object_id = OBJECT_ID('dbo.parent') AND index_id IN (0, 1)",
        [(2,)],
    ),
    "databases": (
        "SELECT name, is_cdc_enabled, snapshot_isolation_state_desc FROM sys.databases WHERE name = N'TESTDB'",
        [("testdb", 1, "OFF")],
    ),
    "information schema": (
        (
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, IS_NULLABLE "
            "FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'parent' ORDER BY ORDINAL_POSITION"
        ),
        [("id", "int", None, 10, "NO"), ("code", "nvarchar", 10, None, "NO")],
    ),
    "information schema keys": (
        (
            "SELECT k.COLUMN_NAME FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS c "
            "JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE k ON k.CONSTRAINT_NAME = c.CONSTRAINT_NAME "
            "WHERE c.CONSTRAINT_TYPE = 'PRIMARY KEY' AND c.TABLE_NAME = 'parent'"
        ),
        [("id",)],
    ),
    "another database by name": ("SELECT COUNT(*) FROM msdb.sys.tables WHERE name = 'cdc_jobs'", [(1,)]),
}


@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
def test_view_shows_what_was_created(filled: World, query: str, expected: list[tuple]) -> None:
    assert filled.rows(query) == expected


FUNCTIONS = {
    "DB_NAME()": "testdb",
    "DB_ID('TESTDB')": 5,
    "OBJECT_NAME(OBJECT_ID('dbo.child'))": "child",
    "OBJECT_SCHEMA_NAME(OBJECT_ID('child'), DB_ID('testdb'))": "dbo",
    "OBJECT_ID('dbo.child', 'V')": None,
    "OBJECT_ID('[testdb].[dbo].[v]', 'V') - OBJECT_ID('v')": 0,
    "SCHEMA_NAME(1)": "dbo",
    "SCHEMA_ID('cdc') - SCHEMA_ID('CDC')": 0,
    "COL_NAME(OBJECT_ID('child'), 2)": "parent_id",
    "COL_LENGTH('parent', 'code')": 20,
    "TYPE_NAME(56)": "int",
    "TYPE_ID('nvarchar')": 231,
    "COLUMNPROPERTY(OBJECT_ID('child'), 'id', 'IsIdentity')": 1,
    "OBJECTPROPERTY(OBJECT_ID('child'), 'TableHasPrimaryKey')": 1,
    "CAST(SERVERPROPERTY('EngineEdition') as INT)": 3,
    "CAST(SERVERPROPERTY('nothing') AS int)": None,
    "OBJECTPROPERTY(OBJECT_ID('child'), 'TableHasNonclustIndex')": 1,
    "OBJECTPROPERTY(OBJECT_ID('child'), 'TableTemporalType')": 0,
    "OBJECTPROPERTY(OBJECT_ID('child'), 'HasInsertTrigger')": 0,
    "COLUMNPROPERTY(OBJECT_ID('child'), 'total', 'IsDeterministic')": 1,
    "CAST(DATABASEPROPERTYEX(DB_NAME(), 'IsAutoCreateStatistics') AS int)": 1,
    "CAST(SERVERPROPERTY('SuspendedDatabaseCount') AS int)": 0,
    "CAST(DATABASEPROPERTYEX('testdb', 'Status') AS nvarchar(20))": "ONLINE",
    "HAS_DBACCESS('testdb')": 1,
    "HAS_DBACCESS('nowhere')": None,
    "IS_SRVROLEMEMBER('sysadmin')": 1,
    "IS_MEMBER('db_owner')": 1,
    "HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')": 1,
    "SUSER_SNAME()": "sa",
    "USER_NAME()": "dbo",
    "IDENT_SEED('dbo.child')": 5,
}


@pytest.mark.parametrize(("call", "expected"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_metadata_function_knows(filled: World, call: str, expected: object) -> None:
    assert filled.value(f"SELECT {call}") == expected


def test_log_end_lies_beyond_everything_captured(filled: World) -> None:
    """[doc] sys.dm_db_log_stats(DB_ID()).log_end_lsn, as text."""
    filled.execute("INSERT dbo.child (parent_id) VALUES (1)")
    filled.capture()
    text = filled.value("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())")
    captured = filled.value("SELECT sys.fn_cdc_get_max_lsn()")
    assert bytes.fromhex(text.replace(":", "")) > captured


def test_sessions_and_transactions_are_listed(filled: World) -> None:
    filled.execute("BEGIN TRAN INSERT dbo.parent VALUES (3, N'c')", name="writer")
    rows = filled.rows(
        "SELECT s.program_name, s.open_transaction_count FROM sys.dm_exec_sessions s "
        "JOIN sys.dm_tran_session_transactions t ON t.session_id = s.session_id WHERE s.session_id <> @@SPID"
    )
    assert rows == [("tests", 1)]
    locks = filled.value(
        "SELECT COUNT(*) FROM sys.dm_tran_locks WHERE resource_type = 'OBJECT' AND request_mode = 'IX'"
    )
    assert locks >= 1
    filled.execute("ROLLBACK", name="writer")


def test_unnamed_rules_carry_their_object_ids(world: World) -> None:
    """Seen in published schemas: DF__employee__job_id__1BFD2C07 is the constraint whose object_id is 0x1BFD2C07."""
    world.execute("CREATE TABLE dbo.orders (id int PRIMARY KEY, qty int DEFAULT 1 CHECK (qty > 0))")
    for kind, view in (("CK", "check_constraints"), ("DF", "default_constraints")):
        [(name, number)] = world.rows(f"SELECT name, object_id FROM sys.{view}")
        assert name == f"{kind}__orders__qty__{number:08X}"
