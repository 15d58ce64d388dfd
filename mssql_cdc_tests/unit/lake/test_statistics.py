"""The bounds of a file's columns hold every value of the file."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from mssql_cdc.lake.statistics import Statistics

LONG = st.text(st.sampled_from("a\U0010ffff"), min_size=30, max_size=36)


@given(st.lists(st.text(max_size=40) | LONG, min_size=1))
@example(["a" * 32 + "\U0010ffff\U0010ffff"])
def test_every_text_is_within_the_bounds_of_its_file(texts: list[str]):
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array(texts, pa.string())}))
    facts = json.loads(found.to_json())
    assert facts["minValues"]["stored"] <= min(texts)
    assert "stored" not in facts["maxValues"] or facts["maxValues"]["stored"] >= max(texts)


def test_a_long_text_has_a_short_upper_bound():
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array(["b" * 100, "a"], pa.string())}))
    assert json.loads(found.to_json())["maxValues"] == {"stored": "b" * 32 + "\U0010ffff"}
