"""Conversion of other types to xml: checked, and written as the server keeps them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.types import BINARIES, STRINGS, SqlType
from mssql_sandbox.engine.xml.queries import normalised
from mssql_sandbox.errors import SqlError

_ENCODING = re.compile(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.\-]+)[\"']")
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_PRESERVE = (1, 3)


def to_xml(source: SqlType, style: int | None) -> Callable[[Any], str] | None:
    """The function from text or bytes to xml; None for other types. Styles 1 and 3 keep white space.

    Raises:
        SqlError: 9400 and similar if the value is not well formed, 9402 if its bytes are not in the declared encoding.
    """
    keep = style in _PRESERVE
    if source.name in STRINGS:
        return lambda value: normalised(value, keep_blanks=keep)
    if source.name in BINARIES:
        return lambda value: normalised(_text(value), keep_blanks=keep)
    return None


def _text(value: bytes) -> str:
    """Bytes as text: by their byte-order mark, by the declared encoding, else as UTF-8."""
    encoding = next((name for mark, name in _MARKS if value.startswith(mark)), "")
    if not encoding:
        declared = _ENCODING.match(value)
        encoding = declared[1].decode() if declared is not None else "utf-8"
        if value[1:2] == b"\x00":
            encoding = "utf-16-le"
    try:
        codecs.lookup(encoding)
        return value.decode(encoding)
    except (LookupError, UnicodeDecodeError) as failure:
        raise SqlError(9402, "XML parsing: line 1, character 38, unable to switch the encoding") from failure
