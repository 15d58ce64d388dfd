"""Properties of extensions: options reach their extension, what is wrong is told, and capture goes on without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.config.extension_points import RESELECT
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.reselect import ReselectSettings
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of, sent
from mssql_cdc_tests.unit.extension_kit import install


@pytest.mark.feature("SPI-05")
def test_converter_gets_its_options_without_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "secret")
    found = connector_with(
        {"converters": "iso, other", "iso.type": "a", "iso.format": "x", "other.type": "b", "iso.word": "${env:WORD}"}
    ).records.extensions.own_converters
    assert [(one.name, one.type, one.read()) for one in sent(found)] == [
        ("iso", "a", {"format": "x", "word": "secret"}),
        ("other", "b", {}),
    ]
    assert "secret" not in repr(found)


@pytest.mark.feature("SPI-05")
def test_installed_converter_leaves_no_notice_and_renders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "iso-dates", {"mssql_cdc.converters": {"iso_dates": "never_imported:IsoDates"}})
    monkeypatch.syspath_prepend(tmp_path)
    connector = connector_with({"converters": "iso", "iso.type": "iso_dates"})
    assert connector.notices == connector.unrendered == ()
    connector.require_rendered()


@pytest.mark.feature("SPI-05", "SPI-10")
@pytest.mark.parametrize(("listed", "group"), [("converters", "converters"), ("post.processors", "post_processors")])
def test_extension_without_a_type_is_refused(listed: str, group: str) -> None:
    found = problems_of(MINIMAL | {listed: "own", "own.option": "x"})
    assert f"{listed}: own.type is required: the name of an entry point in the group mssql_cdc.{group}" in found


@pytest.mark.feature("SPI-05", "SPI-10", "SPI-11")
@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"converters": "own", "own.type": "org.example.Own"}, "own.type"),
        ({"post.processors": "own", "own.type": "org.example.Own"}, "own.type"),
        ({"transaction.metadata.factory": "org.example.Own"}, "transaction.metadata.factory"),
    ],
)
def test_java_class_that_is_not_built_in_refuses_records_and_not_the_capture(
    properties: dict[str, object], named: str
) -> None:
    connector = connector_with(properties)
    assert connector.unrendered == (named,)
    assert any(one.startswith(f"{named}: org.example.Own is a Java class") for one in connector.notices)
    with pytest.raises(ConfigurationError, match=named):
        connector.require_rendered()


def test_option_of_an_extension_that_is_not_listed_is_an_unknown_property() -> None:
    assert "iso.format: unknown property" in problems_of(MINIMAL | {"iso.format": "x"})


@pytest.mark.feature("SPI-10")
def test_options_of_reselect_columns_have_the_defaults_of_debezium() -> None:
    assert ReselectSettings.parse({}) == ReselectSettings(
        include=PatternList(), exclude=PatternList(), unavailable_values=True, null_values=True,
        use_event_key=False, on_error="warn",
    )  # fmt: skip
    given = {
        "reselect.columns.exclude.list": "dbo.t:a", "reselect.unavailable.values": "false",
        "reselect.null.values": "FALSE", "reselect.use.event.key": "true", "reselect.error.handling.mode": "FAIL",
    }  # fmt: skip
    found = ReselectSettings.parse(given)
    assert (found.unavailable_values, found.null_values, found.use_event_key, found.on_error) == (
        False, False, True, "fail",
    )  # fmt: skip
    assert [found.selects("dbo", "t", one) for one in ("a", "b")] == [False, True]
    included = ReselectSettings.parse({"reselect.columns.include.list": r"DBO\.t:a,.*:c"})
    assert [included.selects("dbo", "t", one) for one in ("a", "b", "c")] == [True, False, True]


@pytest.mark.feature("SPI-10")
@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("reselect.columns", "a", "reselect.columns is no option; expected reselect.columns.include.list"),
        ("null.values", "true", "null.values is no option"),
        ("reselect.null.values", "yes", "reselect.null.values: found 'yes', expected true or false"),
        ("reselect.error.handling.mode", "skip", "found 'skip', expected fail or warn"),
        ("reselect.columns.include.list", "(", "not a valid regular expression"),
    ],
)
def test_wrong_option_of_reselect_columns_is_refused(option: str, value: str, expected: str) -> None:
    found = problems_of(MINIMAL | {"post.processors": "own", "own.type": RESELECT, f"own.{option}": value})
    assert "post.processors: own: " in found
    assert expected in found


@pytest.mark.parametrize("prefix", ["", "post.processors."])
@pytest.mark.feature("SPI-10")
def test_options_of_a_post_processor_may_have_the_lists_name_in_front(prefix: str) -> None:
    """Debezium calls the form without it deprecated."""
    options = {f"{prefix}own.type": RESELECT, f"{prefix}own.reselect.null.values": "false"}
    found = connector_with({"post.processors": "own", **options}).records.extensions.reselect
    assert found is not None
    assert found.null_values is False


def test_reselect_columns_after_another_post_processor_refuses_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "own", {"mssql_cdc.post_processors": {"own": "never_imported:Own"}})
    monkeypatch.syspath_prepend(tmp_path)
    types = {"own.type": "own", "again.type": RESELECT}
    assert connector_with({"post.processors": "again,own", **types}).unrendered == ()
    assert connector_with({"post.processors": "own,again", **types}).unrendered == ("post.processors",)
