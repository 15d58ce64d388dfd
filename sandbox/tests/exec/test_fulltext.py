"""Full-text catalogues, indexes and searches, in a simple form.

Evidence: Microsoft's pages on CREATE FULLTEXT CATALOG and INDEX, CONTAINS, FREETEXT and their table functions.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

SETUP = """
CREATE TABLE dbo.d (id int NOT NULL CONSTRAINT pk_d PRIMARY KEY, title nvarchar(50), body xml, file_ varbinary(max),
    kind nvarchar(8), other nvarchar(20), n int NULL, CONSTRAINT uq UNIQUE (n))
INSERT d (id, title, body, file_, kind, other, n) VALUES
    (1, N'The red bicycle', '<p>It rides well</p>', CAST('plain text' AS varbinary(max)), '.txt', 'red', 1),
    (2, N'Bicycles, blue and red', NULL, CAST('doc text' AS varbinary(max)), '.doc', 'x', 2),
    (3, N'A café for riders', '<p at="seats">of any kind</p>', NULL, NULL, 'x', 3)
"""
INDEX = "CREATE FULLTEXT INDEX ON d (title LANGUAGE 1033, body, file_ TYPE COLUMN kind) KEY INDEX pk_d"

ELSEWHERE = """CREATE TABLE t (a int NOT NULL CONSTRAINT p PRIMARY KEY, b text)
CREATE FULLTEXT INDEX ON t (b) KEY INDEX p"""


@pytest.fixture
def library(sql: Client) -> Client:
    assert sql(SETUP).errors == []
    assert sql("CREATE FULLTEXT CATALOG books AS DEFAULT").errors == []
    assert sql(INDEX).errors == []
    return sql


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("CONTAINS(title, 'bicycle')", [1]),
        ("CONTAINS(title, N'\"bicycle*\"')", [1, 2]),
        ("CONTAINS(title, '\"red bicycle\"')", [1]),
        ("CONTAINS(title, 'red AND NOT blue')", [1]),
        ("CONTAINS(title, '(blue OR café) AND NOT \"red bicycle\"')", [2, 3]),
        ("CONTAINS(title, 'red NEAR blue')", [2]),
        ("CONTAINS(title, 'NEAR((red, bicycle), 5)')", [1]),
        ("CONTAINS(title, 'FORMSOF(INFLECTIONAL, bicycle)')", [1, 2]),
        ("CONTAINS(title, 'FORMSOF(THESAURUS, bicycle)')", [1]),
        ("CONTAINS((title, body), 'seats')", [3]),
        ("CONTAINS(*, 'plain')", [1]),
        ("CONTAINS(d.*, 'doc')", []),
        ("CONTAINS(title, 'the')", []),
        ("FREETEXT(title, 'riding bicycles')", [1, 2]),
        ("FREETEXT(*, N'any ride of the', LANGUAGE 1033)", [1]),
        ("NOT FREETEXT(title, 'red') AND id > 1", [3]),
        ("CONTAINS(title, 'cafe')", []),
    ],
)
def test_rows_are_found_by_their_words(library: Client, condition: str, ids: list[int]) -> None:
    assert [row[0] for row in library(f"SELECT id FROM d WHERE {condition} ORDER BY id").rows] == ids
    assert library("DECLARE @w nvarchar(9) = 'red' SELECT COUNT(*) FROM d AS x WHERE CONTAINS(x.title, @w)").rows == [
        (2,)
    ]


def test_accents_count_as_the_catalogue_says(library: Client) -> None:
    assert library("ALTER FULLTEXT CATALOG books REBUILD WITH ACCENT_SENSITIVITY = OFF").errors == []
    assert library("SELECT id FROM d WHERE CONTAINS(title, 'cafe')").rows == [(3,)]


def test_the_table_functions_give_keys_and_ranks(library: Client) -> None:
    query = "SELECT d.id FROM d JOIN CONTAINSTABLE(d, (title), 'red', LANGUAGE 1033) AS k ON k.[KEY] = d.id ORDER BY 1"
    assert library(query).rows == [(1,), (2,)]
    rows = library("SELECT [KEY], [RANK] FROM FREETEXTTABLE(dbo.d, *, 'plain red bicycle', 1) AS k").rows
    assert [key for key, _ in rows] == [1]
    assert 0 < rows[0][1] <= 1000


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SELECT 1 FROM d WHERE CONTAINS(other, 'x')", 7601),
        ("CREATE TABLE e (t varchar(9)) SELECT 1 FROM e WHERE FREETEXT(*, 'x')", 7601),
        ("CREATE TABLE e (t varchar(9)) SELECT 1 FROM CONTAINSTABLE(e, t, 'x') AS k", 7601),
        ("SELECT 1 FROM CONTAINSTABLE(nothing, *, 'x') AS k", 208),
        ("SELECT 1 FROM d WHERE CONTAINS(title, '')", 7645),
        ("SELECT 1 FROM d WHERE CONTAINS(title, NULL)", 7645),
        ("SELECT 1 FROM d WHERE CONTAINS(title, 'two words')", 7630),
        ("SELECT 1 FROM d WHERE CONTAINS(title, 'a AND')", 7630),
        (INDEX, 7652),
        ("CREATE FULLTEXT CATALOG Books", 7642),
        ("DROP FULLTEXT CATALOG books", 7668),
        ("DROP FULLTEXT CATALOG nothing", 7641),
        ("CREATE FULLTEXT INDEX ON nothing (a) KEY INDEX k", 1088),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (title) KEY INDEX uq", 7653),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (id) KEY INDEX pk_d", 7670),
        ("DROP FULLTEXT INDEX ON d CREATE FULLTEXT INDEX ON d (title) KEY INDEX pk_d ON nothing", 7641),
        ("DROP FULLTEXT INDEX ON d DROP FULLTEXT INDEX ON d", 7605),
        (f"CREATE DATABASE o; USE o; {ELSEWHERE}", 9967),
        ("BEGIN TRAN CREATE FULLTEXT CATALOG more", 574),
        ("CREATE FULLTEXT STOPLIST s", 156),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_or_made(library: Client, statement: str, number: int) -> None:
    assert library(statement).errors == [number]


def test_the_catalogue_tells_of_catalogues_and_indexes(library: Client) -> None:
    server = library.session.server
    server.catalog = Catalog(server)
    assert library("ALTER FULLTEXT INDEX ON d SET CHANGE_TRACKING = MANUAL").errors == []
    assert library("SELECT name, is_default, is_accent_sensitivity_on FROM sys.fulltext_catalogs").rows == [
        ("books", 1, 1)
    ]
    query = "SELECT OBJECT_NAME(object_id), change_tracking_state_desc, is_enabled FROM sys.fulltext_indexes"
    assert library(query).rows == [("d", "MANUAL", 1)]
    columns = "SELECT column_id, type_column_id, language_id FROM sys.fulltext_index_columns ORDER BY 1"
    assert library(columns).rows == [(2, None, 1033), (3, None, 1033), (4, 5, 1033)]
    assert library("ALTER FULLTEXT INDEX ON d DISABLE SELECT 1 FROM d WHERE CONTAINS(*, 'x')").errors == [7601]
    server.catalog.close()
