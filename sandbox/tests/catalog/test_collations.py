"""sys.fn_helpcollations and COLLATIONPROPERTY [doc: both; published lists of the function's rows]."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.conftest import Make

INSENSITIVE = "kanatype-insensitive, width-insensitive"
ORDER = " for Unicode Data, SQL Server Sort Order {} on Code Page {} for non-Unicode Data"
DESCRIPTIONS = {
    "Latin1_General_BIN": "Latin1-General, binary sort",
    "Latin1_General_100_BIN2_UTF8": "Latin1-General-100, binary code point comparison sort, UTF8",
    "Latin1_General_CS_AS": f"Latin1-General, case-sensitive, accent-sensitive, {INSENSITIVE}",
    "Latin1_General_100_CI_AS_SC_UTF8": "Latin1-General-100, case-insensitive, accent-sensitive, "
    f"{INSENSITIVE}, supplementary characters, UTF8",
    "Japanese_XJIS_140_CI_AS_WS_VSS": "Japanese-XJIS-140, case-insensitive, accent-sensitive, kanatype-insensitive, "
    "width-sensitive, supplementary characters, variation selector sensitive",
    "SQL_Latin1_General_CP1_CI_AS": f"Latin1-General, case-insensitive, accent-sensitive, {INSENSITIVE}"
    + ORDER.format(52, 1252),
    "SQL_Latin1_General_CP1254_CS_AS": f"Turkish, case-sensitive, accent-sensitive, {INSENSITIVE}"
    + ORDER.format(129, 1254),
    "SQL_Scandinavian_CP850_CI_AS": f"Finnish-Swedish, case-insensitive, accent-sensitive, {INSENSITIVE}"
    + ORDER.format(60, 850),
    "SQL_Latin1_General_CP437_BIN": "Latin1-General, binary sort" + ORDER.format(30, 437),
}


@pytest.mark.parametrize("call", ["sys.fn_helpcollations()", "fn_helpcollations()"])
def test_collations_are_described(world: World, call: str) -> None:
    names = ", ".join(f"'{name}'" for name in DESCRIPTIONS)
    assert dict(world.rows(f"SELECT name, description FROM {call} WHERE name IN ({names})")) == DESCRIPTIONS


def test_every_collation_of_the_list_can_be_used_under_its_name(world: World) -> None:
    query = "SELECT COUNT(*), COUNT(COLLATIONPROPERTY(name, 'LCID')), COUNT(DISTINCT name) FROM fn_helpcollations()"
    ((listed, usable, names),) = world.rows(query)
    assert listed == usable == names
    assert listed > 4000


@pytest.mark.parametrize(("version", "found"), [("2017", 0), ("2019", 1)])
def test_collations_for_utf_8_come_with_2019(of_version: Make, version: str, found: int) -> None:
    query = "SELECT COUNT(*) FROM sys.fn_helpcollations() WHERE name = 'Latin1_General_100_CI_AS_SC_UTF8'"
    assert of_version(version).rows(query) == [(found,)]


@pytest.mark.parametrize(
    ("name", "style", "version", "sort_id"),
    [
        ("SQL_Latin1_General_CP1_CI_AS", 196609, 0, 52),
        ("Latin1_General_100_CS_AI_KS", 131074, 2, 0),
        ("Japanese_XJIS_140_BIN2", 0, 3, 0),
    ],
)
def test_properties_of_collations(world: World, name: str, style: int, version: int, sort_id: int) -> None:
    values = (f"CAST(COLLATIONPROPERTY('{name}', '{key}') AS int)" for key in ("ComparisonStyle", "Version", "SortId"))
    assert world.rows(f"SELECT {', '.join(values)}") == [(style, version, sort_id)]
