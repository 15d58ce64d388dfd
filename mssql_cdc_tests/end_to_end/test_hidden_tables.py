"""A table that the login can no longer see: a line, a status and code 4, until the GRANT that was named."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PASSWORD = "Reader-of-the-test-1"
SAID = "the login can no longer see it: GRANT SELECT ON [dbo].[orders] TO"


@pytest.fixture
def reader(orders: Place) -> Place:
    """A place that a login of its own reads, with the least rights: two tables are in the lake."""
    place, name = orders, f"{orders.database}_reader"
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql(
        f"CREATE LOGIN [{name}] WITH PASSWORD = '{PASSWORD}'",
        f"CREATE USER [{name}] FOR LOGIN [{name}]",
        *(
            f"GRANT {right} TO [{name}]"
            for right in (
                "SELECT ON SCHEMA::cdc",
                "VIEW DATABASE STATE",
                "SELECT ON dbo.orders",
                "SELECT ON dbo.people",
            )
        ),
    )
    place.configure(database_user=name, database_password=PASSWORD)
    place.settle()
    assert place.catch_up() == 0
    return place


def change_rights(place: Place, statements: Sequence[str]) -> None:
    place.sql(*(one.replace("reader", f"[{place.database}_reader]") for one in statements))


def test_a_table_that_the_login_no_longer_sees_ends_with_code_4_until_the_grant(
    reader: Place, capsys: pytest.CaptureFixture[str]
):
    place = reader
    change_rights(place, ["REVOKE SELECT ON dbo.orders FROM reader"])
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')", "INSERT INTO dbo.people VALUES (1)")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 4
    assert SAID in capsys.readouterr().err
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 1}]
    place.command("status", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert SAID in json.dumps(shown)
    assert place.check() == 4
    assert SAID in "".join(capsys.readouterr())
    change_rights(place, ["GRANT SELECT ON dbo.orders TO reader"])
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t", "orders") == [{"n": 3}]
    assert place.check() == 0
