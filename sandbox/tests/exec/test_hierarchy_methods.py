"""Rules of the methods of hierarchyid values; and types whose methods are not known.

Evidence: Microsoft's documentation "hierarchyid data type method reference".
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


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


def test_texts_convert_to_hierarchyid_and_back(sql: Client) -> None:
    """As Parse and ToString do, implicitly too [doc: hierarchyid, "Converting"; wire: go-mssqldb's own tests]."""
    assert sql("SELECT CAST('/' AS hierarchyid), CAST(CAST(N'/1/2/' AS hierarchyid) AS varchar(9))").rows == [
        (b"", "/1/2/")
    ]
    sql("CREATE TABLE h (n hierarchyid); INSERT h VALUES ('/3/')")
    assert sql("SELECT n.ToString(), CONVERT(nchar(4), n) FROM h").rows == [("/3/", "/3/ ")]
    assert sql("SELECT CAST('3' AS hierarchyid)").errors == [6522]


@pytest.mark.parametrize(
    ("expression", "number"),
    [("hierarchyid::Parse('x')", 6522), ("hierarchyid::Nothing()", 6506), ("geography::Point(1, 2, 4326)", 6506)],
)
def test_what_types_do_not_know(sql: Client, expression: str, number: int) -> None:
    assert sql(f"SELECT {expression}").errors == [number]
