"""XML schema collections, typed xml columns and XML indexes.

Evidence: Microsoft's pages on CREATE XML SCHEMA COLLECTION and CREATE XML INDEX, sys.xml_schema_collections and
sys.xml_indexes, and the AdventureWorks scripts, which use all of them.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

SCHEMA = """<xsd:schema targetNamespace="urn:a" xmlns="urn:a" elementFormDefault="qualified"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema">
    <xsd:simpleType name="size"><xsd:restriction base="xsd:int"/></xsd:simpleType>
    <xsd:element name="r"><xsd:complexType><xsd:sequence>
        <xsd:element name="price" type="xsd:decimal"/><xsd:element name="size" type="size" minOccurs="0"/>
        </xsd:sequence><xsd:attribute name="on" type="xsd:boolean"/></xsd:complexType></xsd:element>
</xsd:schema>"""
OTHER = '<s:schema targetNamespace="urn:b" xmlns:s="http://www.w3.org/2001/XMLSchema"><s:element name="q"/></s:schema>'
GOOD = '<r xmlns="urn:a" on="1"><price>1.50</price><size>7</size></r>'
TABLE = "CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, x xml(CONTENT dbo.c) NULL, y xml NULL, z int)"


@pytest.fixture
def typed(sql: Client) -> Client:
    assert sql(f"CREATE XML SCHEMA COLLECTION dbo.c AS N'{SCHEMA}'").errors == []
    assert sql(TABLE).errors == []
    return sql


def test_values_that_keep_to_their_schemas_are_stored(typed: Client) -> None:
    assert typed(f"INSERT t (id, x, y) VALUES (1, '{GOOD}', '<other/>'), (2, NULL, NULL)").errors == []
    assert typed("SELECT x FROM t WHERE id = 1").rows == [(GOOD,)]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("<other/>", 6913),
        ('<r xmlns="urn:a"><price>dear</price></r>', 6926),
        ('<r xmlns="urn:a"><price>1</price><size>1.5x</size></r>', 6926),
        ('<r xmlns="urn:a" on="perhaps"><price>1</price></r>', 6926),
    ],
)
def test_values_that_do_not_are_refused(typed: Client, value: str, number: int) -> None:
    assert typed(f"INSERT t (id, x) VALUES (1, '{value}')").errors == [number]
    assert typed(f"DECLARE @x xml = '{value}' INSERT t (id, x) SELECT 1, @x").errors == [number]
    typed(f"INSERT t (id, x) VALUES (1, '{GOOD}')")
    assert typed(f"UPDATE t SET x = '{value}'").errors == [number]


def test_values_have_the_types_of_their_schemas(typed: Client) -> None:
    typed(f"INSERT t (id, x, y) VALUES (1, '{GOOD}', '{GOOD}')")
    space = 'declare default element namespace "urn:a";'
    query = f"SELECT CAST({{}}.query('{space} data((/r/price)[1]) + 1') AS nvarchar(20)) FROM t"
    assert typed(query.format("x")).rows == [("2.5",)]
    assert typed(f"SELECT x.value('{space} /r/price', 'money') FROM t").errors == [], (
        "a schema might know that it is one"
    )
    assert typed(f"SELECT y.value('{space} /r/price', 'money') FROM t").errors == [2389]
    change = f"UPDATE t SET x.modify('{space} replace value of (/r/price)[1] with data(/r/price)[1] + 1.5')"
    assert typed(change).errors == []
    assert typed(f"SELECT n.value('{space} price', 'money') FROM t CROSS APPLY x.nodes('{space} /r') v(n)").rows == [
        (3,)
    ]
    assert typed(change.replace("x.modify", "y.modify")).errors == [2356], "untyped elements have no value of their own"


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        (f"CREATE XML SCHEMA COLLECTION c AS '{OTHER}'", 2714),
        ("CREATE XML SCHEMA COLLECTION d AS '<nothing/>'", 2306),
        ("CREATE XML SCHEMA COLLECTION d AS '<s:schema/>'", 9459),
        (f"ALTER XML SCHEMA COLLECTION d ADD '{OTHER}'", 6314),
        ("DROP XML SCHEMA COLLECTION d", 3701),
        ("DROP XML SCHEMA COLLECTION c", 6328),
        ("CREATE TABLE u (x xml(d))", 6314),
    ],
)
def test_what_a_collection_refuses(typed: Client, statement: str, number: int) -> None:
    assert typed(statement).errors == [number]


def test_a_collection_grows_and_goes(typed: Client) -> None:
    assert typed("INSERT t (id, x) VALUES (1, '<q xmlns=\"urn:b\"/>')").errors == [6913]
    assert typed(f"BEGIN TRAN ALTER XML SCHEMA COLLECTION c ADD '{OTHER}' ROLLBACK").errors == []
    assert typed("INSERT t (id, x) VALUES (1, '<q xmlns=\"urn:b\"/>')").errors == [6913]
    assert typed(f"ALTER XML SCHEMA COLLECTION c ADD '{OTHER}'").errors == []
    assert typed("INSERT t (id, x) VALUES (1, '<q xmlns=\"urn:b\"/>')").errors == []
    assert typed("DROP TABLE t DROP XML SCHEMA COLLECTION c").errors == []


def test_xml_indexes_are_in_the_catalogue(typed: Client) -> None:
    server = typed.session.server
    server.catalog = Catalog(server)
    script = """CREATE PRIMARY XML INDEX px ON t (x) CREATE XML INDEX sx ON t (x) USING XML INDEX px FOR PATH
    CREATE PRIMARY XML INDEX py ON t (y)"""
    assert typed(script).errors == []
    query = """SELECT name, type_desc, using_xml_index_id, secondary_type_desc, xml_index_type_description
    FROM sys.xml_indexes ORDER BY index_id"""
    assert typed(query).rows == [
        ("px", "XML", None, None, "PRIMARY_XML"), ("sx", "XML", 256000, "PATH", "SECONDARY_XML"),
        ("py", "XML", None, None, "PRIMARY_XML"),
    ]  # fmt: skip
    assert typed("SELECT name FROM sys.xml_schema_collections").rows == [("sys",), ("c",)]
    assert typed("SELECT COUNT(*) FROM sys.column_xml_schema_collection_usages").rows == [(1,)]
    assert typed("DROP INDEX px ON t SELECT name FROM sys.xml_indexes").rows == [("py",)], "with what uses it"
    server.catalog.close()


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE PRIMARY XML INDEX pk ON t (x)", 1913),
        ("CREATE PRIMARY XML INDEX px ON t (z)", 1919),
        ("CREATE PRIMARY XML INDEX px ON t (nothing)", 1911),
        ("CREATE PRIMARY XML INDEX px ON nothing (x)", 1088),
        ("CREATE XML INDEX sx ON t (x) USING XML INDEX px FOR VALUE", 6343),
        ("CREATE PRIMARY XML INDEX px ON t (x) CREATE PRIMARY XML INDEX qx ON t (x)", 6342),
        ("CREATE TABLE h (x xml) CREATE PRIMARY XML INDEX px ON h (x)", 6332),
    ],
)
def test_xml_indexes_that_cannot_be(typed: Client, statement: str, number: int) -> None:
    assert typed(statement).errors == [number]
