"""Names in Dagster: every SQL Server name can be encoded, and distinct names stay distinct."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.defs.keys import EXTRA_ASSETS, DatabaseNames, encode
from mssql_cdc.schema import TableId

NAMES = st.text(st.sampled_from("aAx_05f-. $ü"), min_size=1, max_size=8)


@given(NAMES | st.text(min_size=1, max_size=20))
def test_dagster_accepts_an_encoded_name(name):
    assert re.fullmatch(r"[A-Za-z0-9_]+", encode(name))


@given(NAMES, NAMES)
def test_distinct_names_stay_distinct(one, other):
    assert (encode(one) == encode(other)) == (one == other)


@pytest.mark.parametrize("name", ["orders", "Order_Lines2"])
def test_an_ordinary_name_is_unchanged(name):
    assert encode(name) == name


@given(NAMES, NAMES, NAMES, NAMES)
def test_databases_share_no_partitions_pool_or_job(connector, database, other_connector, other_database):
    one = DatabaseNames(connector, database)
    other = DatabaseNames(other_connector, other_database)
    assert (one.stem == other.stem) == ((connector, database) == (other_connector, other_database))


def test_the_usual_stem_is_readable():
    assert DatabaseNames("server1", "shop").stem == "server1__shop"


def test_a_current_table_key_avoids_a_source_table_with_the_same_name():
    tables = tuple(TableId("shop", "dbo", name) for name in ("a", "A_current", "a_current_"))
    names = DatabaseNames("server1", "shop", tables)
    assert names.current_key(tables[0]).path[-1] == "a_current__"
    assert names.current_key(tables[1]).path[-1] == "A_current_current"


@given(st.lists(st.sampled_from(["a", "a_", "a_current", "a_current_", "a_current_current", "b"]), unique=True))
def test_logs_and_current_tables_share_no_key(found):
    tables = tuple(TableId("shop", "dbo", name) for name in found)
    names = DatabaseNames("server1", "shop", tables)
    keys = [names.log_key(t) for t in tables] + [names.current_key(t) for t in tables]
    keys += [names.source_key(t) for t in tables] + [names.extra_key(name) for name in EXTRA_ASSETS]
    assert len(set(keys)) == len(keys)


def test_a_connector_called_sqlserver_does_not_hide_its_source_tables():
    orders = TableId("shop", "dbo", "orders")
    names = DatabaseNames("sqlserver", "shop", (orders,))
    assert names.log_key(orders) != names.source_key(orders)
