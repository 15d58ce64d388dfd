"""Rules of the methods of xml values: value, query, exist, nodes; and what they do not know.

Evidence: Microsoft's documentation "xml data type methods" and its examples.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client

DOCUMENT = '<r at="5"><a id="1">x</a><a id="2">y &amp; z</a><b><a id="3"/></b></r>'
DECLARED = f"DECLARE @x xml = '{DOCUMENT}' "


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("@x.value('(/r/a/@id)[2]', 'int')", 2),
        ("@x.value('/r[1]/@at', 'varchar(5)')", "5"),
        ("@x.value('(/r/a)[2]', 'varchar(10)')", "y & z"),
        ("@x.value('(/r/a[2]/text())[1]', 'varchar(10)')", "y & z"),
        ("@x.value('string((/r/a)[2])', 'varchar(10)')", "y & z"),
        ("@x.value('string(/r[1]/nothing)', 'varchar(10)')", ""),
        ("@x.value('data(/r/@at)[1] - data(/r/a/@id)[1] + 0.5', 'varchar(9)')", "4.5"),
        ("@x.value('\"it&#x27;s\"', 'varchar(9)')", "it's"),
        ("@x.value('(: a comment :) (/r/b/a/@id)[1]', 'int')", 3),
        ("@x.value('(/r/nothing)[1]', 'int')", None),
        ("@x.exist('/r/a[2]')", 1),
        ("@x.exist('/r/c')", 0),
        ("CAST(@x.query('/r/a[1]') AS nvarchar(50))", '<a id="1">x</a>'),
        ("CAST(@x.query('/r/b') AS nvarchar(50))", '<b><a id="3"/></b>'),
        ("CAST(@x.query('/r/a[2]') AS nvarchar(50))", '<a id="2">y &amp; z</a>'),
        ("@x.query('/r/b').value('(/b/a/@id)[1]', 'int')", 3),
        ("CAST(@x.query('data(/r/a)') AS nvarchar(50))", "x y &amp; z"),
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


def test_a_cell_of_nodes_knows_what_is_around_it(sql: Client) -> None:
    query = "SELECT n.value('(/r/b/a/@id)[1]', 'int') FROM @x.nodes('/r/a') AS t (n)"
    assert sql(f"{DECLARED} {query}").rows == [(3,), (3,)]


def test_sql_values_can_stand_in_queries(sql: Client) -> None:
    sql(f"CREATE TABLE d (id int, x xml) INSERT d VALUES (1, '{DOCUMENT}'), (2, '{DOCUMENT}')")
    query = """DECLARE @v varchar(5) = '7'
    SELECT id, x.value('data(/r/@at)[1] + sql:column("d.id") - sql:variable("@v")', 'int') FROM d ORDER BY id"""
    assert sql(query).rows == [(1, -1), (2, 0)]


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ("insert <n/> into (/r)[1]", '<r a="1"><b>x</b><n/></r>'),
        ("insert <n/> as first into (/r)[1]", '<r a="1"><n/><b>x</b></r>'),
        ("insert <n>0 &lt; 1</n> as last into (/r)[1]", '<r a="1"><b>x</b><n>0 &lt; 1</n></r>'),
        ('declare namespace p="urn:p"; insert <p:n/> into (/r)[1]', '<r a="1"><b>x</b><p:n xmlns:p="urn:p"/></r>'),
        ('insert sql:variable("@y") into (/r)[1]', '<r a="1"><b>x</b><y/></r>'),
        ("delete /r/b", '<r a="1"/>'),
        ("delete /r/@a", "<r><b>x</b></r>"),
        ('replace value of (/r/b/text())[1] with "z"', '<r a="1"><b>z</b></r>'),
        ('replace value of (/r/@a)[1] with data(/r/@a)[1] + sql:variable("@v")', '<r a="8"><b>x</b></r>'),
        ('replace value of (/r/c/text())[1] with "nothing there"', '<r a="1"><b>x</b></r>'),
    ],
)
def test_modify_changes_a_variable_and_a_column(sql: Client, change: str, after: str) -> None:
    given = "DECLARE @v int = 7, @y xml = '<y/>', @x xml = '<r a=\"1\"><b>x</b></r>';"
    assert sql(f"{given} SET @x.modify('{change}') SELECT @x").rows == [(after,)]
    sql("CREATE TABLE d (id int, x xml)")
    update = f"INSERT d VALUES (1, @x), (2, @x) UPDATE d SET x.modify('{change}') WHERE id = 2"
    assert sql(f"{given} {update}").errors == []
    assert sql("SELECT x FROM d ORDER BY id").rows == [('<r a="1"><b>x</b></r>',), (after,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SET @x.modify('insert <n/> into /r/a')", 2226),
        ("SET @x.modify('replace value of /r/@at with 1')", 2337),
        ("SET @x.modify('replace value of (/r/a)[1] with 1')", 2356),
        ("SET @x.modify('insert sql:variable(\"@i\") into (/r)[1]')", 2207),
        ("SET @x.modify('insert <n/> after (/r/a)[1]')", 9335),
        ("SET @x.modify('insert <n a=\"1\"/> into (/r)[1]')", 9335),
        ("SET @x.modify('delete .')", 2208),
        ("SET @x.modify('change /r')", 2209),
        ("SET @n.modify('delete /r')", 5302),
        ("SET @x.query('/r')", 8137),
        ("SET @i.modify('delete /r')", 258),
        ("SELECT @x.modify('delete /r')", 8137),
        ("SELECT @x.value('/r/a', 'int')", 2389),
        ("SELECT @x.value('(/r/a)[1]', 'nothing')", 243),
        ("SELECT @x.value('for $i in /r return $i', 'int')", 9335),
        ("SELECT @x.query('/r/@at')", 2396),
        ("SELECT @x.query('/r/ancestor::r')", 9335),
        ("SELECT @x.query('//a')", 9335),
        ("SELECT @x.query('/r/*')", 9335),
        ("SELECT @x.query('/r/..')", 9335),
        ("SELECT @x.query('/r/a[@id=1]')", 9335),
        ("SELECT @x.query('count(/r)')", 9335),
        ("SELECT @x.query('/r, /r')", 9335),
        ("SELECT @x.query('<n/>')", 9335),
        ("SELECT @x.query('/p:r')", 2229),
        ("SELECT @x.query('/r[')", 2209),
        ("SELECT @x.value(1, 'int')", 8172),
        ("SELECT @x.nothing('/r')", 6506),
        ("; WITH XMLNAMESPACES ('urn:a' AS a) SELECT @x.exist('/a:r')", 40517),
    ],
)
def test_what_is_wrong_is_an_error(sql: Client, statement: str, number: int) -> None:
    assert sql(f"{DECLARED}, @n xml, @i int = 1 {statement}").errors == [number]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("<a ></a>", "<a/>"),
        ('<?xml version="1.0"?><a> <b> x </b>\n</a>', "<a><b> x </b></a>"),
        ("<a><![CDATA[<x>]]></a>", "<a>&lt;x&gt;</a>"),
        ("<a b=''1''/>", '<a b="1"/>'),
        ('<a xml:space="preserve"> </a>', '<a xml:space="preserve"> </a>'),
        ('<p:a xmlns:p="urn:p"/>', '<p:a xmlns:p="urn:p"/>'),
        ("text <b/> and <b/>", "text <b/> and <b/>"),
    ],
)
def test_text_becomes_xml_as_the_server_keeps_it(sql: Client, written: str, kept: str) -> None:
    sql("CREATE TABLE d (x xml)")
    assert sql(f"SELECT CAST(N'{written}' AS xml)").rows == [(kept,)]
    assert sql(f"INSERT d VALUES ('{written}') SELECT x FROM d").rows == [(kept,)]


def test_convert_with_style_1_keeps_white_space(sql: Client) -> None:
    assert sql("SELECT CONVERT(xml, '<a> </a>'), CONVERT(xml, '<a> </a>', 1)").rows == [("<a/>", "<a> </a>")]


@pytest.mark.parametrize(
    ("written", "number"), [("<a>", 9400), ("<a></b>", 9436), ("<p:a/>", 9459), ('<a b="" b=""/>', 9437)]
)
def test_what_is_not_well_formed_is_refused(sql: Client, written: str, number: int) -> None:
    assert sql(f"SELECT CAST('{written}' AS xml)").errors == [number]
    assert sql(f"CREATE TABLE d (x xml) INSERT d VALUES ('{written}')").errors == [number]
