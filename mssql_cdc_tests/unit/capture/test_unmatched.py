"""Expressions that match nothing are named, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mssql_cdc.capture.unmatched import unmatched_notices
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.schema import Column, TableId, TableSchema
from mssql_cdc.source.values import CapturedTable, CaptureInstance
from mssql_cdc_tests.lake_kit import AT, column, excluding, lsn
from mssql_cdc_tests.unit.config.samples import MINIMAL

SALTED = "column.mask.hash.v2.SHA-256.with.salt."


def table(name: str, *columns: Column, older: Sequence[Column] = (), hidden: Sequence[str] = ()) -> CapturedTable:
    table_id = TableId("Shop", *name.split("."))
    generations = [one for one in (older, columns) if one]
    instances = tuple(
        CaptureInstance(
            name, 2, None, 1, AT, lsn(place), excluding(TableSchema(table_id, tuple(one), ("id",)), hidden), ()
        )
        for place, one in enumerate(generations, start=1)
    )
    return CapturedTable(table_id, 1, instances)


ID, EMAIL, PIN = column("id", "int"), column("Email", "nvarchar", length=50), column("pin", "int")
CAPTURED = [
    table("dbo.orders", ID, EMAIL, older=(ID, column("gone", "int"))),
    table("dbo.customers", ID, EMAIL, PIN, hidden=["pin"]),
]
LEFT_OUT = ["Shop.sales.leads", "Shop.a.b.c"]
UNREADABLE = [TableId("Shop", "dbo", "broken")]


def said(properties: dict[str, object], *, databases: str = "shop", captured: Sequence[CapturedTable] = CAPTURED):
    connector = connector_from_mapping("c", {**MINIMAL, "database.names": databases} | properties)
    return list(unmatched_notices(connector, "Shop", captured=captured, unreadable=UNREADABLE, left_out=LEFT_OUT))


def quoted(*texts: str) -> str:
    return ", ".join(f"'{text}'" for text in texts)


TABLES = "no table under CDC in Shop matches {}; check the spelling, or enable CDC for the table"
SCHEMAS = "no table under CDC in Shop has a schema that matches {}; check the spelling"
CAPTURES = "no captured table of Shop matches {}; check the spelling"
COLUMNS = "no captured column of Shop matches {}; check the spelling"


@pytest.mark.feature("FLT-04", "FLT-05", "FLT-07")
@pytest.mark.parametrize(
    ("name", "matching", "wrong", "says"),
    [
        ("schema.include.list", "dbo,sal.*,a", "dob", SCHEMAS),
        ("schema.exclude.list", "sales", "dob", SCHEMAS),
        ("table.include.list", r"dbo.orders,dbo\.(cust|x).*,SHOP.sales.leads,a.b.c,dbo.broken", "dbo.custmers", TABLES),
        ("table.exclude.list", "dbo.orders,sales.leads", r"other\.dbo\.orders", TABLES),
        ("column.include.list", "dbo.orders.email,shop.dbo.customers.pin,dbo.broken.any", "dbo.orders.emial", COLUMNS),
        ("column.exclude.list", "dbo.customers.pin,dbo.orders.gone", "dbo.orders.pin", COLUMNS),
        ("column.truncate.to.3.chars", ".*email", "dbo.ordres.email", COLUMNS),
        ("column.mask.with.3.chars", "shop.dbo.orders.email", "sales.leads.email", COLUMNS),
        ("column.mask.hash.SHA-256.with.salt.s", "dbo.orders.email", "dbo.orders.emial", COLUMNS),
        (f"{SALTED}s", "dbo.orders.email", "dbo.orders.emial", COLUMNS),
        ("column.propagate.source.type", "dbo.orders.email", "dbo.orders.emial", COLUMNS),
        ("snapshot.include.collection.list", "shop.dbo.orders,dbo.customers,dbo.broken", "sales.leads", CAPTURES),
    ],
)  # fmt: skip
def test_an_expression_that_matches_nothing_is_named_once(name: str, matching: str, wrong: str, says: str) -> None:
    shown = name.removesuffix(".s") + ".***" if name.endswith(".s") else name
    assert said({name: matching}) == []
    assert said({name: f"{matching},{wrong}"}) == [f"{shown}: {says.format(quoted(wrong))}"]
    assert said({name: f"{wrong},{matching},{wrong}x"}) == [f"{shown}: {says.format(quoted(wrong, wrong + 'x'))}"]


@pytest.mark.feature("EVT-05")
def test_a_key_column_that_no_table_has_is_named() -> None:
    assert said({"message.key.columns": r"dbo.orders:email,gone;shop\.dbo\.cust.*:pin;dbo.broken:id"}) == []
    assert said({"message.key.columns": "dbo.orders:email,emial;dbo.custmers:pin"}) == [
        f"message.key.columns: {COLUMNS.format(quoted('dbo.orders:emial', 'dbo.custmers:pin'))}"
    ]


@pytest.mark.feature("SNP-23")
def test_a_table_with_a_statement_that_is_not_captured_is_named() -> None:
    listed = "snapshot.select.statement.overrides"
    names = ("dbo.orders", "Shop.[dbo].Customers", "dbo.broken", "dbo.custmers", "sales.leads")
    given: dict[str, object] = {listed: ",".join(names), **{f"{listed}.{one}": "SELECT * FROM t" for one in names}}
    assert said(given) == [f"{listed}: {CAPTURES.format(quoted('dbo.custmers', 'sales.leads'))}"]


@pytest.mark.feature("HA-02")
@pytest.mark.parametrize(
    ("name", "expression", "is_said"),
    [
        ("table.include.list", "dbo.custmers", False),
        ("table.include.list", "shop.dbo.custmers", True),
        ("table.include.list", r"sh[o]p\.dbo\.custmers", True),
        ("table.include.list", r"sh.p\.dbo\.custmers", False),
        ("table.include.list", "other.dbo.custmers", False),
        ("table.include.list", "(shop|other).dbo.custmers", False),
        ("table.include.list", r"(?:shop\.dbo\.custmers)", False),
        ("schema.include.list", "dob", False),
        ("column.mask.with.3.chars", "dbo.orders.emial", False),
        ("column.mask.with.3.chars", "shop.dbo.orders.emial", True),
        ("message.key.columns", "shop.dbo.orders:emial", True),
        ("message.key.columns", "dbo.orders:emial", False),
        ("snapshot.include.collection.list", "shop.dbo.custmers", True),
        ("snapshot.include.collection.list", "dbo.custmers", False),
    ],
)
def test_what_may_match_in_another_database_is_not_named(name: str, expression: str, *, is_said: bool) -> None:
    assert bool(said({name: expression}, databases="other,shop")) is is_said
    assert said({name: expression}, databases="shop") != []


def test_columns_that_may_belong_to_a_table_which_is_not_readable_are_not_named() -> None:
    expressions = r"dbo.broken.emial,.*emial,dbo\.(broken|x)\.emial,dbo.orders.emial"
    assert said({"column.mask.with.3.chars": expressions}) == [
        f"column.mask.with.3.chars: {COLUMNS.format(quoted('dbo.orders.emial'))}"
    ]


def test_a_snapshot_of_tables_without_cdc_says_nothing_of_tables_that_it_leaves_out() -> None:
    only = {"snapshot.mode": "initial_only"}
    assert said({"table.exclude.list": "dbo.log", "schema.exclude.list": "logs", **only}) == []
    assert said({"table.include.list": "dbo.log", **only}) != []


def test_a_database_that_captures_no_table_says_nothing_more() -> None:
    assert said({"table.include.list": "dbo.custmers", "column.exclude.list": "x"}, captured=[]) == []


def test_a_long_list_is_cut() -> None:
    (line,) = said({"table.exclude.list": ",".join(f"dbo.t{number}" for number in range(13))})
    assert "'dbo.t9' and 3 more; check" in line
    assert "'dbo.t10'" not in line


def test_a_salt_is_never_shown() -> None:
    lines = said({f"{SALTED}pepper.and.salt": "dbo.orders.emial"})
    assert lines
    assert "pepper" not in "".join(lines)
