"""The five bytes by which TDS names a collation (MS-TDS 2.2.5.1.2), and the codec of its code page.

What collations mean for comparing belongs to the engine.
"""

import codecs
import functools

from mssql_cdc.sandbox.engine.collation import Collation
from mssql_cdc.sandbox.tds.wire import ProtocolError

# SQL_Latin1_General_CP1_CI_AS: the server's collation, and that of types which carry none.
DEFAULT_COLLATION_BYTES = bytes.fromhex("0904D00034")

_IGNORE_CASE, _IGNORE_ACCENT, _IGNORE_KANA, _IGNORE_WIDTH = 1 << 20, 1 << 21, 1 << 22, 1 << 23
_BINARY, _BINARY2, _UTF8 = 1 << 24, 1 << 25, 1 << 26
_VERSION_SHIFT = 28
_LCID_MASK = 0xFFFFF
_UTF8_CODE_PAGE = 65001

# Windows' ANSI code page of a locale; all others are 1252.
_CODE_PAGES = {
    0x0405: 1250, 0x040E: 1250, 0x0415: 1250, 0x0418: 1250, 0x041A: 1250, 0x041B: 1250, 0x041C: 1250, 0x0424: 1250,
    0x0402: 1251, 0x0419: 1251, 0x0422: 1251, 0x0423: 1251, 0x042F: 1251, 0x043F: 1251, 0x0444: 1251, 0x0C1A: 1251,
    0x0408: 1253, 0x041F: 1254, 0x042C: 1254, 0x0443: 1254, 0x040D: 1255, 0x0401: 1256, 0x0420: 1256, 0x0429: 1256,
    0x0425: 1257, 0x0426: 1257, 0x0427: 1257, 0x042A: 1258, 0x041E: 874, 0x0411: 932, 0x0804: 936, 0x0412: 949,
    0x0404: 950,
}  # fmt: skip


@functools.cache
def collation_bytes(collation: Collation | None) -> bytes:
    """A collation as it stands in TYPE_INFO."""
    if collation is None:
        return DEFAULT_COLLATION_BYTES
    flags = collation.lcid & _LCID_MASK
    words = collation.name.upper().split("_")
    if collation.binary:
        flags |= _BINARY2 if "BIN2" in words else _BINARY
    else:
        flags |= 0 if collation.case_sensitive else _IGNORE_CASE
        flags |= 0 if collation.accent_sensitive else _IGNORE_ACCENT
        flags |= 0 if "KS" in words else _IGNORE_KANA
        flags |= 0 if "WS" in words else _IGNORE_WIDTH
    if collation.code_page == _UTF8_CODE_PAGE:
        flags |= _UTF8
    flags |= (collation.version & 0xF) << _VERSION_SHIFT
    return flags.to_bytes(4, "little") + bytes((collation.sort_id & 0xFF,))


def codec_name(collation: Collation | None) -> str:
    """The Python codec for single-byte text under this collation."""
    return _codec(1252 if collation is None else collation.code_page)


@functools.cache
def codec_of_bytes(data: bytes) -> str:
    """The Python codec for single-byte text whose collation a client named."""
    flags = int.from_bytes(data[:4], "little")
    if flags & _UTF8:
        return "utf-8"
    return _codec(_CODE_PAGES.get(flags & 0xFFFF, 1252))


def _codec(code_page: int) -> str:
    name = "utf-8" if code_page == _UTF8_CODE_PAGE else f"cp{code_page}"
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise ProtocolError(f"code page {code_page} is not known") from error
