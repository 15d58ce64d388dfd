"""Between a rename at the source and the next row of `_offsets`, a table is known by its identity (B15)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.lake.history import load_history, record_versions
from mssql_cdc.lake.offsets import append_offsets, load_offsets
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.records import open_output, write_records
from mssql_cdc_tests.lake_kit import AT, Change, lsn
from mssql_cdc_tests.unit.records.kit import Lake, table

FOLDERS = {1: "dbo/a", 2: "dbo/b", 3: "dbo/a!3"}


def cut(lake: Lake, to: int, names: dict[str, int]) -> None:
    """A complete cut at which each table, by its name now, has its object id."""
    entries = {
        table(name).table_id.text: Entry("streaming", to=lsn(to).text, batch=1, object_id=one, folder=FOLDERS[one])
        for name, one in names.items()
    }
    row = OffsetRow("range", AT, entries, to=lsn(to).text, complete=True)
    append_offsets(lake.layout, row, seen=load_offsets(lake.layout))


def known(lake: Lake, names: dict[str, int]) -> None:
    """The history knows the tables by these names."""
    found = [replace(table(name), object_id=one) for name, one in names.items()]
    present = {table(name).table_id: one for name, one in names.items()}
    history = load_history(lake.layout).identified(present, frozenset({1, 2}))
    record_versions(lake.layout, found, known=history, at=AT)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, {"include.schema.changes": False})
    for number, name in enumerate(("a", "b"), 1):
        schema = lake.add(table(name, object_id=number))
        lake.append(schema, Change(number, "c", after={"id": 10 * number}))
    cut(lake, 2, {"a": 1, "b": 2})
    return lake


RENAMES = pytest.mark.parametrize(
    "names",
    [{"c": 1, "b": 2}, {"b": 1, "a": 2}, {"c": 1, "b": 2, "a": 3}],
    ids=["another name", "exchanged names", "a name that another table took"],
)


@RENAMES
def test_records_are_the_same_behind_a_rename_that_no_row_of_offsets_names(lake: Lake, names: dict[str, int]):
    before = lake.records()
    assert [one["key"]["id"] for one in before] == [10, 20]
    known(lake, names)
    assert lake.records() == before
    cut(lake, 3, {name: one for name, one in names.items() if one != 3})
    assert lake.records() == before


@RENAMES
def test_an_output_gets_no_record_twice_behind_a_rename(lake: Lake, names: dict[str, int], tmp_path: Path):
    """Of a table that was not found, nothing counted as written: all of it came again, as late changes."""

    def written() -> int:
        with open_output(str(tmp_path / "records.jsonl"), lake.connector) as output:
            return write_records(lake.connector, output=output)

    assert written() == 2
    known(lake, names)
    assert written() == 0
    cut(lake, 3, {name: one for name, one in names.items() if one != 3})
    assert written() == 0
