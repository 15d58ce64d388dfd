"""Rules of the methods of xml values: value, query, exist, nodes; and what they do not know.

Evidence: Microsoft's documentation "xml data type methods" and its examples.
"""

from __future__ import annotations

import pytest

from mssql_cdc_tests.sandbox.exec.conftest import Client

DOCUMENT = '<r at="5"><a id="1">x</a><a id="2">y &amp; z</a><b><a id="3"/></b></r>'
DECLARED = f"DECLARE @x xml = '{DOCUMENT}' "


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("@x.value('(/r/a/@id)[2]', 'int')", 2),
        ("@x.value('/r[1]/@at', 'varchar(5)')", "5"),
        ("@x.value('(/r/a)[2]', 'varchar(10)')", "y & z"),
        ("@x.value('(/r/a[@id=\"1\"]/text())[1]', 'varchar(10)')", "x"),
        ("@x.value('(/r/a[last()]/@id)[1]', 'int')", 2),
        ("@x.value('count(//a)', 'int')", 3),
        ("@x.value('local-name(/r[1]/b[1])', 'varchar(5)')", "b"),
        ("@x.value('(/r/nothing)[1]', 'int')", None),
        ("@x.exist('/r/a[@id=\"2\"]')", 1),
        ("@x.exist('/r/c')", 0),
        ("CAST(@x.query('/r/a[1]') AS nvarchar(50))", '<a id="1">x</a>'),
        ("CAST(@x.query('/r/b') AS nvarchar(50))", '<b><a id="3"/></b>'),
        ("CAST(@x.query('/r/a[2]') AS nvarchar(50))", '<a id="2">y &amp; z</a>'),
        ("@x.query('/r/b').value('(/b/a/@id)[1]', 'int')", 3),
        ("(SELECT 'a<b' FOR XML PATH(''), TYPE).value('.', 'varchar(9)')", "a<b"),
        ("CAST(NULL AS xml).value('.', 'int')", None),
    ],
)
def test_paths(sql: Client, expression: str, value: object) -> None:
    assert sql(f"{DECLARED} SELECT {expression}").rows == [(value,)]


def test_prefixes_are_those_of_the_prolog(sql: Client) -> None:
    script = """DECLARE @x xml = '<r xmlns="urn:a"><c xmlns:p="urn:b"><p:d>7</p:d></c></r>'
    SELECT @x.value('declare default element namespace "urn:a"; declare namespace q="urn:b"; (/r/c/q:d)[1]', 'int'),
        @x.exist('/r')"""
    assert sql(script).rows == [(7, 0)]


def test_nodes_give_a_row_for_each(sql: Client) -> None:
    rows = [(1, "x"), (2, "y & z")]
    assert sql(
        f"{DECLARED} SELECT n.value('@id', 'int'), n.value('.', 'varchar(9)') FROM @x.nodes('/r/a') AS t (n)"
    ).rows == rows  # fmt: skip
    sql(f"CREATE TABLE d (id int, x xml) INSERT d VALUES (1, '{DOCUMENT}'), (2, NULL)")
    query = "SELECT n.value('@id', 'int'), n.value('.', 'varchar(9)') FROM d CROSS APPLY d.x.nodes('/r/a') t(n)"
    assert sql(query).rows == rows
    assert sql("SELECT n.value('(a/@id)[1]', 'int') FROM d CROSS APPLY x.nodes('/r/b') t(n)").rows == [(3,)]


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("@x.value('/r/a', 'int')", 2389),
        ("@x.value('(/r/a)[1]', 'nothing')", 243),
        ("@x.value('for $i in /r return $i', 'int')", 9335),
        ("@x.modify('delete /r')", 6506),
        ("@x.value(1, 'int')", 8172),
    ],
)
def test_what_is_not_known_is_an_error(sql: Client, expression: str, number: int) -> None:
    assert sql(f"{DECLARED} SELECT {expression}").errors == [number]


# ---- hierarchyid -----------------------------------------------------------------------------------------------


def test_places_in_a_tree(sql: Client) -> None:
    sql("CREATE TABLE h (n hierarchyid PRIMARY KEY, depth AS n.GetLevel())")
    sql("INSERT h VALUES (hierarchyid::GetRoot()), (hierarchyid::Parse('/1/')), (hierarchyid::Parse('/1/20.5/'))")
    query = (
        "SELECT n.ToString(), depth, n.GetAncestor(1).ToString(), n.IsDescendantOf(hierarchyid::Parse('/1/')) FROM h"
    )
    assert sql(query).rows == [("/", 0, None, 0), ("/1/", 1, "/", 1), ("/1/20.5/", 2, "/1/", 1)]
    assert sql("DECLARE @h hierarchyid = hierarchyid::Parse('/2/') SELECT @h.ToString(), @h.GetLevel()").rows == [
        ("/2/", 1)
    ]


@pytest.mark.parametrize(
    ("expression", "number"),
    [("hierarchyid::Parse('x')", 6522), ("hierarchyid::Nothing()", 6506), ("geography::Point(1, 2, 4326)", 6506)],
)
def test_what_types_do_not_know(sql: Client, expression: str, number: int) -> None:
    assert sql(f"SELECT {expression}").errors == [number]
