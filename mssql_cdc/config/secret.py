"""Secret values, and references to values in the environment or in files.

`${env:NAME}` and `${file:path:key}` travel unresolved in configurations, pickles and Spark tasks; `Secret.read()`
resolves them where the text is used. Nothing here logs, and no error repeats a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from mssql_cdc.errors import MissingSecretError

SENSITIVE_NAMES = (
    r"passw|pwd|secret|token|passphrase|credential|jaas|webhook|authorization|connection.?string|user.?info$|"
    r"(?:access|account|api|sas|private|ssl|client|customer|encryption|provided|master|storage|shared|signing).?key|"
    r"(?:^|[._-])(?:key|pass|pin)$|(?:^|[._-])sas(?:$|[._-])"
)
"""Matches names of secrets, ignoring case, including those that drivers, clients, object stores and extensions invent.

It means the same in Python and Java.
"""
_SENSITIVE = re.compile(SENSITIVE_NAMES, re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{(env|file):([^{}]+)\}")
_FOREIGN = re.compile(r"\$\{(?!(?:env|file):)([A-Za-z][\w.-]*):[^{}]*\}")
_BLANKS = " \t\f"
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
"""Matches an odd number of backslashes at the end of a line."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def has_reference(text: str) -> bool:
    """Whether the text contains a `${env:…}` or `${file:…}` reference."""
    return _REFERENCE.search(text) is not None


def foreign_provider(text: str) -> str | None:
    """The provider of a `${provider:…}` reference that is not ours, or None."""
    found = _FOREIGN.search(text)
    return found[1] if found else None


def resolve(text: str) -> str:
    """The text with every reference replaced by what it refers to.

    Raises:
        MissingSecretError: a variable is not set, a file cannot be read or lacks the key.
    """
    return _REFERENCE.sub(lambda found: _resolve_one(found.group(1), found.group(2)), text)


class Secret:
    """A text that is never shown: `repr`, `str` and format show its references, or `***` for a literal.

    Two are equal if their unresolved texts are equal; pickling leaves references unresolved.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self) -> str:
        """The text, with references resolved here and now (raises MissingSecretError)."""
        return resolve(self._text)

    @property
    def refers(self) -> bool:
        """Whether the text contains a reference."""
        return has_reference(self._text)

    def __repr__(self) -> str:
        shown = " ".join(found.group(0) for found in _REFERENCE.finditer(self._text))
        return f"Secret({shown or '***'})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)


def is_sensitive(name: str) -> bool:
    """Whether a setting with this name holds a secret."""
    return _SENSITIVE.search(name) is not None


def sensitive(named: Iterable[tuple[str, str | Secret]]) -> tuple[Secret, ...]:
    """The values of the settings whose names say that they are secrets."""
    return tuple(value for name, value in named if isinstance(value, Secret) and is_sensitive(name))


def guarded(name: str, text: str) -> str | Secret:
    """The text as a Secret when its name says so or when it holds a reference, else as it is."""
    return Secret(text) if is_sensitive(name) or has_reference(text) else text


def reveal(value: str | Secret) -> str:
    """The text of a value that is either plain or secret."""
    return value.read() if isinstance(value, Secret) else value


def _resolve_one(kind: str, body: str) -> str:
    if kind == "env":
        try:
            return os.environ[body]
        except KeyError:
            raise MissingSecretError(
                f"${{env:{body}}}: the environment variable {body} is not set in this process; "
                "set it where the code location and the Spark workers run"
            ) from None
    path, separator, key = body.rpartition(":")
    if not separator or not path or not key:
        raise MissingSecretError(f"${{file:{body}}}: expected ${{file:<path>:<key>}}")
    try:
        values = _read_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingSecretError(f"${{file:{body}}}: cannot read {path} ({type(error).__name__})") from None
    if key not in values:
        raise MissingSecretError(f"${{file:{body}}}: the file has no key {key!r}")
    return values[key]


def _read_properties(text: str) -> dict[str, str]:
    """A Java properties file: `key=value`, `key: value` or `key value`; `#`, `!`; backslash escapes.

    Only a line feed and a carriage return end a line, and a comment ends with its line (`java.util.Properties`).
    """
    values: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        entry = line.lstrip(_BLANKS)
        if not entry or entry[0] in "#!":
            continue
        while _CONTINUED.search(entry):
            entry = entry[:-1] + next(lines, "").lstrip(_BLANKS)
        found = _ENTRY.fullmatch(entry)
        if found is not None:
            values[_unescape(found[1])] = _unescape(found[2])
    return values


def _unescape(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found.group(1):
            return chr(int(found.group(1), 16))
        return _ESCAPES.get(found.group(2), found.group(2))

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)
