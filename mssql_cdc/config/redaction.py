"""Takes the secrets of a connector out of texts that are shown or kept, however a library has escaped them.

Which values are secrets is said by the properties (`secret.py`); where texts leave the process is up to the callers.
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

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return redacted(text, self.secrets)


def _forms(secret: Secret) -> Iterator[str]:
    """The secret as it is, and as URLs, JSON, ODBC, XML, Python, Java and Spark SQL escape it."""
    try:
        text = secret.read()
    except MissingSecretError:
        return
    if len(text) < _LEAST:
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
