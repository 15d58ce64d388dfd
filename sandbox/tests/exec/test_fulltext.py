"""Full-text catalogues and indexes are kept for the catalogue; searches fail as on a server without that service.

Evidence: Microsoft's pages on CREATE FULLTEXT CATALOG and INDEX; sys.messages for 7609.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

SETUP = """
CREATE TABLE dbo.d (id int NOT NULL CONSTRAINT pk_d PRIMARY KEY, title nvarchar(50), file_ varbinary(max),
    kind nvarchar(8), n int NULL, CONSTRAINT uq UNIQUE (n))
"""
INDEX = "CREATE FULLTEXT INDEX ON d (title LANGUAGE 1033, file_ TYPE COLUMN kind) KEY INDEX pk_d"
ELSEWHERE = (
    "CREATE TABLE t (a int NOT NULL CONSTRAINT p PRIMARY KEY, b text) CREATE FULLTEXT INDEX ON t (b) KEY INDEX p"
)


@pytest.fixture
def library(sql: Client) -> Client:
    assert sql(SETUP).errors == []
    assert sql("CREATE FULLTEXT CATALOG books AS DEFAULT").errors == []
    assert sql(INDEX).errors == []
    return sql


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        (INDEX, 7652),
        ("CREATE FULLTEXT CATALOG Books", 7642),
        ("DROP FULLTEXT CATALOG books", 7668),
        ("DROP FULLTEXT CATALOG nothing", 7641),
        ("CREATE FULLTEXT INDEX ON nothing (a) KEY INDEX k", 1088),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (title) KEY INDEX uq", 7653),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (nothing) KEY INDEX pk_d", 1911),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (title) KEY INDEX pk_d ON nothing", 7641),
        ("DROP FULLTEXT INDEX ON d DROP FULLTEXT INDEX ON d", 7605),
        (f"CREATE DATABASE o; USE o; {ELSEWHERE}", 9967),
        ("BEGIN TRAN CREATE FULLTEXT CATALOG more", 574),
        ("CREATE FULLTEXT STOPLIST s", 40517),
    ],
)
def test_what_cannot_be_made(library: Client, statement: str, number: int) -> None:
    assert library(statement).errors == [number]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM d WHERE CONTAINS((title, file_), 'x AND y', LANGUAGE 1033)",
        "SELECT id FROM d WHERE id = 1 OR NOT FREETEXT(d.*, 'x')",
        "SELECT [KEY] FROM CONTAINSTABLE(d, *, 'x', 10) AS found",
        "SELECT [KEY] FROM d JOIN FREETEXTTABLE(dbo.d, (title), 'x') AS found ON found.[KEY] = d.id",
    ],
)
def test_searching_is_refused_when_the_statement_runs(library: Client, statement: str) -> None:
    assert library(statement).errors == [7609]
    assert library(f"CREATE PROC searches AS {statement}").errors == []
    assert library("EXEC searches").errors == [7609]


def test_the_catalogue_tells_of_catalogues_and_indexes(library: Client) -> None:
    server = library.session.server
    server.catalog = Catalog(server)
    assert library("SELECT name, is_default FROM sys.fulltext_catalogs").rows == [("books", 1)]
    query = "SELECT OBJECT_NAME(object_id), unique_index_id FROM sys.fulltext_indexes"
    assert library(query).rows == [("d", 1)]
    columns = "SELECT column_id, type_column_id, language_id FROM sys.fulltext_index_columns ORDER BY 1"
    assert library(columns).rows == [(2, None, 1033), (3, 4, 1033)]
    assert library("SELECT SERVERPROPERTY('IsFullTextInstalled')").rows[0][0][1] == 0
    server.catalog.close()
