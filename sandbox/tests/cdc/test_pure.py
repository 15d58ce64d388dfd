"""Masks, column lists, job settings, net changes: the parts of change data capture that need no server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.cdc.job_settings import JobChange, JobSettings, JobType, changed, check_change, defaults
from mssql_sandbox.cdc.masks import full_mask, is_bit_set, mask_of, union
from mssql_sandbox.cdc.names import bracket_list, split_column_list
from mssql_sandbox.cdc.net_changes import ChangeRow, net_changes
from mssql_sandbox.engine.product import ProductVersion
from mssql_sandbox.errors import SqlError

FULL_MASKS = {"[est] nine columns": (9, "01ff"), "[fab] five columns": (5, "1f"), "[est] with computed": (4, "0f")}


@pytest.mark.parametrize(("columns", "expected"), FULL_MASKS.values(), ids=FULL_MASKS)
def test_full_mask_is_big_endian_from_the_last_byte(columns: int, expected: str) -> None:
    assert full_mask(columns).hex() == expected


def test_mask_of_an_update_with_rowversion_sets_both_bits() -> None:
    assert mask_of([2, 3], 3) == b"\x06"


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_mask_bits_are_exactly_the_given_ordinals(left: set[int], right: set[int]) -> None:
    mask = union([mask_of(left, 60), mask_of(right, 60)], 60)
    assert {position for position in range(1, 70) if is_bit_set(position, mask)} == left | right


LISTS = {
    "plain": ("a, b ,c", ["a", "b", "c"]),
    "brackets": ("[a],[b, c],d", ["a", "b, c", "d"]),
    "doubled": ('[a]]b],"c""d"', ["a]b", 'c"d']),
}


@pytest.mark.parametrize(("text", "expected"), LISTS.values(), ids=LISTS)
def test_column_list_splits_at_commas_outside_quotes(text: str, expected: list[str]) -> None:
    assert split_column_list(text, procedure="p") == expected


def test_column_list_with_open_quote_is_22965() -> None:
    with pytest.raises(SqlError) as raised:
        split_column_list("a,[b", procedure="p")
    assert raised.value.number == 22965


@given(st.lists(st.text(min_size=1).filter(lambda name: name.strip() == name), min_size=1))
def test_bracket_list_reads_back(names: list[str]) -> None:
    assert split_column_list(bracket_list(names), procedure="p") == names


BAD_SETTINGS = {
    "[sys] capture settings on cleanup": ("cleanup", JobChange(maxtrans=5), 22996),
    "[sys] retention on capture": ("capture", JobChange(retention=5), 22995),
    "[doc] polling a day": ("capture", JobChange(pollinginterval=86_400), 22990),
    "[doc] retention zero": ("cleanup", JobChange(retention=0), 22994),
    "[doc] retention over a century": ("cleanup", JobChange(retention=52_594_801), 22994),
    "[doc] threshold zero": ("cleanup", JobChange(threshold=0), 22850),
    "[doc] maxtrans zero": ("capture", JobChange(maxtrans=0), 22991),
    "[doc] maxscans zero": ("capture", JobChange(maxscans=0), 22970),
}


@pytest.mark.parametrize(("job_type", "change", "number"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_job_settings_out_of_range_are_refused(job_type: JobType, change: JobChange, number: int) -> None:
    with pytest.raises(SqlError) as raised:
        check_change(job_type, change, procedure="sp_cdc_change_job")
    assert raised.value.number == number


def test_job_made_one_shot_stops_polling() -> None:
    assert changed(defaults(ProductVersion())["capture"], JobChange(continuous=False)).pollinginterval == 0


def test_polling_interval_alone_makes_a_job_continuous() -> None:
    assert changed(JobSettings(maxtrans=1), JobChange(pollinginterval=3)).continuous


def rows_of(*operations: int) -> list[ChangeRow]:
    return [
        ChangeRow(b"\0" * 9 + bytes([number]), b"\0" * 9 + bytes([number]), operation, b"\x02", (1,), (1, f"v{number}"))
        for number, operation in enumerate(operations, 1)
    ]


NET = {
    "[sys] single insert": ((2,), 2),
    "[sys] single delete": ((1,), 1),
    "[sys] single update counts its before row": ((3, 4), 4),
    "[sys] insert then update": ((2, 3, 4), 2),
    "[sys] insert then delete vanishes": ((2, 1), None),
    "[sys] update then delete": ((3, 4, 1), 1),
    "[sys] delete then insert": ((1, 2), 4),
    "[sys] delete, insert, delete": ((1, 2, 1), 1),
}


@pytest.mark.parametrize(("operations", "expected"), NET.values(), ids=NET)
def test_net_operation_follows_first_and_last_change(operations: tuple[int, ...], expected: int | None) -> None:
    result = net_changes(rows_of(*operations), "all", 2)
    assert [row.operation for row in result] == ([] if expected is None else [expected])


def test_net_mask_is_given_for_updates_only_when_asked() -> None:
    assert net_changes(rows_of(3, 4), "all with mask", 2)[0].mask == b"\x02"
    assert net_changes(rows_of(3, 4), "all", 2)[0].mask is None


def test_net_merge_turns_inserts_and_updates_into_5() -> None:
    assert [net_changes(rows_of(*o), "all with merge", 2)[0].operation for o in ((2,), (3, 4), (1,))] == [5, 5, 1]
