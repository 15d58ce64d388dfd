"""Removes the secrets of a connector from texts that are shown or stored, however a library has escaped them.

The names of properties determine which values are secrets (`secret.is_sensitive`). Other secrets: the salts of masks,
the literals of `database.initial.statements`, secret parts of other values (`secret_parts`), and the referenced values
of properties whose meaning only others know. Where texts leave the process is up to the callers.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, quote_plus, unquote

from mssql_cdc.config.secret import SENSITIVE_NAMES, Secret, is_sensitive, reveal
from mssql_cdc.errors import MissingSecretError

HIDDEN = "***"
_LEAST = 3
"""Shorter texts occur in every message: they are not secrets."""
_LEAST_REFERRED = 8
"""If free properties refer to them, shorter texts are no secrets either: `cluster`, `local[2]` or a database's name."""
_COMMON = frozenset({"true", "false", "none", "null"})
"""Nor are these values, which a setting with the name of a secret may have."""
_IN_AUTHORITY = r"://[^\s/?#@:]*:(?!\d+[;,])([^\s/?#]+)@"
"""The second part of JDBC's `://host:1433;password=…` is a port. The expression means the same in Java."""
_IN_URL = re.compile(rf"{_IN_AUTHORITY}|[;?&](?P<name>[\w.-]+)=(?P<value>[^\s;&#]+)")
_IN_OPTIONS = re.compile(r"(?<!\S)-D(?P<name>[\w.-]+)=(?P<value>\S+)")
_SIGNATURE = re.compile(r"^sig$|signature$", re.IGNORECASE)
_SIGNED_URL = r"[?&](?:sig|[\w.-]*signature)="
SPARK_REDACTION = "spark.redaction.regex"
_LITERAL = re.compile(r"'((?:[^']|'')+)'")
_IMPERSONATED = re.compile(r"\bEXEC(?:UTE)?\s+AS\s+(?:LOGIN|USER)\s*=\s*N?'(?:[^']|'')*'", re.IGNORECASE)


def redacted(text: str, secrets: Iterable[Secret]) -> str:
    """The text with every form of every secret replaced by `***`; a reference that cannot be resolved hides nothing."""
    forms = {form for secret in secrets for form in _forms(secret)}
    if not forms:
        return text
    longest_first = sorted(forms, key=len, reverse=True)
    return re.sub("|".join(re.escape(form) for form in longest_first), HIDDEN, text)


def redacted_values(value: Any, redact: Callable[[str], str]) -> Any:
    """The value with each text in it redacted: it stays JSON, and keys of objects, which are names, stay as they are.

    Args:
        value: A value that `json.dumps` accepts.
        redact: Removes the secrets from a text.
    """
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {name: redacted_values(one, redact) for name, one in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [redacted_values(one, redact) for one in cast("list[Any]", value)]
        case _:
            return value


def spark_redaction(names: Iterable[str] = ()) -> str:
    """The expression, in Java's syntax, with which Spark hides settings whose name or value it matches.

    It matches whatever Spark's own default does.

    Args:
        names: of settings whose names do not reveal that they are secrets.
    """
    named = (rf"^(?:spark\.hadoop\.)?{re.escape(name.removeprefix('spark.hadoop.'))}$" for name in names)
    return "|".join((f"(?i){SENSITIVE_NAMES}", _IN_AUTHORITY, _SIGNED_URL, *named))


def secret_parts(text: str) -> Iterator[str]:
    """The secret parts, verbatim, of a value that is not a secret as a whole.

    These are the password of a URL, and its parameters and Java's options (`-D…`) with the names of secrets.
    """
    return (text[start:end] for start, end in _secret_spans(text))


def without_parts(text: str) -> str:
    """The value with `***` in place of each secret in it, including short ones."""
    made, place = "", 0
    for start, end in sorted(_secret_spans(text)):
        if start >= place:  # A URL may be the value of an option, which is hidden as a whole.
            made, place = made + text[place:start] + HIDDEN, end
    return made + text[place:]


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    found = [*(_IN_URL.finditer(text) if "://" in text else ()), *(_IN_OPTIONS.finditer(text) if "-D" in text else ())]
    for one in found:
        name = one["name"]
        if name is None:
            yield one.span(1)
        elif is_sensitive(name) or _SIGNATURE.search(name):
            yield one.span("value")


@dataclass(frozen=True, slots=True)
class Redactor:
    """`redacted` for these secrets, which are resolved at every call: what `${env:…}` refers to may change."""

    secrets: tuple[Secret, ...] = ()
    statements: Secret | None = None
    """T-SQL whose literals are secrets as well."""
    shown: tuple[str | Secret, ...] = ()
    """Values that are shown anyway: a literal or a reference's value that occurs in one of them is no secret."""
    referred: tuple[Secret, ...] = ()
    """References in free properties, whose names reveal nothing: only the reference suggests that its value may be a
    secret. It is not if it is short, a number or part of a shown value, which messages need."""

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        shown = [_read(one) for one in self.shown]
        referred = [_read(one) for one in self.referred]
        doubtful = [*self._literals(), *(one for one in referred if len(one) >= _LEAST_REFERRED and not one.isdigit())]
        certain = [Secret(one) for one in doubtful if not any(one in value for value in shown)]
        return redacted(text, (*self.secrets, *certain, *self._parts([*shown, *referred])))

    def _literals(self) -> tuple[str, ...]:
        return tuple(one.read() for one in literals(_read(self.statements))) if self.statements is not None else ()

    def _parts(self, values: Iterable[str]) -> Iterator[Secret]:
        for value in (*values, *(_read(one) for one in self.secrets)):
            for part in secret_parts(value):
                yield Secret(part)
                yield Secret(unquote(part))


def _read(value: str | Secret) -> str:
    """The value, or an empty text if its reference cannot be resolved."""
    try:
        return reveal(value)
    except MissingSecretError:
        return ""


def literals(statements: str) -> tuple[Secret, ...]:
    """The literals of T-SQL as secrets, but not the names of logins and users that are impersonated.

    Errors name these, and are useless without them.
    """
    found = _LITERAL.findall(_IMPERSONATED.sub("", statements))
    return tuple(Secret(one.replace("''", "'")) for one in found)


def _forms(secret: Secret) -> Iterator[str]:
    """The secret as it is, and as URLs, JSON, ODBC, XML, Python, Java and Spark SQL escape it."""
    try:
        text = secret.read()
    except MissingSecretError:
        return
    if len(text) < _LEAST or text.lower() in _COMMON:
        return
    yield text
    yield from (quote(text, safe=""), quote(text), quote_plus(text))
    as_json = json.dumps(text)[1:-1]
    yield from (as_json, as_json.replace("/", "\\/"), json.dumps(text, ensure_ascii=False)[1:-1])
    yield text.replace("}", "}}")
    yield from (html.escape(text), html.escape(text, quote=False), html.escape(text).replace("&#x27;", "&apos;"))
    yield from (repr(text)[1:-1], text.replace("\\", "\\\\"), text.replace("\\", "\\\\").replace("'", "\\'"))
    yield text.replace("'", "''")
    yield re.sub(r"([\\:=#! ])", r"\\\1", text)
