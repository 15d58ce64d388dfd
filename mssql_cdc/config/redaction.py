"""Takes the secrets of a connector out of texts that are shown or kept, however a library has escaped them.

Which values are secrets is said by the names of the properties (`secret.is_sensitive`); beside them, salts of masks
and the literals of `database.initial.statements` are. Where texts leave the process is up to the callers.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from mssql_cdc.config.secret import Secret
from mssql_cdc.errors import MissingSecretError

HIDDEN = "***"
_LEAST = 3
"""Shorter texts stand in every message: they are no secrets."""
_COMMON = frozenset({"true", "false", "none", "null"})
"""Nor are these, which a setting with the name of a secret may have."""
_LITERAL = re.compile(r"'((?:[^']|'')+)'")
_IMPERSONATED = re.compile(r"\bEXEC(?:UTE)?\s+AS\s+(?:LOGIN|USER)\s*=\s*N?'(?:[^']|'')*'", re.IGNORECASE)


def redacted(text: str, secrets: Iterable[Secret]) -> str:
    """The text with every form of every secret replaced by `***`; a reference that leads nowhere hides nothing."""
    forms = {form for secret in secrets for form in _forms(secret)}
    if not forms:
        return text
    longest_first = sorted(forms, key=len, reverse=True)
    return re.sub("|".join(re.escape(form) for form in longest_first), HIDDEN, text)


@dataclass(frozen=True, slots=True)
class Redactor:
    """`redacted` for these secrets, which are resolved at every call: what `${env:…}` refers to may change."""

    secrets: tuple[Secret, ...] = ()
    statements: Secret | None = None
    """T-SQL whose literals are secrets as well."""
    shown: tuple[str, ...] = ()
    """Values that are shown anyway: a literal that stands in one of them is no secret."""

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return redacted(text, (*self.secrets, *self._literals()))

    def _literals(self) -> tuple[Secret, ...]:
        try:
            statements = self.statements.read() if self.statements is not None else ""
        except MissingSecretError:
            return ()
        found = literals(statements)
        return tuple(one for one in found if not any(one.read() in value for value in self.shown))


def literals(statements: str) -> tuple[Secret, ...]:
    """The literals of T-SQL as secrets, but not the names of logins and users that are impersonated.

    Errors name those, and are no use without.
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
