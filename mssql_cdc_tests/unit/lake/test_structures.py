"""The structure of tables that are not captured: what is written is read, and only the last attempt counts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.structures import load_structures, record_structures
from mssql_cdc.schema import TableId, TableStructure
from mssql_cdc_tests.lake_kit import AT, column


def structure(name: str, *columns: str) -> TableStructure:
    return TableStructure(TableId("shop", "dbo", name), tuple(column(one, "int") for one in columns), columns[:1])


@pytest.mark.feature("SNP-19", "SCH-11")
def test_structures_are_read_as_they_were_written(tmp_path: Path):
    layout = Layout(str(tmp_path), "shop", "shop")
    assert load_structures(layout) == []
    # Delta refuses such columns in a table; here they are only described.
    wanted = [structure("a.b", "id", "ID"), structure("none")]
    record_structures(layout, wanted, at=AT)
    assert [one.structure for one in load_structures(layout)] == wanted


def test_what_an_interrupted_attempt_wrote_is_replaced(tmp_path: Path):
    layout = Layout(str(tmp_path), "shop", "shop")
    record_structures(layout, [structure("a", "id"), structure("b", "id")], at=AT)
    later = AT + timedelta(minutes=1)
    record_structures(layout, [structure("a", "id", "name")], at=later)
    (seen,) = load_structures(layout)
    assert (seen.structure, seen.at) == (structure("a", "id", "name"), later)
