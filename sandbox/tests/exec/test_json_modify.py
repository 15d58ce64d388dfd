"""Rules of what JSON_MODIFY puts in: JSON as it is where a function made it, text as text, bits as truth values.

Evidence: Microsoft's documentation of `JSON_MODIFY`, its examples.
"""

from __future__ import annotations

import pytest

from tests.exec.conftest import Client


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("JSON_MODIFY('{\"a\":1}', '$.b', JSON_QUERY('[1,2]'))", '{"a":1,"b":[1,2]}'),
        ("JSON_MODIFY('{\"a\":1}', '$.b', '[1,2]')", '{"a":1,"b":"[1,2]"}'),
        ("JSON_MODIFY('{}', '$.b', (SELECT 1 AS x FOR JSON PATH))", '{"b":[{"x":1}]}'),
        ("JSON_MODIFY('{}', '$.b', JSON_MODIFY('{}', '$.c', 1))", '{"b":{"c":1}}'),
        ("JSON_MODIFY('{}', '$.b', JSON_QUERY(NULL))", "{}"),
        ("JSON_MODIFY('{\"b\":[1]}', 'append $.b', 2)", '{"b":[1,2]}'),
        ("JSON_MODIFY('{}', 'append $.b', 'x')", '{"b":["x"]}'),
        ("JSON_MODIFY('{}', '$.b', CAST(1 AS bit))", '{"b":true}'),
    ],
)
def test_what_is_put_in(sql: Client, expression: str, text: str) -> None:
    assert sql(f"SELECT {expression}").rows == [(text,)]
