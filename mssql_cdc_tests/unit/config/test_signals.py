"""Signals are interpreted like in Debezium and are never fatal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.signals import (
    ExecuteSnapshot,
    Filter,
    IgnoredSignal,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    concerns,
    expand_collections,
    parse_signal,
    unreadable,
)

DATABASES = ("shop", "Sales")
TABLES = (("db1", "s1", "products"), ("db1", "s1", "orders"), ("db1", "public", "My.Table"))


def test_incremental_snapshot_with_conditions_and_surrogate_key() -> None:
    data = {
        "data-collections": ["db1.s1.products"],
        "type": "INCREMENTAL",
        "additional-conditions": [{"data-collection": "db1.s1.products", "filter": "color='blue'"}],
        "surrogate-key": "col",
    }
    signal = parse_signal("ad-hoc-1", "execute-snapshot", json.dumps(data))
    assert signal == ExecuteSnapshot(
        "ad-hoc-1", "incremental", ("db1.s1.products",), (Filter("db1.s1.products", "color='blue'"),), "col"
    )
    assert isinstance(signal, ExecuteSnapshot)
    assert signal.filter_for(("DB1", "s1", "PRODUCTS")) == Filter("db1.s1.products", "color='blue'")
    assert signal.filter_for(("db1", "s1", "orders")) is None
    assert parse_signal("ad-hoc-1", "execute-snapshot", data) == signal, "other channels carry objects"


@pytest.mark.feature("BLK-01", "BLK-04")
def test_blocking_snapshot_finds_its_statement_by_the_exact_name() -> None:
    data = {
        "type": "blocking",
        "data-collections": ["db1.s1.t1", "db1.s1.t2"],
        "additional-conditions": [{"data-collection": "s1.t1", "filter": "SELECT * FROM s1.t1 WHERE a = 0"}],
    }
    signal = parse_signal("1", "execute-snapshot", json.dumps(data))
    assert isinstance(signal, ExecuteSnapshot)
    assert signal.kind == "blocking"
    assert signal.filter_for(("db1", "s1", "t1")) == Filter("s1.t1", "SELECT * FROM s1.t1 WHERE a = 0")
    assert signal.filter_for(("db1", "s1", "t2")) is None


def test_snapshot_without_a_type_is_incremental() -> None:
    signal = parse_signal("1", "execute-snapshot", '{"data-collections": ["a.b.c"]}')
    assert isinstance(signal, ExecuteSnapshot)
    assert signal.kind == "incremental"


def test_stop_applies_to_its_collections_or_to_all() -> None:
    assert parse_signal("1", "stop-snapshot", '{"type": "incremental"}') == StopSnapshot("1")
    assert parse_signal("1", "stop-snapshot", None) == StopSnapshot("1")
    some = parse_signal("1", "stop-snapshot", '{"data-collections": ["a.b.c"], "type": "incremental"}')
    assert some == StopSnapshot("1", ("a.b.c",))
    assert parse_signal("1", "stop-snapshot", '{"type": "blocking"}') == StopSnapshot("1", (), "blocking")
    assert isinstance(parse_signal("1", "stop-snapshot", '{"type": "other"}'), IgnoredSignal)


@pytest.mark.parametrize("data", [None, "", "{}", "whatever"])
def test_pause_and_resume_ignore_data(data: str | None) -> None:
    assert parse_signal("1", "pause-snapshot", data) == PauseSnapshot("1")
    assert parse_signal("1", "resume-snapshot", data) == ResumeSnapshot("1")


@pytest.mark.feature("SIG-08")
def test_log_signal_puts_the_position_in_its_message() -> None:
    signal = parse_signal("1", "log", '{"message": "at {} now"}')
    assert isinstance(signal, LogMessage)
    assert signal.text({"commit_lsn": "27:ac0:2"}) == "at {commit_lsn=27:ac0:2} now"
    assert signal.text(None) == "at <none> now"


@pytest.mark.feature("SIG-09")
@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("nonsense", "{}", "'nonsense' is not known"),
        ("execute-snapshot", "{", "not valid JSON"),
        ("execute-snapshot", "[]", "expected an object"),
        ("execute-snapshot", "{}", "data-collections is missing"),
        ("execute-snapshot", '{"data-collections": []}', "data-collections is missing"),
        ("execute-snapshot", '{"data-collections": "a"}', "must be an array"),
        ("execute-snapshot", '{"data-collections": ["a"], "type": "x"}', "expected incremental or blocking"),
        ("execute-snapshot", '{"data-collections": ["a"], "additional-condition": "x"}', "additional-conditions"),
        ("execute-snapshot", '{"data-collections": ["a"], "additional-conditions": [{}]}', "needs the strings"),
        ("execute-snapshot", "[" * 1000, "nested too deeply"),
        ("log", '{"message": "\\ud800"}', "half of a surrogate pair"),
        ("log", "{}", "message must be"),
        ("snapshot-window-open", "{}", "watermark"),
    ],
)
def test_signal_that_cannot_be_understood_is_ignored_with_its_reason(kind: str, data: str, reason: str) -> None:
    signal = parse_signal("1", kind, data)
    assert isinstance(signal, IgnoredSignal)
    assert reason in signal.reason


@pytest.mark.feature("SIG-09")
@given(st.sampled_from(["execute-snapshot", "stop-snapshot", "pause-snapshot", "log", "x"]), st.text())
def test_parsing_never_fails_for_any_text(kind: str, data: str) -> None:
    assert parse_signal("id", kind, data).signal_id == "id"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.feature("SIG-09")
@given(st.dictionaries(st.sampled_from(["data-collections", "type", "additional-conditions", "surrogate-key"]), JSON))
def test_parsing_never_fails_for_any_object(data: dict[str, object]) -> None:
    assert parse_signal("id", "execute-snapshot", json.dumps(data)).signal_id == "id"


@pytest.mark.feature("INC-03", "INC-02")
@pytest.mark.parametrize(
    ("collections", "found", "missing"),
    [
        (["db1.s1.products"], ["products"], []),
        (["db1.s1.*"], ["products", "orders"], []),
        (["s1.products"], ["products"], []),
        (["db1.s1.orders", "db1.s1.*"], ["orders", "products"], []),
        (['db1.public."My.Table"'], ["My.Table"], []),
        (["DB1.S1.PRODUCTS"], [], ["DB1.S1.PRODUCTS"]),
        (["db1.s1.gone"], [], ["db1.s1.gone"]),
    ],
)
def test_collections_are_expanded_with_case_each_table_once(
    collections: list[str], found: list[str], missing: list[str]
) -> None:
    tables, unmatched = expand_collections(collections, TABLES)
    assert [table[2] for table in tables] == found
    assert list(unmatched) == missing


NAMED = tuple(("db1", "dbo", name) for name in ("price$", "price", "order.items", "order_items", "a[b", "c (EUR", "ab"))


@pytest.mark.feature("INC-03", "INC-02")
@pytest.mark.parametrize(
    ("collection", "found"),
    [
        ("db1.dbo.price$", ["price$"]),
        ("dbo.price$", ["price$"]),
        ("dbo.order.items", ["order.items"]),
        ("db1.dbo.[order.items]", ["order.items"]),
        ("dbo.order[.]items", ["order.items"]),
        ("dbo.order.items$", ["order.items", "order_items"]),
        ("dbo.a[b", ["a[b"]),
        ("dbo.c (EUR", ["c (EUR"]),
        ("dbo.c (USD", []),
        ("dbo.a[bc", []),
        ("dbo.gone$", []),
    ],
)
def test_a_text_that_is_the_name_of_a_table_stands_for_that_table_alone(collection: str, found: list[str]) -> None:
    tables, missing = expand_collections([collection], NAMED)
    assert [table[2] for table in tables] == found
    assert list(missing) == ([] if found else [collection])
    others = [("db1", "dbo", "gone$")]
    assert expand_collections(["dbo.gone$"], [*NAMED, ("db1", "dbo", "gone")], others)[0] == ()


@pytest.mark.feature("INC-04")
@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_condition_of_a_table_by_its_name_is_that_of_no_other(kind: str) -> None:
    filters = {"incremental": "id = 1", "blocking": "SELECT * FROM [dbo].[price$] WHERE id = 1"}
    names = ["dbo.price$", "db1.dbo.A[B"] if kind == "incremental" else ["dbo.price$", "db1.dbo.a[b"]
    conditions = [{"data-collection": name, "filter": filters[kind]} for name in names]
    data = {"type": kind, "data-collections": [".*"], "additional-conditions": conditions}
    signal = parse_signal("1", "execute-snapshot", json.dumps(data))
    assert isinstance(signal, ExecuteSnapshot)
    found = signal.filters_for(NAMED)
    assert {table[2]: one.collection for table, one in found.items()} == {"price$": names[0], "a[b": names[1]}
    assert signal.filter_for(("db1", "dbo", "price"), NAMED) is None


def test_a_text_that_is_neither_a_name_nor_an_expression_is_told_with_its_reason() -> None:
    assert unreadable(["dbo.a[b", "dbo.c (EUR", "dbo.*"], NAMED) is None
    assert "'dbo.d (EUR' is not a valid regular expression" in str(unreadable(["dbo.a[b", "dbo.d (EUR"], NAMED))


@pytest.mark.feature("SIG-08")
def test_schema_changes_by_signal_are_ignored_with_the_reason() -> None:
    data = {"database": "db1", "changes": [{"type": "ALTER", "id": '"db1"."s1"."t1"', "table": {"columns": []}}]}
    signal = parse_signal("1", "schema-changes", json.dumps(data))
    assert isinstance(signal, IgnoredSignal)
    assert signal.reason == "the structure of a table is read from the source, not from a signal"


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["shop.dbo.orders"], {"shop"}),
        (["SALES.dbo.orders", "sales.dbo.people"], {"Sales"}),
        (["shop.dbo.orders", "Sales.dbo.orders"], {"shop", "Sales"}),
        (["dbo.orders"], {"shop", "Sales"}),
        ([".*"], {"shop", "Sales"}),
        (["other.dbo.orders"], {"shop", "Sales"}),  # Each says that it has no such table.
    ],
)
@pytest.mark.parametrize("kind", ["execute-snapshot", "stop-snapshot"])
def test_a_signal_is_for_the_databases_whose_tables_it_names(names: list[str], wanted: set[str], kind: str):
    signal = parse_signal("1", kind, json.dumps({"data-collections": names}))
    assert {one for one in DATABASES if concerns(signal, one, DATABASES)} == wanted


@pytest.mark.parametrize("kind", ["pause-snapshot", "log", "nonsense", "execute-snapshot"])
def test_a_signal_that_names_no_table_is_for_all_databases(kind: str):
    assert all(concerns(parse_signal("1", kind, None), one, DATABASES) for one in DATABASES)
