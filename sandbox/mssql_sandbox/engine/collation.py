"""Collations: the meaning of a collation's name, comparison keys, code pages.

`Collation.key` gives the sort key of national text, `narrow_key` that of char/varchar text: SQL_* collations order the
two differently (hyphens and apostrophes count in varchar and are nearly ignored in nvarchar). Two texts are equal
exactly when their keys are. What does not belong here: conversion between types, the collation of an expression.
"""

from __future__ import annotations

import codecs
import importlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from mssql_sandbox.engine import collation_keys
from mssql_sandbox.engine.collation_families import FAMILIES, SQL_FAMILIES
from mssql_sandbox.errors import error

Key = Callable[[str], str | bytes]

_NAME = re.compile(
    r"^(?P<family>\w+?)(?:_(?P<version>90|100|140|160))?_(?:(?P<binary>BIN2?)|(?P<case>C[IS])_(?P<accent>A[IS])"
    r"(?P<kana>_KS)?(?P<width>_WS)?(?P<variation>_VSS)?(?P<sc>_SC)?)(?P<utf8>_UTF8)?$",
    re.IGNORECASE,
)
_MULTI_BYTE = frozenset({932, 936, 949, 950, 65001})


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation by its canonical name, with the properties that the name encodes.

    `sql_order`: an SQL_* collation; `binary`: BIN or BIN2; `version`: 80, 90, 100 or 140; `code_page` 65001 for UTF8.
    """

    name: str
    case_sensitive: bool
    accent_sensitive: bool
    binary: bool
    sql_order: bool
    code_page: int
    lcid: int
    sort_id: int = 0
    version: int = 80
    kana_sensitive: bool = False
    width_sensitive: bool = False
    supplementary: bool = False
    binary2: bool = False
    key: Key = field(default=str, compare=False, repr=False)
    narrow_key: Key = field(default=str, compare=False, repr=False)

    @property
    def codec(self) -> str:
        """Python's name for the code page."""
        return _codec(self.code_page)

    @property
    def multi_byte(self) -> bool:
        """Whether a character may take several bytes in the code page."""
        return self.code_page in _MULTI_BYTE

    def encode(self, text: str) -> bytes:
        """Bytes of char/varchar text; characters outside the code page become their best fit or '?'."""
        return encoder(self.code_page)(text)

    def decode(self, data: bytes) -> str:
        """Text of char/varchar bytes; undefined bytes become the control characters of the same number."""
        return data.decode(self.codec, _SAME_NUMBER)

    def to_code_page(self, text: str) -> str:
        """The text after storing it as char/varchar."""
        return text if text.isascii() else self.decode(self.encode(text))


def _codec(code_page: int) -> str:
    return "utf-8" if code_page == 65001 else f"cp{code_page}"


@lru_cache(maxsize=64)
def encoder(code_page: int) -> Callable[[str], bytes]:
    """The function that encodes text; `str.encode` would look up the codec and run Python code each time."""
    name = _codec(code_page)
    if code_page in _MULTI_BYTE:
        encode = codecs.lookup(name).encode
        return lambda text: encode(text, _BEST_FIT)[0]
    module = importlib.import_module(f"encodings.{name}")
    table = getattr(module, "encoding_table", None) or module.encoding_map
    charmap = codecs.charmap_encode
    return lambda text: charmap(text, _BEST_FIT, table)[0]


def _best_fit(failure: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(failure, UnicodeEncodeError)
    out = bytearray()
    for character in failure.object[failure.start : failure.end]:
        number = ord(character)
        base = _FITTING.get(character) or unicodedata.normalize("NFKD", character)[:1]
        if 0x80 <= number <= 0x9F:
            out.append(number)
            continue
        try:
            # A supplementary character is two UTF-16 units, hence two question marks.
            fitted = base.encode(failure.encoding) if base != character else b"?" * (1 + (number > 0xFFFF))
        except UnicodeEncodeError:
            fitted = b"?"
        out += fitted
    return bytes(out), failure.end


def _same_number(failure: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(failure, UnicodeDecodeError)
    return "".join(map(chr, failure.object[failure.start : failure.end])), failure.end


_FITTING = dict(zip(
    "łŁđħĦıŧŦƀǀǃαΓδεΘπΣστΦφΩβ−∕∖∗√∞∩≡≤≥←↑→↓‖′⅓",
    "lLdhHitTb|!aGdeTpSstFfOß-/\\*v8n===<^>v|'?",
    strict=True,
))  # fmt: skip
"""Windows' best-fit replacements for characters that have no decomposition (`α` is an a in 1252)."""
_BEST_FIT = "sqlserver-best-fit"
_SAME_NUMBER = "sqlserver-same-number"
codecs.register_error(_BEST_FIT, _best_fit)
codecs.register_error(_SAME_NUMBER, _same_number)


@lru_cache(maxsize=512)
def _named(name: str) -> Collation | None:
    match = _NAME.match(name)
    if match is None:
        return None
    families = {known.lower(): known for known in (*FAMILIES, *SQL_FAMILIES)}
    family = families.get(match["family"].lower())
    if family is None:
        return None
    binary = (match["binary"] or "").upper()
    flags = f"{match['case']}_{match['accent']}".upper() if not binary else ""
    version = int(match["version"] or 80)
    sort_id = 0
    if family in SQL_FAMILIES:
        lcid, code_page, ids = SQL_FAMILIES[family]
        if (binary or flags) not in ids or match["version"] or match["utf8"]:
            return None
        sort_id = ids[binary or flags]
    else:
        lcid, code_page = FAMILIES[family]
    suffixes = "".join((match[part] or "").upper() for part in ("kana", "width", "variation", "sc", "utf8"))
    number = f"_{match['version']}" if match["version"] else ""
    rules = collation_keys.Rules(
        case_sensitive=bool(binary) or flags.startswith("CS"),
        accent_sensitive=bool(binary) or flags.endswith("AS"),
        kana_sensitive=bool(match["kana"]),
        width_sensitive=bool(match["width"]),
        weigh_supplementary=version >= 90,
        turkish=family == "Turkish",
    )
    collation = Collation(
        name=f"{family}{number}_{binary or flags}{suffixes}",
        case_sensitive=rules.case_sensitive,
        accent_sensitive=rules.accent_sensitive,
        binary=bool(binary),
        sql_order=family in SQL_FAMILIES,
        code_page=65001 if match["utf8"] else code_page,
        lcid=lcid,
        sort_id=sort_id,
        version=version,
        kana_sensitive=rules.kana_sensitive or bool(binary),
        width_sensitive=rules.width_sensitive or bool(binary),
        supplementary=bool(match["sc"]) or version >= 140,
        binary2=binary == "BIN2",
    )
    return _with_keys(collation, rules)


def _with_keys(collation: Collation, rules: collation_keys.Rules) -> Collation:
    if collation.binary:
        wide: Key = collation_keys.binary_key
        narrow: Key = wide if collation.code_page == 1252 else collation_keys.bytes_key(collation.encode)
    else:
        wide = collation_keys.linguistic_key(rules)
        narrow = collation_keys.sql_order_key(rules) if collation.sql_order else wide
    object.__setattr__(collation, "key", wide)
    object.__setattr__(collation, "narrow_key", narrow)
    return collation


def find_collation(name: str) -> Collation | None:
    """The collation of this name (in any case), or None; names such as database_default are not known here."""
    return _named(name.lower())


def collation_named(name: str) -> Collation:
    """The collation of this name; error 448 if there is none."""
    found = find_collation(name)
    if found is None:
        raise error(448, name=name)
    return found


def known_collations() -> list[Collation]:
    """Common collations of every family, with each locale and sort order."""
    names = [
        f"{family}_{flags}" for family in FAMILIES for flags in ("BIN", "BIN2", "CI_AI", "CI_AS", "CS_AI", "CS_AS")
    ]
    names += [
        f"Latin1_General_100_{flags}" for flags in ("BIN2", "CI_AI", "CI_AS", "CS_AS", "CI_AS_SC", "CI_AS_SC_UTF8")
    ]
    names += [f"{family}_{flags}" for family, (_, _, ids) in SQL_FAMILIES.items() for flags in ids]
    return [collation_named(name) for name in sorted(names)]
