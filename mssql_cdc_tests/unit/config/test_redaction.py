"""No text that is shown holds a secret, however a library has escaped it."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config import Secret
from mssql_cdc.config.redaction import redacted
from mssql_cdc_tests.unit.config.samples import connector_with

ESCAPES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "URL": lambda text: quote(text, safe=""),
    "URL path": quote,
    "form": quote_plus,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "ODBC braces": lambda text: text.replace("}", "}}"),
    "XML": html.escape,
    "XML text": lambda text: html.escape(text, quote=False),
    "backslashes": lambda text: text.replace("\\", "\\\\"),
    "Python": lambda text: repr(text)[1:-1],
    "T-SQL": lambda text: text.replace("'", "''"),
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=list(ESCAPES))
@given(secret=st.text(st.characters(codec="utf-8"), min_size=3).filter(lambda text: "${" not in text))
def test_a_secret_is_hidden_in_every_escaped_form(escape: Callable[[str], str], secret: str) -> None:
    assert redacted(f"<{escape(secret)}>", [Secret(secret)]) == "<***>"


def test_a_longer_secret_is_hidden_as_a_whole() -> None:
    assert redacted("see abcdef", [Secret("abc"), Secret("abcdef")]) == "see ***"


def test_a_reference_that_leads_nowhere_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_MISSING", raising=False)
    assert redacted("text", [Secret("${env:CDC_TEST_MISSING}")]) == "text"


def test_every_secret_of_a_connector_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_S3", "sesame")
    connector = connector_with(
        {
            "database.user": "reader",
            "database.password": "pa}ss",
            "driver.keyStoreSecret": "store-secret",
            "odbc.ClientKey": "client-key",
            "delta.storage.AWS_SECRET_ACCESS_KEY": "${env:CDC_TEST_S3}",
            "delta.storage.AWS_REGION": "eu-west-1",
            "spark.hadoop.fs.s3a.secret.key": "spark-secret",
            "delta.key.secret": "hmac-secret",
            "column.mask.hash.SHA-256.with.salt.pepper": "dbo.a.b",
        }
    )
    text = "pa}}ss store-secret client-key sesame spark-secret hmac-secret pepper"
    assert connector.redact(f"{text} reader eu-west-1") == "*** *** *** *** *** *** *** reader eu-west-1"
    assert "sesame" not in repr(connector.redact)
