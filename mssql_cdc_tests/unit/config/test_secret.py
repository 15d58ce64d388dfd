"""Secrets are never shown and are resolved only when read."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.secret import Secret, reveal
from mssql_cdc.errors import ConfigurationError, MissingSecretError
from mssql_cdc_tests.unit.config.samples import sent


def test_literal_is_readable_but_never_shown() -> None:
    secret = Secret("hunter2")
    assert secret.read() == "hunter2"
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", "%s" % secret):  # noqa: UP031
        assert "hunter2" not in shown
        assert "***" in shown


def test_reference_shows_its_name_not_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_PASSWORD", "hunter2")
    secret = Secret("${env:CDC_TEST_PASSWORD}")
    assert repr(secret) == "Secret(${env:CDC_TEST_PASSWORD})"
    assert secret.read() == "hunter2"


def test_text_around_a_reference_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_TAIL", "2")
    secret = Secret("hunter${env:CDC_TEST_TAIL}")
    assert "hunter" not in repr(secret)
    assert secret.read() == "hunter2"


def test_environment_is_read_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret("${env:CDC_TEST_LATE}")
    travelled = sent(secret)
    monkeypatch.setenv("CDC_TEST_LATE", "now")
    assert travelled.read() == "now"


def test_pickle_contains_no_resolved_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_PASSWORD", "hunter2")
    secret = Secret("${env:CDC_TEST_PASSWORD}")
    secret.read()
    assert b"hunter2" not in pickle.dumps(secret)


@given(st.text(), st.text())
def test_equality_compares_the_unresolved_texts(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) == (one == other)
    assert sent(Secret(one)) == Secret(one)
    assert Secret(one) != one


def test_missing_variable_is_a_configuration_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_NONE", raising=False)
    with pytest.raises(MissingSecretError, match="CDC_TEST_NONE is not set") as caught:
        Secret("${env:CDC_TEST_NONE}").read()
    assert isinstance(caught.value, ConfigurationError)


def test_file_reference_reads_a_java_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "secrets.properties"
    path.write_text(
        "# comment\n! comment\nplain=a=b\n colon : c d\nspaced value here\nescaped\\ key=\\u0041\\tx\\\\y\n"
        "long=one\\\n   two\nempty=\n",
        encoding="utf-8",
    )
    values = {
        key: Secret(f"${{file:{path}:{key}}}").read()
        for key in ("plain", "colon", "spaced", "escaped key", "long", "empty")
    }
    assert values == {
        "plain": "a=b",
        "colon": "c d",
        "spaced": "value here",
        "escaped key": "A\tx\\y",
        "long": "onetwo",
        "empty": "",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("# kept in C:\\secrets\\\npassword=abc\nuser=x\n", "abc"),
        ("password=a\u2028b\x85c\x0bd\x1ce\n", "a\u2028b\x85c\x0bd\x1ce"),
        ("password=a\\\n  b\\\r\n\tc\n", "abc"),
        ("password=a\\\n# no comment\n", "a# no comment"),
        ("password=a\\\n\nuser=x\n", "a"),
        ("password=a\\\\\nuser=x\n", "a\\"),
        ("password=a  \n", "a  "),
        ("pass\\\n  word=a", "a"),
        ("password=a\\", "a"),
    ],
)
def test_a_properties_file_is_read_as_java_does(tmp_path: Path, text: str, value: str) -> None:
    """A comment in front took the line behind it along, and a password ended at a separator that is none of Java's."""
    path = tmp_path / "secrets.properties"
    path.write_text(text, encoding="utf-8", newline="")
    assert Secret(f"${{file:{path}:password}}").read() == value


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("${file:/no/such/file:key}", "cannot read"),
        ("${file:onlyapath}", "expected"),
        ("${file:PATH:absent}", "has no key 'absent'"),
    ],
)
def test_bad_file_reference_says_what_is_wrong(tmp_path: Path, reference: str, message: str) -> None:
    path = tmp_path / "s.properties"
    path.write_text("key=hunter2", encoding="utf-8")
    with pytest.raises(MissingSecretError, match=message) as caught:
        Secret(reference.replace("PATH", str(path))).read()
    assert "hunter2" not in str(caught.value)


def test_reveal_takes_plain_and_secret_values() -> None:
    assert (reveal("a"), reveal(Secret("b"))) == ("a", "b")
