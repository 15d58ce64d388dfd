"""Raw change rows become neutral batches: pairs, order, images, masks, unavailable values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import SourceError
from mssql_cdc.schema import Column, SqlServerType, neutral_schema
from mssql_cdc.source.sqlserver.decode import ChangeDecoder
from mssql_cdc.source.sqlserver.images import mask_bits
from mssql_cdc_tests.lake_kit import position_text
from mssql_cdc_tests.unit.source.raw import INT, ORDERS, Row, decoder, lsn, raw, schema, utf16

A, B = utf16("a"), utf16("b")
INSERT: Row = (20, 1, 11, 2, b"\x03", 1, A)
UPDATE: tuple[Row, Row] = ((20, 2, 12, 3, b"\x02", 1, A), (20, 2, 12, 4, b"\x02", 1, B))
DELETE: Row = (21, 1, 15, 1, b"\x03", 1, B)
ALL = (INSERT, *UPDATE, DELETE)


def neutral(rows: list[Row], cuts: tuple[int, ...] = (), given_decoder: ChangeDecoder | None = None) -> list[dict]:
    one = given_decoder or decoder()
    edges = [0, *cuts, len(rows)]
    found = []
    for start, end in pairwise(edges):
        for batch in one.push(raw(ORDERS, rows[start:end])):
            batch.validate(full=True)
            assert batch.schema == neutral_schema(ORDERS)
            found += batch.to_pylist()
    one.finish()
    return found


@pytest.mark.feature("STR-10")
def test_insert_update_and_delete_become_one_row_each() -> None:
    rows = neutral(list(ALL))

    assert [(r["op"], r["operation"], r["command_id"]) for r in rows] == [("c", 2, 1), ("u", 4, 2), ("d", 1, 1)]
    assert [r["before"] for r in rows] == [None, {"id": 1, "name": "a"}, {"id": 1, "name": "b"}]
    assert [r["after"] for r in rows] == [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, None]
    assert [r["changed"] for r in rows] == [None, ["name"], None]
    assert [r["commit_lsn"] for r in rows] == [lsn(20).text, lsn(20).text, lsn(21).text]
    assert [r["change_lsn"] for r in rows] == [lsn(11).text, lsn(12).text, lsn(15).text]
    assert rows[1]["pos"] == position_text(0, lsn(20), 2, lsn(12), 4)


@given(st.lists(st.integers(0, 4), max_size=4).map(sorted))
def test_an_update_split_by_a_page_boundary_is_still_one_row(cuts: list[int]) -> None:
    assert neutral(list(ALL), tuple(cuts)) == neutral(list(ALL))


def test_images_of_an_update_that_arrow_cannot_hold_together_are_an_error_that_names_the_column() -> None:
    """Each has 1.1 GB of zero bytes, which take no memory; they come in two batches, as rows with such values do."""
    huge = pa.Array.from_buffers(
        pa.binary(), 1, [None, pa.py_buffer(np.array([0, 1_100_000_000], np.int32)), pa.py_buffer(bytes(1_100_000_000))]
    )
    one = decoder()
    images = [raw(ORDERS, [row]) for row in UPDATE]
    first, second = (image.set_column(image.num_columns - 1, image.schema.field("c1_0"), huge) for image in images)
    list(one.push(first))
    with pytest.raises(SourceError, match=rf"orders.*0x{lsn(20).raw.hex()}.*2 GiB.*'name'"):
        list(one.push(second))


def test_a_missing_command_id_stays_null_and_counts_as_zero_in_the_position() -> None:
    rows = neutral([(20, None, 11, 2, b"\x03", 1, A)], given_decoder=decoder(epoch=3))

    assert rows[0]["command_id"] is None
    assert rows[0]["pos"] == position_text(3, lsn(20), None, lsn(11), 2)


@pytest.mark.feature("STR-10")
@pytest.mark.parametrize(
    "rows",
    [
        [UPDATE[0]],
        [UPDATE[1]],
        [UPDATE[0], DELETE],
        [UPDATE[0], (20, 2, 13, 4, b"\x02", 1, B)],
        [UPDATE[0], (20, 3, 12, 4, b"\x02", 1, B)],
        [INSERT, UPDATE[1]],
    ],
)
def test_half_an_update_is_an_error_with_repair_advice(rows: list[Row]) -> None:
    with pytest.raises(SourceError, match="new snapshot"):
        neutral(rows)


def test_an_unknown_operation_is_an_error() -> None:
    with pytest.raises(SourceError, match="operation 5"):
        neutral([(20, 1, 11, 5, b"\x03", 1, A)])


def test_pages_that_overlap_are_an_error() -> None:
    with pytest.raises(SourceError, match="must not overlap"):
        neutral([INSERT, INSERT], cuts=(1,))


@pytest.mark.feature("TYP-05")
def test_an_unchanged_max_column_takes_its_before_image_from_the_after_image() -> None:
    table = schema(Column("id", INT), Column("body", SqlServerType("nvarchar", length=-1)))
    one = decoder(table)
    rows: list[Row] = [
        (20, 1, 11, 3, b"\x01", 1, None, None),
        (20, 1, 11, 4, b"\x01", 2, utf16("text"), 8),
        (20, 2, 12, 3, b"\x02", 2, utf16("text"), 8),
        (20, 2, 12, 4, b"\x02", 2, None, None),
    ]
    (batch,) = one.push(raw(table, rows))

    assert batch.column("before").to_pylist() == [{"id": 1, "body": "text"}, {"id": 2, "body": "text"}]
    assert batch.column("after").to_pylist() == [{"id": 2, "body": "text"}, {"id": 2, "body": None}]
    assert batch.column("unavailable").to_pylist() == [None, None]


@pytest.mark.feature("TYP-05")
@pytest.mark.parametrize("given", [None, b"here"], ids=["left out", "delivered"])
@pytest.mark.parametrize("type_", ["geometry", "geography"])
def test_an_untouched_spatial_value_is_known_in_the_before_image(type_: str, given: bytes | None) -> None:
    """Review: they are stored like varbinary(max), which CDC leaves out of the before image."""
    table = schema(Column("id", INT), Column("place", SqlServerType(type_)))
    rows: list[Row] = [
        (20, 1, 11, 3, b"\x01", 1, given, given and 4),
        (20, 1, 11, 4, b"\x01", 2, b"here", 4),
        (20, 2, 12, 3, b"\x02", 2, b"here", 4),
        (20, 2, 12, 4, b"\x02", 2, b"there", 5),
    ]
    (batch,) = decoder(table).push(raw(table, rows))
    assert [row["place"] for row in batch.column("before").to_pylist()] == [b"here", b"here"]


@pytest.mark.feature("TYP-05")
def test_old_lob_columns_are_unavailable_where_cdc_omits_them() -> None:
    table = schema(Column("id", INT), Column("note", SqlServerType("text")))
    text = (utf16("n"), 2)
    rows: list[Row] = [
        (20, 1, 11, 2, b"\x03", 1, *text),
        (20, 2, 12, 3, b"\x02", 1, None, None),
        (20, 2, 12, 4, b"\x02", 1, *text),
        (20, 3, 13, 3, b"\x01", 1, None, None),
        (20, 3, 13, 4, b"\x01", 2, *text),
        (20, 4, 14, 3, b"\x01", 2, None, None),
        (20, 4, 14, 4, b"\x01", 3, None, None),
        (20, 5, 15, 1, b"\x03", 3, None, None),
    ]
    (batch,) = decoder(table).push(raw(table, rows))

    assert batch.column("unavailable").to_pylist() == [None, ["before.note"], None, ["note"], ["note"]]
    assert batch.column("before").to_pylist()[2] == {"id": 1, "note": "n"}


@pytest.mark.feature("TYP-05")
def test_a_computed_column_is_unavailable_in_every_row() -> None:
    table = schema(Column("id", INT), Column("twice", INT, computed=True))
    rows: list[Row] = [(20, 1, 11, 2, b"\x03", 1, None), (20, 2, 12, 1, b"\x03", 1, None)]
    (batch,) = decoder(table).push(raw(table, rows))

    assert batch.column("unavailable").to_pylist() == [["twice"], ["twice"]]


def test_exact_texts_follow_their_image() -> None:
    table = schema(Column("id", INT), Column("at", SqlServerType("datetime2", scale=7)))
    rows: list[Row] = [
        (20, 1, 11, 3, b"\x02", 1, "2021-07-30 00:00:00.0000001"),
        (20, 1, 11, 4, b"\x02", 1, "2021-07-30 00:00:00.0000010"),
        (20, 2, 12, 2, b"\x03", 2, "2021-07-30 00:00:00.0000002"),
    ]
    (batch,) = decoder(table).push(raw(table, rows))

    assert batch.column("exact").to_pylist() == [
        {"before": [("at", "2021-07-30 00:00:00.0000001")], "after": None},
        {"before": None, "after": [("at", "2021-07-30 00:00:00.0000002")]},
    ]


@given(st.sets(st.integers(1, 40)), st.integers(1, 40))
def test_mask_bits_count_from_the_last_byte(ordinals: set[int], columns: int) -> None:
    number = sum(1 << (ordinal - 1) for ordinal in ordinals if ordinal <= columns)
    mask = number.to_bytes((columns + 7) // 8, "big")
    bits = mask_bits(pa.array([mask, None, b"\x01"], pa.binary()), list(range(1, columns + 1)))

    assert [j + 1 for j in range(columns) if bits[0, j]] == sorted(o for o in ordinals if o <= columns)
    assert not bits[1].any()
    assert list(bits[2]) == [True, *[False] * (columns - 1)]


def test_a_mask_of_nine_columns_has_the_ninth_in_its_first_byte() -> None:
    bits = mask_bits(pa.array([b"\x01\x00", b"\x00\x80"], pa.binary()), list(range(1, 10)))

    assert [list(row.nonzero()[0] + 1) for row in bits] == [[9], [8]]
