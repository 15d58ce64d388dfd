"""Rows in a file are the rows that were written, whatever their texts are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.check import row_files

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=())), max_size=3).map(tuple)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([1, -1]))))
def test_rows_are_read_as_they_were_written(rows):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.arrow"
        row_files.write(file, iter(rows))
        assert list(row_files.read(file)) == rows
