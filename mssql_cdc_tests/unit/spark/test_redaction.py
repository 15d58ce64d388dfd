"""Spark's pages and event logs hide at least what Spark hides by itself, and what is a secret here."""

from __future__ import annotations

import re

import pytest

from mssql_cdc.spark.session import SparkSettings, session_confs
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.config.test_secret_names import INNOCENT, NAMES, VALUES

REGEX = "spark.redaction.regex"
SPARKS = ("my.Secret", "a.password.b", "TOKEN", "access.key", "accesskey", "x.access.key.y")
"""What Spark's default matches: `(?i)secret|password|token|access[.]?key`."""


def hides(text: str, **given: str) -> bool:
    """Whether Spark hides a setting of which the name or the value is this text."""
    confs = connector_with({name.replace("__", "."): value for name, value in given.items()}).spark.read()
    # `(?i)` at the start and the rest mean the same in Java; `spark/test_secrets.py` shows it.
    return re.search(session_confs(SparkSettings.from_environment(confs=confs))[REGEX], text) is not None


@pytest.mark.parametrize("name", [*SPARKS, *NAMES])
def test_names_of_secrets_are_hidden_by_spark(name: str) -> None:
    assert hides(name)


@pytest.mark.parametrize("value", [value for value, _ in VALUES.values()])
def test_values_with_a_secret_inside_are_hidden_by_spark(value: str) -> None:
    assert hides(value)


@pytest.mark.parametrize("text", [*INNOCENT, "spark.app.name", "http://host:4040/a?b=c", "jdbc:x://h:1;user=a@b"])
def test_other_settings_are_shown_by_spark(text: str) -> None:
    assert not hides(text)


def test_hidden_and_referred_settings_are_hidden_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_OWN", "whispered")
    given = {"custom__sanitize__pattern": r"spark\.hadoop\.my\..*", "spark__hadoop__my__thing": "x"}
    assert hides("spark.hadoop.my.thing", **given)
    assert hides("my.thing", **given)  # as Hadoop's properties are listed
    assert not hides("spark.hadoop.my.thing.x", **given)
    assert not hides("spark.hadoop.my-thing", **given)
    assert hides("spark.own", spark__own="${env:CDC_TEST_OWN}")


def test_a_configured_expression_stays() -> None:
    assert hides("blue", **{REGEX: "blue"})
    assert not hides("password", **{REGEX: "blue"}, **{"custom.sanitize.pattern": "spark.a", "spark.a": "b"})
