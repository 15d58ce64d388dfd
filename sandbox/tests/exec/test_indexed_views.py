"""Indexes of views: which there can be, and what the catalogue shows of them.

Evidence: Microsoft's page "Create indexed views", and the errors of its restrictions.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

VIEW = "CREATE VIEW dbo.v WITH SCHEMABINDING AS SELECT id, name FROM dbo.a"
INDEX = "CREATE UNIQUE CLUSTERED INDEX ix ON dbo.v (name)"
INDEXES = "SELECT name, index_id, type_desc, is_unique FROM sys.indexes WHERE object_id = OBJECT_ID('v')"


@pytest.fixture
def view(sql: Client) -> Client:
    for text in ("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, name varchar(9) NOT NULL)", VIEW):
        assert sql(text).errors == []
    return sql


def test_indexes_are_in_the_catalogue_until_dropped_or_altered_away(view: Client) -> None:
    server = view.session.server
    server.catalog = Catalog(server)
    assert view(f"{INDEX} CREATE INDEX second ON v (id)").errors == []
    assert view(INDEXES).rows == [("ix", 1, "CLUSTERED", 1), ("second", 2, "NONCLUSTERED", 0)]
    assert view("INSERT a VALUES (1, 'one') SELECT * FROM v WITH (NOEXPAND)").rows == [(1, "one")]
    view("BEGIN TRAN DROP INDEX ix ON v ROLLBACK")
    assert len(view(INDEXES).rows) == 2
    assert view("DROP INDEX ix ON dbo.v DROP INDEX second ON v").errors == [3701], "gone with the clustered one"
    assert view(INDEX).errors == []
    assert view(VIEW.replace("CREATE", "ALTER")).errors == []
    assert view(INDEXES).rows == []
    server.catalog.close()


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE UNIQUE INDEX ix ON v (id)", 1940),
        ("CREATE CLUSTERED INDEX ix ON v (id)", 1941),
        ("CREATE UNIQUE CLUSTERED INDEX ix ON v (other)", 1911),
        (f"{INDEX} CREATE UNIQUE CLUSTERED INDEX iy ON v (id)", 1902),
        (f"{INDEX} CREATE INDEX ix ON v (id)", 1913),
        ("EXEC ('CREATE VIEW w AS SELECT id FROM a') CREATE UNIQUE CLUSTERED INDEX ix ON w (id)", 1939),
    ],
)
def test_indexes_that_a_view_cannot_have(view: Client, statement: str, number: int) -> None:
    assert view(statement).errors == [number]
