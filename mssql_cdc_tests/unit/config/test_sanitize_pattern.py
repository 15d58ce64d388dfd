"""`custom.sanitize.pattern` names further properties that hold secrets."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of, sent

NAME = "custom.sanitize.pattern"


def test_values_of_matching_properties_are_secrets_and_records_are_rendered() -> None:
    given = {NAME: r"spark\.hadoop\.my\..*|database\.agent", "spark.hadoop.my.thing": "hidden-1"}
    connector = sent(connector_with(given | {"spark.hadoop.your.thing": "shown-1"}))
    assert connector.redact("hidden-1 shown-1") == "*** shown-1"
    assert "hidden-1" not in repr(connector)
    assert connector.spark.read()["spark.hadoop.my.thing"] == "hidden-1"
    assert connector.notices == connector.unrendered == ()


@pytest.mark.parametrize("pattern", ["producer.own", "PRODUCER\\.OWN", "(?i)producer\\.OWN", "\\Qproducer.own\\E"])
def test_the_expression_is_javas_and_ignores_case(pattern: str) -> None:
    connector = connector_with({NAME: pattern, "producer.own": "hidden-1"})
    assert connector.redact("hidden-1") == "***"


def test_the_expression_matches_the_whole_name_as_in_debezium() -> None:
    connector = connector_with({NAME: "own", "producer.own": "shown-1"})
    assert connector.redact("shown-1") == "shown-1"


def test_the_built_in_names_are_secrets_beside_the_expression() -> None:
    connector = connector_with({NAME: "producer.own", "spark.hadoop.fs.s3a.secret.key": "hidden-1"})
    assert connector.redact("hidden-1") == "***"


def test_declared_properties_and_older_names_match_too() -> None:
    given = {NAME: r"delta\.warehouse|database\.history\.file\..*"}
    connector = connector_with(given | {"delta.warehouse": "/hidden/1", "database.history.file.filename": "/hidden/2"})
    assert connector.redact("see /hidden/1 and /hidden/2") == "see *** and ***"
    assert connector.delta.warehouse == "/hidden/1"


def test_a_referred_value_of_a_matching_property_is_a_secret_however_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_PIN", "4711")
    connector = connector_with({NAME: r"spark\.own", "spark.own": "${env:CDC_TEST_PIN}"})
    assert connector.redact("the number is 4711") == "the number is ***"


def test_hidden_settings_of_the_driver_do_not_contradict_each_other() -> None:
    given = {"driver.encrypt": "true", "odbc.Encrypt": "yes", "driver.applicationName": "hidden-1"}
    connector = connector_with({NAME: r"driver\..*"} | given)
    assert connector.redact("hidden-1") == "***"
    assert connector_with({NAME: r"driver\..*|odbc\..*"} | given).notices == ()
    assert "odbc.Encrypt: contradicts driver.encrypt" in problems_of(
        MINIMAL | {NAME: r"driver\..*"} | given | {"odbc.Encrypt": "no"}
    )


def test_problems_hide_values_of_matching_properties() -> None:
    problems = problems_of(MINIMAL | {NAME: r"snapshot\.mode", "snapshot.mode": "hidden-1"})
    assert "snapshot.mode: found '***'" in problems


@pytest.mark.parametrize("pattern", ["(", "a{", "[[:alpha:]]"])
def test_an_expression_that_is_not_valid_is_a_problem(pattern: str) -> None:
    assert f"{NAME}: " in problems_of(MINIMAL | {NAME: pattern, "producer.own": "x"})


def test_the_expression_may_be_referred_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_PATTERN", r"producer\.own")
    connector = connector_with({NAME: "${env:CDC_TEST_PATTERN}", "producer.own": "hidden-1"})
    assert connector.redact("hidden-1") == "***"
    monkeypatch.delenv("CDC_TEST_PATTERN")
    assert f"{NAME}: ${{env:CDC_TEST_PATTERN}}" in problems_of(MINIMAL | {NAME: "${env:CDC_TEST_PATTERN}"})
