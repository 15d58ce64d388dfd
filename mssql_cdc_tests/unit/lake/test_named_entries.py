"""Entries by the names of the schema history, which knows a new name before `_offsets` does (B15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.schema import TableSchema
from mssql_cdc_tests.lake_kit import AT, column, lsn
from mssql_cdc_tests.unit.records.kit import table


def offsets(**identities: int | None) -> Offsets:
    """A cut with an entry for each of these names; its `_batch` says which name it was."""
    entries = {
        table(name).table_id.text: Entry("streaming", to=lsn(1).text, batch=ord(name), object_id=identity)
        for name, identity in identities.items()
    }
    return Offsets().with_row(OffsetRow("range", AT, entries, to=lsn(1).text, complete=True), 1)


def found(known: Offsets, **identities: int | None) -> dict[str, str]:
    """By each newest name, the name under which its entry is."""
    versions: dict[str, list[TableSchema]] = {}
    for name, identity in identities.items():
        one = replace(table(name, column("id", "int", nullable=False)), object_id=identity)
        versions[one.table_id.text] = [one]
    entries = entries_by_name(known, versions)
    return {name.rpartition(".")[2]: chr(entry.batch or 0) for name, entry in entries.items()}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": "a", "b": "b"}),
        ({"c": 1, "b": 2}, {"c": "a", "b": "b"}),
        ({"b": 1, "a": 2}, {"b": "a", "a": "b"}),
        ({"c": 1, "a": 3, "b": 2}, {"c": "a", "b": "b"}),
        ({"a": 3, "b": 2}, {"a": "a", "b": "b"}),
        ({"a": 1, "b": 2, "d": 4}, {"a": "a", "b": "b"}),
    ],
    ids=["nothing", "renamed", "exchanged", "its name was taken", "made anew", "a new table"],
)
def test_a_table_has_the_entry_of_its_identity(names: dict[str, int], expected: dict[str, str]):
    assert found(offsets(a=1, b=2), **names) == expected


def test_without_identities_the_names_tell_tables():
    assert found(offsets(a=None), a=None) == {"a": "a"}
    assert found(offsets(a=None), a=1) == {"a": "a"}
    assert found(offsets(a=1), b=None) == {}
