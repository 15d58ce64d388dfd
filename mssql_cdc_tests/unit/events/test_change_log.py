"""Neutral changes become change-log rows (rules B12, B13; filters and masks)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.pyarrow import DataFrameSchema

from mssql_cdc.errors import ConfigurationError, ContractError, SchemaError
from mssql_cdc.events import HashMask, Mask, StarMask, Truncate, check_batch, to_change_log
from mssql_cdc.events.key_text import hex_text
from mssql_cdc.events.nested_arrays import map_without, names_without
from mssql_cdc.schema import SqlServerType, TableSchema, change_log_schema
from mssql_cdc.schema.arrow import TEXT_MAP, TEXTS
from mssql_cdc_tests.lake_kit import AT, Change, column, excluding, neutral, orders


def rows(schema: TableSchema, *changes: Change, **more: Any) -> list[dict[str, Any]]:
    batch = to_change_log(neutral(schema, *changes), table_schema=schema, batch_number=7, **more)
    batch.validate(full=True)
    check_batch(batch, keyed=bool(schema.key_columns))
    assert batch.schema == change_log_schema(schema)
    return batch.to_pylist()


def row(number: int | None = 1, name: str | None = "a", note: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


def test_create_update_and_delete_keep_their_images():
    found = rows(
        orders(version=3),
        Change(1, "c", after=row()),
        Change(2, "u", row(), row(name="b"), changed=["name"]),
        Change(3, "d", row(name="b")),
    )
    assert [(r["op"], r["before"], r["after"], r["_changed"]) for r in found] == [
        ("c", None, row(), None),
        ("u", row(), row(name="b"), ["name"]),
        ("d", row(name="b"), None, None),
    ]
    assert {(r["_key"], r["key"]["id"], r["_batch"], r["_schema"], r["_commit_ts"]) for r in found} == {
        ("1:1", 1, 7, 3, AT)
    }


def test_snapshot_rows_have_a_snapshot_number_and_streamed_rows_do_not():
    found = rows(orders(), Change(1, "r", after=row(1)), Change(2, "c", after=row(2)), snapshot="4")
    assert [r["_snapshot"] for r in found] == ["4", None]


def test_update_of_the_key_is_split_into_delete_and_create():
    delete, create = rows(
        orders(),
        Change(
            1,
            "u",
            row(1, "old"),
            row(2, "new"),
            changed=["id", "name"],
            unavailable=["before.note"],
            exact={"before": {"name": "x"}, "after": {"name": "y"}},
        ),
    )
    assert (delete["op"], delete["_pos"][-1], delete["source"]["operation"]) == ("d", "3", 3)
    assert (create["op"], create["_pos"][-1], create["source"]["operation"]) == ("c", "4", 4)
    assert delete["_pos"][:-1] == create["_pos"][:-1]
    assert (delete["_key"], delete["key"], delete["before"], delete["after"]) == (
        "1:1",
        {"id": 1},
        row(1, "old"),
        None,
    )
    assert (create["_key"], create["key"], create["before"], create["after"]) == (
        "1:2",
        {"id": 2},
        None,
        row(2, "new"),
    )
    assert (delete["_unavailable"], create["_unavailable"]) == (["note"], [])
    assert (delete["_exact"], create["_exact"]) == (
        {"before": [("name", "x")], "after": None},
        {"before": None, "after": [("name", "y")]},
    )
    assert delete["_changed"] is create["_changed"] is None


def test_update_that_changes_only_the_case_of_a_key_is_split():
    found = rows(orders(keys=("name",)), Change(1, "u", row(name="a"), row(name="A")))
    assert [r["op"] for r in found] == ["d", "c"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_split_rows_are_in_position_order_and_lose_nothing(moves: list[tuple[int, int]]):
    changes = [Change(n, "u", row(a), row(b)) for n, (a, b) in enumerate(moves, start=1)]
    found = rows(orders(), *changes)
    assert [r["_pos"] for r in found] == sorted(r["_pos"] for r in found)
    told = [(r["op"], r["_key"]) for r in found]
    expected: list[tuple[str, str]] = []
    for old, new in moves:
        expected += [("u", f"1:{new}")] if old == new else [("d", f"1:{old}"), ("c", f"1:{new}")]
    assert told == expected


keys = st.tuples(st.one_of(st.none(), st.text(max_size=4)), st.one_of(st.none(), st.text(max_size=4)))


@given(st.lists(keys, min_size=1, max_size=30))
def test_key_text_is_equal_exactly_when_the_key_is(drawn: list[tuple[str | None, str | None]]):
    drawn = [pair for pair in drawn if all(v is None or v.isprintable() for v in pair)]
    schema = orders(keys=("name", "note"))
    found = rows(schema, *(Change(n, "c", after=row(n, *pair)) for n, pair in enumerate(drawn, 1))) if drawn else []
    for one, first in zip(found, drawn, strict=True):
        for other, second in zip(found, drawn, strict=True):
            assert (one["_key"] == other["_key"]) == (first == second)


def test_key_text_is_exact_where_arrow_is_not():
    schema = orders(
        column("at", "datetime2", scale=7),
        column("v", "sql_variant"),
        column("b", "binary", length=2),
        column("d", "decimal", precision=5, scale=2),
        keys=("at", "v", "b", "d"),
    )
    value = {"at": AT.replace(tzinfo=None), "v": "1", "b": b"\x00\xff", "d": Decimal("1.50")}
    one, other = rows(
        schema,
        Change(1, "c", after=value, exact={"after": {"at": "2026-01-02 03:04:05.6789011", "v": "int"}}),
        Change(2, "c", after=value, exact={"after": {"at": "2026-01-02 03:04:05.6789012", "v": "bigint"}}),
    )
    assert one["_key"] == "27:2026-01-02 03:04:05.67890115:int\x1f14:00ff4:1.50"
    assert other["_key"] == "27:2026-01-02 03:04:05.67890128:bigint\x1f14:00ff4:1.50"


def test_key_text_of_a_lone_surrogate_is_that_of_no_other_text():
    """A row whose key spells the exact text of another one's vanished behind it."""
    schema = orders(column("name", "nvarchar", length=80), keys=("name",))
    lone = Change(1, "c", after={"name": "\ufffd"}, exact={"after": {"name": "utf16:d83d"}})
    spelled = "".join(f"{ord(character):04x}" for character in "utf16:d83d")
    others = [Change(at, "c", after={"name": name}) for at, name in enumerate(("utf16:d83d", f"utf16:{spelled}"), 2)]
    found = [r["_key"] for r in rows(schema, lone, *others, Change(4, "c", after={"name": "utf8"}))]
    assert len(set(found)) == 4
    assert (found[0], found[3]) == ("10:utf16:d83d", "4:utf8")


def test_keyless_table_has_no_key():
    (found,) = rows(orders(keys=()), Change(1, "c", after=row()))
    assert found["_key"] is None


def test_column_filter_applies_to_images_lists_and_exact_texts():
    schema = excluding(orders(), {"note"})
    (found,) = rows(
        schema,
        Change(
            1,
            "u",
            row(),
            row(note="secret"),
            changed=["note", "name"],
            unavailable=["before.note", "name"],
            exact={"after": {"note": "secret", "name": "x"}},
        ),
    )
    assert found["after"] == {"id": 1, "name": "a"}
    assert (found["_changed"], found["_unavailable"]) == (["name"], ["name"])
    assert found["_exact"] == {"before": None, "after": [("name", "x")]}
    assert "secret" not in str(found)


@pytest.mark.feature("FLT-07")
def test_star_mask_hides_null_too():
    found = rows(orders(keys=("note",)), Change(1, "c", after=row(5, None)), masks={"name": StarMask(3)})
    assert found[0]["after"] == {"id": 5, "name": "***", "note": "n"}


@pytest.mark.parametrize("mask", [StarMask(3), HashMask("SHA-256", "s"), Truncate(1)])
def test_mask_on_a_column_without_text_is_rejected_not_ignored(mask: Mask):
    with pytest.raises(SchemaError, match="int cannot be masked"):
        rows(orders(), Change(1, "c", after=row()), masks={"id": mask}, key_secret=b"k")


@pytest.mark.parametrize("kind", ["nvarchar", "uniqueidentifier", "xml", "json", "sql_variant"])
@pytest.mark.parametrize("mask", [StarMask(3), HashMask("SHA-256", "s"), Truncate(2)])
def test_masked_column_leaves_no_clear_value_anywhere(kind: str, mask: Mask):
    schema = orders(column("id", "int"), column("v", kind))
    clear, exact = {"id": 1, "v": "clear text"}, {"v": "utf16:clear", "id": "stays"}
    changes = [
        Change(1, "c", after=clear, exact={"after": exact}),
        Change(2, "u", clear, clear, exact={"before": exact, "after": exact}),
        Change(3, "d", clear, exact={"before": exact}),
        Change(4, "r", after=clear, exact={"after": exact}),
    ]
    found = rows(schema, *changes, masks={"v": mask})
    assert "clear" not in str(found)
    assert found[1]["_exact"] == {"before": [("id", "stays")], "after": [("id", "stays")]}


@pytest.mark.parametrize("kind", ["nvarchar", "uniqueidentifier", "sql_variant"])
def test_masked_key_leaves_no_clear_value_when_it_changes(kind: str):
    schema = orders(column("v", kind), keys=("v",))
    change = Change(1, "u", {"v": "clear one"}, {"v": "clear two"}, exact={"before": {"v": "clear"}})
    found = rows(schema, change, masks={"v": StarMask(1)}, key_secret=b"k")
    assert [r["op"] for r in found] == ["d", "c"]
    assert "clear" not in str(found)


def test_hash_of_a_uniqueidentifier_has_the_length_of_its_text():
    value = pa.array(["6F9619FF-8B86-D011-B42D-00C04FC964FF"])
    (found,) = HashMask("SHA-256", "s").apply(value, SqlServerType("uniqueidentifier")).to_pylist()
    assert len(found) == 36


def test_masked_key_becomes_an_hmac_and_needs_a_secret():
    schema, change = orders(keys=("name",)), Change(1, "c", after=row(name="secret"))
    (found,) = rows(schema, change, masks={"name": StarMask(2)}, key_secret=b"k")
    assert len(found["_key"]) == 64
    assert found["key"] == {"name": "**"}
    assert "secret" not in str(found)
    with pytest.raises(ConfigurationError, match=r"delta\.key\.secret"):
        rows(schema, change, masks={"name": StarMask(2)})


@pytest.mark.feature("FLT-08", "FLT-09")
@pytest.mark.parametrize(
    ("mask", "value", "expected"),
    [
        (HashMask("SHA-256", "salt"), "hello", "af5843a0f0e728ab0332c8888b6e1190bfb79e584f0d40538de8f10df6ef29c6"),
        (
            HashMask("SHA-256", "CzQMA0cB5K"),
            "some_name",
            "3b225d0696535d66f2c0fb2e36b012c520d396af3dd8f18330b9c9cd23ca714e",
        ),
        (
            HashMask("SHA-256", "salt", version=2),
            "hello",
            "cd31b3b98ece60cb739c0bf770b2de892ae0ad133f645513c3d83f08757a843a",
        ),
    ],
)
def test_hash_mask_equals_debeziums(mask: HashMask, value: str, expected: str):
    long = SqlServerType("varchar", length=-1)
    assert mask.apply(pa.array([value, None, value]), long).to_pylist() == [expected, None, expected]
    assert mask.apply(pa.array([value]), SqlServerType("varchar", length=20)).to_pylist() == [expected[:20]]
    assert mask.apply(pa.array([value]), SqlServerType("uniqueidentifier")).to_pylist() == [expected[:36]]


@pytest.mark.feature("FLT-06")
@given(st.lists(st.one_of(st.none(), st.text(max_size=6)), max_size=6), st.integers(1, 4))
def test_truncate_counts_utf16_units_and_never_leaves_half_a_character(texts: list[str | None], length: int):
    texts = [t if t is None else t.encode("utf-8", "ignore").decode() for t in texts]
    found = Truncate(length).apply(pa.array(texts, pa.string()), SqlServerType("nvarchar", length=9)).to_pylist()
    for before, after in zip(texts, found, strict=True):
        if before is None:
            assert after is None
            continue
        units = len(after.encode("utf-16-le")) // 2
        assert before.startswith(after)
        assert units <= length
        assert after == before or units >= length - 1


def test_truncate_shortens_binary_values():
    found = Truncate(2).apply(pa.array([b"abc", None]), SqlServerType("varbinary", length=9))
    assert found.to_pylist() == [b"ab", None]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=5)), max_size=8), st.integers(0, 3))
def test_hex_text_equals_that_of_python(values: list[bytes | None], skip: int):
    array = pa.array(values, pa.binary())[skip:]
    assert hex_text(array).to_pylist() == [None if v is None else v.hex() for v in values[skip:]]


names = st.lists(st.sampled_from(["a", "before.a", "b"]), max_size=3)


@given(st.lists(st.one_of(st.none(), names), max_size=8), st.integers(0, 3))
def test_names_are_removed_from_lists(lists: list[list[str] | None], skip: int):
    array = pa.array(lists, TEXTS)[skip:]
    found = names_without(array, {"a"}).to_pylist()
    assert found == [None if x is None else [n for n in x if n == "b"] for x in lists[skip:]]


maps = st.dictionaries(st.sampled_from("abc"), st.text(alphabet="xy", max_size=2), max_size=3)


@given(st.lists(st.one_of(st.none(), maps), max_size=8), st.integers(0, 3))
def test_entries_are_removed_from_maps(drawn: list[dict[str, str] | None], skip: int):
    array = pa.array([None if m is None else list(m.items()) for m in drawn], TEXT_MAP)[skip:]
    found = [None if m is None else dict(m) for m in map_without(array, {"a"}).to_pylist()]
    expected = [None if m is None else {k: v for k, v in m.items() if k != "a"} for m in drawn[skip:]]
    assert [m or None for m in found] == [m or None for m in expected]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("_pos", pa.array(["0000-0000002D"]), "_pos"),
        ("op", pa.array(["x"]), "op"),
        ("_key", pa.array([None], pa.string()), "_key"),
        ("_batch", pa.array([0], pa.int64()), "_batch"),
        ("op", pa.array(["d"]), "images"),
    ],
)
def test_contract_names_the_rule_that_a_batch_violates(name: str, values: pa.Array, message: str):
    schema = orders()
    batch = to_change_log(neutral(schema, Change(1, "c", after=row())), table_schema=schema, batch_number=1)
    index = batch.schema.get_field_index(name)
    with pytest.raises(ContractError, match=message):
        check_batch(batch.set_column(index, batch.schema.field(index), values), keyed=True)


@pytest.mark.parametrize("keys", [("id",), ()])
def test_contract_asks_pandera_about_broken_batches_only(keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    schema = orders(keys=keys)
    changes = [
        Change(1, "c", after=row()),
        Change(2, "u", row(), row()),
        Change(3, "d", row()),
        Change(4, "r", None, row()),
    ]
    batch = to_change_log(neutral(schema, *changes), table_schema=schema, batch_number=1)
    asked = []
    monkeypatch.setattr(DataFrameSchema, "validate", lambda _self, table, **_: asked.append(table))
    check_batch(batch, keyed=bool(keys))
    assert not asked
    check_batch(batch.set_column(0, batch.schema.field(0), pa.array(["elsewhere"] * 4)), keyed=bool(keys))
    assert asked


@pytest.mark.parametrize("field", ["commit_lsn", "change_lsn"])
def test_contract_accepts_lsns_in_one_form_only(field: str):
    schema = orders()
    change = Change(0xAB, "c", after=row())
    batch = to_change_log(neutral(schema, change), table_schema=schema, batch_number=1)
    check_batch(batch, keyed=True)
    source = batch.column("source")
    names = [f.name for f in source.type]
    children = [source.field(name) for name in names]
    children[names.index(field)] = pa.array(["00000000:00000000:00AB"])
    wrong = pa.StructArray.from_arrays(children, fields=list(source.type))
    index = batch.schema.get_field_index("source")
    with pytest.raises(ContractError, match=field):
        check_batch(batch.set_column(index, batch.schema.field(index), wrong), keyed=True)


def test_contract_accepts_rows_without_lsns():
    schema = orders()
    batch = to_change_log(neutral(schema, Change(1, "r", after=row())), table_schema=schema, batch_number=1)
    source = batch.column("source")
    empty = pa.StructArray.from_arrays([pa.nulls(1, f.type) for f in source.type], fields=list(source.type))
    index = batch.schema.get_field_index("source")
    check_batch(batch.set_column(index, batch.schema.field(index), empty), keyed=True)


@pytest.mark.parametrize("name", ["_pos", "op", "_key"])
def test_contract_never_shows_row_values(name: str):
    schema = orders()
    batch = to_change_log(neutral(schema, Change(1, "c", after=row())), table_schema=schema, batch_number=1)
    index = batch.schema.get_field_index(name)
    found = batch.set_column(index, batch.schema.field(index), pa.array(["Ann's secret"]))
    if name == "_key":  # Any text is a valid key, so the batch violates another rule.
        found = found.set_column(0, batch.schema.field(0), pa.array(["also secret"]))
    with pytest.raises(ContractError) as raised:
        check_batch(found, keyed=True)
    assert "secret" not in str(raised.value)
    assert "broken by 1 of 1 rows" in str(raised.value)
