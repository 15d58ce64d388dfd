"""Which versions of a table have other values than those before."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc.follow.altered_columns import altered_columns
from mssql_cdc_tests.lake_kit import column, orders


def test_the_last_version_that_rewrote_values_counts():
    first = orders(column("id", "int"), column("a", "char", length=5), column("b", "int"))
    second = orders(column("id", "int"), column("a", "char", length=9), column("b", "int"), version=2)
    third = orders(column("id", "int"), column("a", "char", length=9), column("b", "bigint"), version=3)
    assert altered_columns([first, second, third]) == (second, ["a"])
    assert altered_columns([second, third]) is None
    assert altered_columns([first]) is None
    again = replace(second, columns=(second.columns[0], replace(second.columns[1], position=7), second.columns[2]))
    assert altered_columns([first, again]) is None, "another column of the same name"


def test_a_key_whose_type_changes_lets_its_table_be_read_anyway():
    first = orders(column("id", "char", length=5), column("a", "char", length=5))
    second = orders(column("id", "char", length=9), column("a", "char", length=9), version=2)
    assert altered_columns([first, second]) is None
