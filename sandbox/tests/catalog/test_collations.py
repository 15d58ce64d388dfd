"""COLLATIONPROPERTY [doc]."""

from __future__ import annotations

import pytest

from tests.cdc.client import World


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
