"""Tables that the connector's login may not see: named before the start, and never a table without changes after it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mssql_cdc.cli import main
from mssql_cdc.schema import type_table
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.servers import grant

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PASSWORD = "Reader-of-the-test-1"


@pytest.fixture
def seen(place: Place) -> Iterator[Place]:
    """Two captured tables and a third one, of which the connector's login may see two."""
    reader = f"{place.database}_reader"
    for table in ("orders", "people", "secret.plans"):
        schema, _, name = table.rpartition(".")
        if schema:
            place.sql(f"CREATE SCHEMA {schema}")
        place.sql(f"CREATE TABLE {schema or 'dbo'}.{name} (id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL)")
        place.sql(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'{schema or 'dbo'}', @source_name = N'{name}', "
            "@role_name = NULL"
        )
    place.sql(
        f"CREATE LOGIN [{reader}] WITH PASSWORD = '{PASSWORD}'",
        f"CREATE USER [{reader}] FOR LOGIN [{reader}]",
        f"GRANT SELECT ON SCHEMA::cdc TO [{reader}]",
        grant("VIEW SERVER STATE", reader, place.database),
        f"GRANT SELECT ON dbo.orders TO [{reader}]",
        f"GRANT SELECT ON dbo.people TO [{reader}]",
        "INSERT dbo.orders VALUES (1, N'one')",
        "INSERT dbo.people VALUES (1, N'one')",
    )
    place.configure(database_user=reader, database_password=PASSWORD)
    place.settle()
    yield place
    place.sql(f"DROP USER [{reader}]", f"DROP LOGIN [{reader}]")


def reader_of(place: Place) -> str:
    return f"[{place.database}_reader]"


@pytest.mark.parametrize("command", ["discover", "run"])
def test_a_hidden_table_beside_others_is_named_by_its_capture_instance(
    command: str, seen: Place, capsys: pytest.CaptureFixture[str]
):
    """The server hides the table's name; that of its instance is a row of cdc.change_tables."""
    capsys.readouterr()
    assert (main(["discover", "--config", str(seen.config)]) if command == "discover" else seen.catch_up()) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "1 capture instance belongs to a table that the login cannot see (secret_plans)" in said
    assert "GRANT SELECT ON" in said


def test_hidden_tables_are_named_beside_those_that_the_filters_exclude(seen: Place, capsys: pytest.CaptureFixture[str]):
    seen.configure(
        database_user=f"{seen.database}_reader", database_password=PASSWORD, table_include_list="secret.plans"
    )
    capsys.readouterr()
    assert main(["discover", "--config", str(seen.config)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "table.include.list exclude every table that is enabled for CDC" in said
    assert "cannot see (secret_plans)" in said


@pytest.mark.parametrize("right", ["revoked", pytest.param("denied", marks=pytest.mark.long)])
def test_a_table_that_the_login_may_not_see_any_more_is_named_until_the_advice_is_followed(
    right: str, seen: Place, capsys: pytest.CaptureFixture[str]
):
    """Review, bug 12: SELECT revoked; nothing is lost, and everything is read once the login sees the table again."""
    place, reader = seen, reader_of(seen)
    assert place.catch_up() == 0
    place.sql(f"{'REVOKE' if right == 'revoked' else 'DENY'} SELECT ON dbo.orders TO {reader}")
    place.sql("INSERT dbo.orders VALUES (2, N'two')", "INSERT dbo.people VALUES (2, N'two')")
    place.settle()
    advice = "GRANT SELECT ON [dbo].[orders] TO"

    for command in (("run", "--until-caught-up"), ("check",), ("status",)):
        capsys.readouterr()
        code = place.command(*command)
        shown = capsys.readouterr()
        said = " ".join((shown.out + shown.err).split())
        assert code == 4, said
        assert f"{place.database}.dbo.orders" in said, command
        assert advice in said, command
        assert "blocking snapshot" not in said, command
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 2}]
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 1}]

    place.sql(f"GRANT SELECT ON [dbo].[orders] TO {reader}")
    assert place.catch_up() == 0
    capsys.readouterr()
    assert place.command("check", "--json") == 0
    results = {one["table"]: one["result"] for one in json.loads(capsys.readouterr().out)["tables"]}
    assert set(results.values()) == {"equal"}
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 2}]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        pytest.param(
            "EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'",
            "CDC is no longer enabled on it; enable it",
            marks=pytest.mark.long,
        ),
        ("DROP TABLE dbo.orders", "it was dropped, or the login cannot see it"),
    ],
    ids=["CDC disabled", "dropped"],
)
@pytest.mark.parametrize("met", [True, False], ids=["behind a run", "before a run"])
def test_a_table_that_is_not_captured_any_more_is_a_loss_in_every_command(
    met: object, statement: str, reason: str, seen: Place, capsys: pytest.CaptureFixture[str]
):
    place = seen
    assert place.catch_up() == 0
    place.sql(statement, "INSERT dbo.people VALUES (2, N'two')")
    place.settle()
    for command in ((("run", "--until-caught-up"),) if met else ()) + (("check",), ("status",)):
        capsys.readouterr()
        code = place.command(*command)
        shown = capsys.readouterr()
        said = " ".join((shown.out + shown.err).split())
        assert code == 4, said
        assert f"{place.database}.dbo.orders" in said, command
        assert reason in said, (command, said)


def test_a_change_table_that_the_login_may_not_read_is_its_own_tables_trouble(
    seen: Place, capsys: pytest.CaptureFixture[str]
):
    """All change tables are counted by one statement, which the server refuses as a whole."""
    place, reader = seen, reader_of(seen)
    assert place.catch_up() == 0
    place.sql(f"DENY SELECT ON cdc.dbo_orders_CT TO {reader}")
    place.sql("INSERT dbo.orders VALUES (2, N'two')", "INSERT dbo.people VALUES (2, N'two')")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{place.database}.dbo.orders" in said
    assert "GRANT SELECT ON [cdc].[dbo_orders_CT] TO" in said
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 2}]
    place.sql(f"GRANT SELECT ON cdc.dbo_orders_CT TO {reader}")
    assert place.catch_up() == 0
    assert place.check() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 2}]


def see_single_tables(place: Place, *change_tables: str) -> None:
    """Let the login read the tables of CDC one by one: the catalog hides a change table that is not among them."""
    reader = reader_of(place)
    place.sql(f"REVOKE SELECT ON SCHEMA::cdc FROM {reader}")
    for name in ("change_tables", "captured_columns", "index_columns", "lsn_time_mapping", "ddl_history"):
        place.sql(f"GRANT SELECT ON cdc.{name} TO {reader}")
    for name in change_tables:
        place.sql(f"GRANT SELECT ON cdc.{name} TO {reader}")


def test_a_change_table_that_only_functions_show_is_its_own_tables_trouble_in_direct_mode(
    seen: Place, capsys: pytest.CaptureFixture[str]
):
    """Nothing of it is visible, so that its reader cannot even be made."""
    place, reader = seen, reader_of(seen)
    place.configure(database_user=f"{place.database}_reader", database_password=PASSWORD, data_query_mode="direct")
    assert place.catch_up() == 0
    see_single_tables(place, "dbo_people_CT")
    place.sql("INSERT dbo.orders VALUES (2, N'two')", "INSERT dbo.people VALUES (2, N'two')")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{place.database}.dbo.orders: data.query.mode=direct" in said
    assert place.query("SELECT COUNT(*) AS n FROM t", "people", "changes") == [{"n": 2}]
    place.sql(f"GRANT SELECT ON cdc.dbo_orders_CT TO {reader}")
    assert place.catch_up() == 0
    assert place.check() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 2}]


def test_a_column_of_an_unknown_type_is_its_own_tables_trouble(
    seen: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A filter excludes it, so that the change log does not need its type; whoever fetches it does."""
    place, reader = seen, reader_of(seen)
    place.configure(
        database_user=f"{place.database}_reader", database_password=PASSWORD, column_exclude_list="dbo.notes.what"
    )
    place.create("notes", "id int NOT NULL PRIMARY KEY, what xml NULL")
    place.sql(f"GRANT SELECT ON dbo.notes TO {reader}")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT dbo.notes VALUES (1, N'<a/>')", "INSERT dbo.people VALUES (2, N'two')")
    place.settle()
    capsys.readouterr()
    with monkeypatch.context() as patch:  # As with a server that is newer than the type table.
        patch.setattr(type_table, "TYPES", {name: row for name, row in type_table.TYPES.items() if name != "xml"})
        assert place.catch_up() == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{place.database}.dbo.notes: The SQL Server type 'xml' is unknown" in said
    assert place.query("SELECT COUNT(*) AS n FROM t", "people", "changes") == [{"n": 2}]
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "notes") == [{"n": 1}]
