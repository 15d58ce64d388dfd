"""JSON that others write is read, or is a ValueError that says what is wrong, and never another exception."""

from __future__ import annotations

import json

import pytest

from mssql_cdc.config.json_texts import json_value


@pytest.mark.parametrize("value", [None, 7, "ü🙂", [1, {"a": []}], {"a": "b"}])
def test_json_is_read(value: object):
    assert json_value(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"not valid JSON \(Expecting property name .* at character 1\)"),
        ("", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5000, "limit"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
    ],
)
def test_json_that_cannot_be_used_is_a_value_error(text: str, said: str):
    with pytest.raises(ValueError, match=said):
        json_value(text)
