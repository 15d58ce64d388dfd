"""Paths and app ids."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.layout import Layout, encode_segment
from mssql_cdc.schema import TableId

LAYOUT = Layout("/lake/", "server1", "my db")


@given(st.text(min_size=1).filter(lambda t: max(t) < "\ud800" or max(t) > "\udfff"))
def test_segment_is_safe_and_can_be_decoded(name: str):
    name = name.encode("utf-8", "ignore").decode() or "x"
    segment = encode_segment(name)
    assert re.fullmatch(r"[A-Za-z0-9._ %-]+", segment)
    assert segment[0] not in "_."
    assert segment[-1] not in ". "
    assert unquote(segment) == name


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders", "orders"),
        ("_x", "%5Fx"),
        (".", "%2E"),
        ("a.b", "a.b"),
        ("a.", "a%2E"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("a/b%", "a%2Fb%25"),
        ("my table", "my table"),
    ],
)
def test_segment_of(name: str, segment: str):
    assert encode_segment(name) == segment


def test_segment_of_nothing_is_refused():
    with pytest.raises(ConfigurationError):
        encode_segment("")


def test_home_holds_change_log_and_current_table_of_one_owner():
    home = LAYOUT.home(TableId("my db", "dbo", "orders"))
    assert home.changes == "/lake/server1/my db/dbo/orders/changes"
    assert home.current == "/lake/server1/my db/dbo/orders/current"
    assert home.app_id == "mssql_cdc:server1:my db/dbo/orders"
    assert home.snapshot_app_id == home.app_id + ":snapshot"


def test_home_recorded_at_first_capture_survives_a_rename():
    first = LAYOUT.home(TableId("my db", "dbo", "orders"))
    renamed = LAYOUT.home(TableId("my db", "dbo", "orders2"), folder="dbo/orders")
    assert renamed == first


def test_names_that_collide_without_case_get_their_object_id():
    one, other, alone = (TableId("db", "dbo", name) for name in ("Orders", "orders", "items"))
    assert LAYOUT.folders({one: 11, other: 12, alone: 13}) == {
        one: "dbo/Orders~11",
        other: "dbo/orders~12",
        alone: "dbo/items",
    }


def test_own_tables_lie_beside_the_schemas():
    assert LAYOUT.own("offsets") == "/lake/server1/my db/_offsets"
    assert LAYOUT.own_app_id("offsets") != LAYOUT.own_app_id("signals")
