"""Paths and app ids."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from unicodedata import ucd_3_2_0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.layout import LONGEST, Layout, encode_segment
from mssql_cdc.lake.read import read_table
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import NAMES, Change, append, change_log, orders

LAYOUT = Layout("/lake/", "server1", "my db")


def decoded(segment: str) -> str:
    return re.sub("_x([0-9A-F]{8}|[0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), segment)


@given(st.text(min_size=1, max_size=LONGEST // len("_xHHHHHHHH_") - 1))
def test_segment_can_be_decoded_so_two_names_never_share_one(name: str):
    segment = encode_segment(name)
    assert decoded(segment) == name
    assert all(c in "-._ " or ucd_3_2_0.category(c)[0] in "LMN" for c in segment)
    assert segment[0] not in ". "
    assert segment[0] != "_" or segment.startswith("_x")
    assert segment[-1] not in ". "


@given(st.text(min_size=1, max_size=128))
def test_segment_fits_every_file_system(name: str):
    assert len(encode_segment(name).encode()) <= LONGEST


def test_segments_of_long_names_with_a_common_prefix_differ():
    assert encode_segment("日" * 127 + "本") != encode_segment("日" * 127 + "語")


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders", "orders"),
        ("my_xml_table", "my_xml_table"),
        ("größe", "größe"),
        ("my table", "my table"),
        ("a.b", "a.b"),
        ("_x", "_x005F_x"),
        (".", "_x002E_"),
        ("a.", "a_x002E_"),
        (" a ", "_x0020_a_x0020_"),
        ("a/b%", "a_x002F_b_x0025_"),
        ("🙂", "_x0001F642_"),
        ("a_x0021$", "a_x005F_x0021_x0024_"),
        ("a_x00ff", "a_x005F_x00ff"),
        ("Con", "_x0043_on"),
        ("aux.txt", "_x0061_ux.txt"),
        ("console", "console"),
        ("x" * 201, "x" * 183 + "!" + sha256(b"x" * 201).hexdigest()[:16]),
    ],
)
def test_segment_of(name: str, segment: str):
    assert encode_segment(name) == segment


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_table_of_any_name_is_created_committed_to_and_read(tmp_path: Path, name: str):
    schema = orders()
    home = Layout(str(tmp_path), name, name).home(TableId(name, name, name))
    for number in (1, 2):
        append(change_log(home, schema), schema, Change(number, "c", after={"id": number}))
    assert change_log(home, schema).batch == 2
    assert read_table(home.changes, columns=["_key"]).column("_key").to_pylist() == ["1:1", "1:2"]
    assert Path(home.changes, "_delta_log").is_dir()
    assert [part.name for part in tmp_path.iterdir()] == [encode_segment(name)]


@pytest.mark.parametrize("folder", ["50%25", "a#b", "a\\b", "lake*", "a?b", "[a]", "{a}"])
def test_warehouse_with_an_ambiguous_path_is_rejected(folder: str):
    with pytest.raises(ConfigurationError, match="choose another folder"):
        Layout(f"/data/{folder}", "server1", "shop")


def test_segment_of_an_empty_name_is_rejected():
    with pytest.raises(ConfigurationError):
        encode_segment("")


def test_home_contains_change_log_and_current_table_of_one_owner():
    home = LAYOUT.home(TableId("my db", "dbo", "orders"))
    assert home.changes == "/lake/server1/my db/dbo/orders/changes"
    assert home.current == "/lake/server1/my db/dbo/orders/current"
    assert home.app_id == "mssql_cdc:server1:my db/dbo/orders"


def test_home_recorded_at_first_capture_survives_a_rename():
    first = LAYOUT.home(TableId("my db", "dbo", "orders"))
    renamed = LAYOUT.home(TableId("my db", "dbo", "orders2"), folder="dbo/orders")
    assert renamed == first


def test_names_that_collide_without_case_get_their_object_id():
    one, other, alone = (TableId("db", "dbo", name) for name in ("Orders", "orders", "items"))
    assert LAYOUT.folders({one: 11, other: 12, alone: 13}) == {
        one: "dbo/Orders!11",
        other: "dbo/orders!12",
        alone: "dbo/items",
    }


@pytest.mark.parametrize(("one", "other"), [("é", "e\u0301"), ("É", "é"), ("STRASSE", "straße")])
def test_names_that_some_file_system_treats_as_equal_get_their_object_id(one: str, other: str):
    found = LAYOUT.folders({TableId("db", "dbo", one): 1, TableId("db", "dbo", other): 2})
    assert list(found.values()) == [f"dbo/{one}!1", f"dbo/{other}!2"]


def test_own_tables_are_next_to_the_schemas():
    assert LAYOUT.own("offsets") == "/lake/server1/my db/_offsets"
    assert LAYOUT.own_app_id("offsets") != LAYOUT.own_app_id("signals")
