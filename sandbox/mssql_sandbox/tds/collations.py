"""The five bytes that identify a collation in TDS (MS-TDS 2.2.5.1.2), in both directions.

The meaning of collations, and their code pages, belongs to the engine.
"""

import functools
from collections.abc import Mapping

from mssql_sandbox.engine.collation import Collation, collation_named, known_collations

_IGNORE_CASE, _IGNORE_ACCENT, _IGNORE_KANA, _IGNORE_WIDTH = 1 << 20, 1 << 21, 1 << 22, 1 << 23
_BINARY, _BINARY2, _UTF8 = 1 << 24, 1 << 25, 1 << 26
_VERSION_SHIFT = 28
_VERSIONS: Mapping[int, int] = {80: 0, 90: 1, 100: 2, 140: 3, 160: 4}
_LCID_MASK = 0xFFFFF
_UTF8_CODE_PAGE = 65001


@functools.cache
def default_collation() -> Collation:
    """The collation of types without one, as for literals of a server with default settings."""
    return collation_named("SQL_Latin1_General_CP1_CI_AS")


@functools.cache
def collation_bytes(collation: Collation | None) -> bytes:
    """A collation as in TYPE_INFO."""
    collation = collation or default_collation()
    flags = collation.lcid & _LCID_MASK
    if collation.binary:
        flags |= _BINARY2 if collation.binary2 else _BINARY
    else:
        flags |= 0 if collation.case_sensitive else _IGNORE_CASE
        flags |= 0 if collation.accent_sensitive else _IGNORE_ACCENT
        flags |= 0 if collation.kana_sensitive else _IGNORE_KANA
        flags |= 0 if collation.width_sensitive else _IGNORE_WIDTH
    if collation.code_page == _UTF8_CODE_PAGE:
        flags |= _UTF8
    flags |= _VERSIONS[collation.version] << _VERSION_SHIFT
    return flags.to_bytes(4, "little") + bytes((collation.sort_id,))


def collation_of_bytes(data: bytes) -> Collation:
    """A collation with the code page that a client named; its comparison rules may differ."""
    flags = int.from_bytes(data[:4], "little")
    if flags & _UTF8:
        return collation_named("Latin1_General_100_CI_AS_SC_UTF8")
    by_sort_id, by_locale = _representatives()
    return by_sort_id.get(data[4]) or by_locale.get(flags & _LCID_MASK) or default_collation()


@functools.cache
def _representatives() -> tuple[Mapping[int, Collation], Mapping[int, Collation]]:
    """One collation per sort id of the SQL_* collations, and one per locale of the others."""
    known = [collation for collation in known_collations() if collation.code_page != _UTF8_CODE_PAGE]
    by_sort_id = {collation.sort_id: collation for collation in known if collation.sort_id}
    return by_sort_id, {collation.lcid & _LCID_MASK: collation for collation in known if not collation.sort_id}
