"""Data files of BULK INSERT: opening them, and splitting text into rows of fields.

Fields are split as the server does it: every field but the last of a row ends at the field terminator and may contain
line ends; the last one ends at the row terminator or at the end of the file. The executor gives fields their meaning.
Files are opened with the rights of the server's process, so callers check permissions first.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mssql_sandbox.errors import SqlError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}
_NAMED_PAGES = {"ACP": "cp1252", "OEM": "cp437", "RAW": "cp1252", "65001": "utf-8-sig", "1200": "utf-16"}
_DENIED = "5(Access is denied.)"
CUT_SHORT = "\udfff"
"""Ends the only field of a row that is truncated by the end of the file."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """The layout of a data file's text; terminators as written, with escapes."""

    fields: int
    field_terminator: str = "\\t"
    row_terminator: str = "\\n"


def _not_opened(path: str, code: str) -> SqlError:
    return SqlError(
        4861, f'Cannot bulk load because the file "{path}" could not be opened. Operating system error code {code}.'
    )


def read_bytes(path: str) -> bytes:
    """The content of a data file.

    Raises:
        SqlError: 4860 for a file that does not exist, 4861 for one that cannot be opened, or is no regular file:
            devices and pipes would never end.
    """
    place = Path(path)
    try:
        if not place.exists():
            raise SqlError(
                4860, f'Cannot bulk load. The file "{path}" does not exist or you don\'t have file access rights.'
            )
        if not place.is_file():
            raise _not_opened(path, _DENIED)
        return place.read_bytes()
    except (OSError, ValueError) as failure:
        raise _not_opened(path, _DENIED) from failure


def decoded(content: bytes, page: str) -> str:
    """Text in a code page: ACP, OEM, RAW or a number. Bytes that are no text become lone surrogates.

    Raises:
        SqlError: 2775 for a code page that the server does not have.
    """
    name = _NAMED_PAGES.get(page.upper(), f"cp{page}")
    try:
        codecs.lookup(name)
    except LookupError as failure:
        raise SqlError(
            2775, f"The code page {page} is not supported by the server.", severity=17, state=12
        ) from failure
    return content.decode(name, errors="surrogateescape")


def is_text(field: str) -> bool:
    """Whether all bytes of a field were valid text in the code page."""
    return not any("\udc80" <= sign <= "\udcff" for sign in field)


def unescaped(terminator: str) -> str:
    r"""A terminator as characters: `\t`, `\n`, `\r`, `\\`, `\0`, or hexadecimal `0x0a`."""
    if terminator[:2].lower() == "0x":
        try:
            return bytes.fromhex(terminator[2:]).decode("latin-1")
        except ValueError:
            return terminator
    return re.sub(r"\\([tnr0\\])", lambda match: _ESCAPES[match[1]], terminator)


def row_end(terminator: str) -> re.Pattern[str]:
    r"""The terminator of a row. A written `\n` matches a line end with or without carriage return; 0x0a does not."""
    plain = re.escape(unescaped(terminator))
    if terminator.endswith("\\n") and not terminator.endswith("\\r\\n"):
        plain = plain.removesuffix(re.escape("\n")) + "\r?\n"
    return re.compile(plain)


def rows(text: str, form: FileForm) -> Iterator[list[str]]:
    """The rows of a file as fields; a last row truncated by the end of the file is one field with `CUT_SHORT`."""
    field_end, width = unescaped(form.field_terminator), len(unescaped(form.field_terminator))
    end, size, inner = row_end(form.row_terminator), len(text), form.fields - 1
    place = 0
    while place < size:
        found = []
        for _ in range(inner):
            stop = text.find(field_end, place)
            if stop < 0:
                yield [text[place:] + CUT_SHORT]
                return
            found.append(text[place:stop])
            place = stop + width
        match = end.search(text, place)
        found.append(text[place : size if match is None else match.start()])
        place = size if match is None else match.end()
        yield found
