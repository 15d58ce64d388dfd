"""No text that is shown holds a secret, however a library has escaped it."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config import Secret
from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.extension_points import EXTENSION_FAMILY
from mssql_cdc.config.redaction import redacted
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.extension_kit import install

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


def _is_secret(text: str) -> bool:
    """Whether it may be one: it is no reference, and no word such as `true`."""
    return "${" not in text and text.lower() not in {"true", "false", "none", "null"}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=list(ESCAPES))
@given(secret=st.text(st.characters(codec="utf-8"), min_size=3).filter(_is_secret))
def test_a_secret_is_hidden_in_every_escaped_form(escape: Callable[[str], str], secret: str) -> None:
    assert redacted(f"<{escape(secret)}>", [Secret(secret)]) == "<***>"


def test_a_longer_secret_is_hidden_as_a_whole() -> None:
    assert redacted("see abcdef", [Secret("abc"), Secret("abcdef")]) == "see ***"


def test_a_reference_that_leads_nowhere_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_MISSING", raising=False)
    assert redacted("text", [Secret("${env:CDC_TEST_MISSING}")]) == "text"


ENDINGS = (
    "password",
    "pass",
    "passwd",
    "passphrase",
    "clientSecret",
    "access.token",
    "key",
    "apiKey",
    "private_key",
    "credentials",
    "sas",
    "sasl.jaas.config",
    "webhook.url",
    "connection.string",
)
"""How the names of properties end that users, clients and drivers invent, and that hold a secret."""
JDBC = ("keyStoreSecret", "keyVaultProviderClientKey", "trustStorePassword")
SHOWN = ("database.user", "database.initial.statements")
"""Declared as secrets, because nothing shows them as they are given: a login is named in messages, and of statements
only the literals are hidden."""
OWNERS = ("conv", "post.processors.proc", "mail", "pager", "mine", "note")
"""Prefixes of the properties of a converter, a post-processor, channels, a snapshot query and a signal action."""


def secret_names() -> list[str]:
    """A name for each property, family and extension of the catalogue that can hold a secret, without salts."""
    names: list[str] = []
    for one in ALL:
        if one.kind == "secret" and one.name not in SHOWN:
            names.append(one.name)
        elif one.name in {"driver.*", "database.*"}:
            names += [one.name.replace("*", name) for name in JDBC]
        elif one.name == EXTENSION_FAMILY:
            names += [f"{owner}.{ending}" for owner in OWNERS for ending in ENDINGS]
        elif one.name.endswith(".*"):
            names += [one.name.replace("*", ending) for ending in ENDINGS]
    return names


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Properties that name an extension of every kind that has properties."""
    points = {
        "mssql_cdc.signal_channels": {"mail": "none:None"},
        "mssql_cdc.notification_channels": {"pager": "none:None"},
        "mssql_cdc.snapshot_queries": {"mine": "none:None"},
        "mssql_cdc.signal_actions": {"note": "none:None"},
        "mssql_cdc.converters": {"own": "none:None"},
        "mssql_cdc.post_processors": {"own": "none:None"},
    }
    monkeypatch.syspath_prepend(install(tmp_path, "own", points))
    return {
        "converters": "conv",
        "conv.type": "own",
        "post.processors": "proc",
        "post.processors.proc.type": "own",
        "signal.enabled.channels": "source,mail",
        "notification.enabled.channels": "pager",
        "snapshot.query.mode": "custom",
        "snapshot.query.mode.custom.name": "mine",
    }


@pytest.mark.parametrize("family", ["driver", "database"])
def test_every_secret_of_a_connector_is_known(
    extended: dict[str, object], monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """Two families that set the same differently contradict each other."""
    others = {f"{one}.{name}" for one in ("driver", "database") if one != family for name in JDBC}
    names = [name for name in secret_names() if name not in others]
    values = {name: f"hidden-{number}-{{value}}" for number, name in enumerate(names)}
    for number, name in enumerate(names):
        monkeypatch.setenv(f"CDC_TEST_{number}", values[name])
    literal = connector_with(extended | values)
    referred = connector_with(extended | {name: f"${{env:CDC_TEST_{n}}}" for n, name in enumerate(names)})
    for connector in (literal, referred):
        text = connector.redact("\n".join(f"{name}=<{value}>" for name, value in values.items()))
        assert [line for line in text.splitlines() if not line.endswith("=<***>")] == []
        assert "hidden-" not in repr(connector.redact)


def test_salts_are_secrets_and_other_values_are_not() -> None:
    salted = [one.name for one in ALL if "salt" in one.name]
    given = {
        name.replace("<algorithm>", "SHA-256").replace("<salt>", f"pepper{number}"): f"dbo.a.b{number}"
        for number, name in enumerate(salted)
    }
    shown = {
        "database.user": "reader",
        "delta.storage.AWS_REGION": "eu-west-1",
        "spark.sql.shuffle.partitions": "7000",
        "producer.enable.token": "true",
    }
    connector = connector_with(given | shown)
    text = "reader db.example.com eu-west-1 7000 true testDB dbo.a.b0"
    assert connector.redact(f"pepper0 pepper1 {text}") == f"*** *** {text}"


@pytest.mark.parametrize(
    ("statements", "said", "shown"),
    [
        ("OPEN SYMMETRIC KEY k DECRYPTION BY PASSWORD = 'sesame'", "wrong: sesame", "wrong: ***"),
        ("EXEC sp_setapprole 'shop_app', N'it''s'", "shop_app it's it''s", "*** *** ***"),
        ("EXEC sp_setapprole 'app', '${env:CDC_TEST_ROLE}'", "the word is whispered", "the word is ***"),
        ("${env:CDC_TEST_START}", "the word is murmured", "the word is ***"),
        ("EXECUTE AS LOGIN = 'reader'", "reader has no rights", "reader has no rights"),
        ("EXEC sp_set_session_context N'tenant', N'testDB'", "testDB.dbo.orders", "testDB.dbo.orders"),
    ],
)
def test_literals_of_initial_statements_are_hidden_unless_messages_need_them(
    statements: str, said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login that is impersonated is named in errors; what another property shows is no secret."""
    monkeypatch.setenv("CDC_TEST_ROLE", "whispered")
    monkeypatch.setenv("CDC_TEST_START", "EXEC sp_setapprole 'shop_app', 'murmured'")
    connector = connector_with({"database.initial.statements": statements})
    assert connector.redact(said) == shown
    assert "sesame" not in repr(connector.redact)
