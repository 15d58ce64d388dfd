"""XQuery over values: what expressions find.

Evidence: Microsoft's XQuery language reference for SQL Server (paths, FLWOR, operators, constructors, functions).
"""

from __future__ import annotations

import pytest

from mssql_sandbox.engine.xml.queries import fragment
from mssql_sandbox.engine.xml.query_parser import parse_query

DOCUMENT = '<r at="5"><a id="1">x</a><a id="2">y &amp; z</a><b><a id="3"/><!--c--><?p i?></b></r>'
SPACES = '<top xmlns="urn:a" xmlns:p="urn:p"><c p:x="1"><p:d/></c></top>'


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("/r/a[1]", '<a id="1">x</a>'),
        ("//a[@id=3]/..", '<b><a id="3"/><!--c--><?p i?></b>'),
        ("/r/b/comment()", "<!--c-->"),
        ("/r/b/processing-instruction()", "<?p i?>"),
        ("/r/*[2]", '<a id="2">y &amp; z</a>'),
        ("(//a)[last()]", '<a id="3"/>'),
        ("/r/a[position() < 2]/text()", "x"),
        ('/r/a[@id="1" and . = "x" or false()]/text()', "x"),
        ("/r/b/a[not(text())]", '<a id="3"/>'),
        ("count(/r/(a | b))", "3"),
        ("/r/descendant::a[3]", '<a id="3"/>'),
        ("/child::r/attribute::at = 5", "true"),
        ("data(//@id)", "1 2 3"),
        ("sum(//@id)", "6"),
        ("avg(//@id)", "2"),
        ("max(//@id)", "3"),
        ("min((3, 1, 2))", "1"),
        ("1 + 2 * 3 - 4 div 2", "5"),
        ("7 mod 4", "3"),
        ("-(1.5)", "-1.5"),
        ("xs:decimal('1.50')", "1.5"),
        ("'5' cast as xs:int ?", "5"),
        ("xs:int('no')", ""),
        ("1e3", "1000"),
        ("distinct-values((1, 2, 1))", "1 2"),
        ('concat("a", "b", string((/r/a)[1]))', "abx"),
        ('substring("hello", 2, 3)', "ell"),
        ('contains("hello", "ell")', "true"),
        ('string-length("four")', "4"),
        ('upper-case("é")', "É"),
        ("local-name((/r/b)[1])", "b"),
        ("round(2.5)", "3"),
        ("floor(-1.5)", "-2"),
        ("ceiling(1.2)", "2"),
        ("empty(/r/none)", "true"),
        ("(/r/a)[1] is (/r/*)[1]", "true"),
        ("(/r/a)[1] << (/r/b)[1]", "true"),
        ("some $i in /r/a satisfies $i/@id = 2", "true"),
        ("every $i in /r/a satisfies $i/@id = 2", "false"),
        ('if (/r/@at = 5) then "yes" else "no"', "yes"),
        ("for $i in /r//a where $i/@id > 1 order by xs:int($i/@id) descending return string($i/@id)", "3 2"),
        ("for $i in /r/a let $n := $i/@id + 1 return <n v='{$n}'>{data($i)}</n>",
         '<n v="2">x</n><n v="3">y &amp; z</n>'),
        ("<x k='1'>{/r/a[1], 'and', /r/@at}</x>", '<x k="1" at="5"><a id="1">x</a>and</x>'),
        ("<x>a{{b}}{'c'}<!--d--></x>", "<x>a{b}c<!--d--></x>"),
        ("element n {attribute m {1 + 1}, 'text'}", '<n m="2">text</n>'),
        ("(: a comment :) /r/a[1]/text()", "x"),
        ("(1, (2, 3), ())", "1 2 3"),
    ],
)  # fmt: skip
def test_queries_find(query: str, found: str) -> None:
    assert fragment(DOCUMENT, parse_query(query, "query"), {}) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("/top", ""),
        ("/*:top/*:c/*:d", '<p:d xmlns:p="urn:p"/>'),
        ('declare default element namespace "urn:a"; count(/top/c)', "1"),
        ('declare namespace q="urn:p"; data(//@q:x)', "1"),
        ('declare namespace a="urn:a"; /a:top/a:c', '<p1:c xmlns:p1="urn:a" xmlns:p="urn:p" p:x="1"><p:d/></p1:c>'),
        ('declare namespace q="urn:p"; <q:n/>', '<q:n xmlns:q="urn:p"/>'),
    ],
)
def test_names_are_those_of_their_namespaces(query: str, found: str) -> None:
    assert fragment(SPACES, parse_query(query, "query"), {}) == found


@pytest.mark.parametrize(
    ("query", "many"),
    [
        ("(/r/a)[1]", False), ("/r/a[1]", True), ("(/r/a)[1]/@id", False), ("(/r/a)[1]/b", True), ("/r[1]/a[1]", False),
        (".", False), ("..", False), ("count(//a)", False), ("(/r/a)[last()]", False), ("data(/r)", True),
        ("(1, 2)", True), ("if (1) then 1 else //a", True), ("(/r/a)[1]/text()", True),
    ],
)  # fmt: skip
def test_whether_there_may_be_several_is_known_before_anything_runs(query: str, many: object) -> None:
    assert parse_query(query, "value").many is many
