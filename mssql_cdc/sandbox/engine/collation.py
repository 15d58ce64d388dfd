"""Collations: what a collation's name means, comparison keys, code pages.

`Collation.key` gives the sort key of national text, `narrow_key` that of char/varchar text: SQL_* collations order
the two differently (hyphens and apostrophes count in varchar, and are nearly ignored in nvarchar). Two texts are equal
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

from mssql_cdc.sandbox.engine import collation_keys
from mssql_cdc.sandbox.errors import error

Key = Callable[[str], str | bytes]

_FAMILIES: dict[str, tuple[int, int]] = {
    "Albanian": (0x041C, 1250), "Arabic": (0x0401, 1256), "Chinese_Hong_Kong_Stroke": (0x0C04, 950),
    "Chinese_PRC": (0x0804, 936), "Chinese_PRC_Stroke": (0x20804, 936), "Chinese_Simplified_Pinyin": (0x0804, 936),
    "Chinese_Taiwan_Bopomofo": (0x30404, 950), "Chinese_Taiwan_Stroke": (0x0404, 950), "Croatian": (0x041A, 1250),
    "Cyrillic_General": (0x0419, 1251), "Czech": (0x0405, 1250), "Danish_Greenlandic": (0x0406, 1252),
    "Danish_Norwegian": (0x0406, 1252), "Estonian": (0x0425, 1257), "Finnish_Swedish": (0x040B, 1252),
    "French": (0x040C, 1252), "German_PhoneBook": (0x10407, 1252), "Greek": (0x0408, 1253), "Hebrew": (0x040D, 1255),
    "Hungarian": (0x040E, 1250), "Icelandic": (0x040F, 1252), "Japanese": (0x0411, 932),
    "Japanese_XJIS": (0x0411, 932), "Japanese_Unicode": (0x10411, 932), "Korean": (0x0412, 949),
    "Korean_Wansung": (0x0412, 949), "Latin1_General": (0x0409, 1252), "Latvian": (0x0426, 1257),
    "Lithuanian": (0x0427, 1257), "Macedonian_FYROM": (0x042F, 1251), "Modern_Spanish": (0x0C0A, 1252),
    "Norwegian": (0x0414, 1252), "Polish": (0x0415, 1250), "Romanian": (0x0418, 1250), "Slovak": (0x041B, 1250),
    "Slovenian": (0x0424, 1250), "Thai": (0x041E, 874), "Traditional_Spanish": (0x040A, 1252),
    "Turkish": (0x041F, 1254), "Ukrainian": (0x0422, 1251), "Vietnamese": (0x042A, 1258),
}  # fmt: skip
_SQL_FAMILIES: dict[str, tuple[int, int, dict[str, int]]] = {
    "SQL_Latin1_General_CP1": (0x0409, 1252, {"CS_AS": 51, "CI_AS": 52, "CI_AI": 54}),
    "SQL_Latin1_General_Pref_CP1": (0x0409, 1252, {"CI_AS": 53}),
    "SQL_Latin1_General_CP437": (0x0409, 437, {"BIN": 30, "BIN2": 30, "CS_AS": 31, "CI_AS": 32, "CI_AI": 34}),
    "SQL_Latin1_General_CP850": (0x0409, 850, {"BIN": 40, "BIN2": 40, "CS_AS": 41, "CI_AS": 42, "CI_AI": 44}),
    "SQL_1xCompat_CP850": (0x0409, 850, {"CI_AS": 49}),
    "SQL_Latin1_General_CP1250": (0x0409, 1250, {"CS_AS": 81, "CI_AS": 82}),
    "SQL_Latin1_General_CP1251": (0x0419, 1251, {"CS_AS": 105, "CI_AS": 106}),
    "SQL_Latin1_General_CP1253": (0x0408, 1253, {"CS_AS": 113, "CI_AS": 114, "CI_AI": 124}),
    "SQL_Latin1_General_CP1254": (0x041F, 1254, {"CS_AS": 129, "CI_AS": 130}),
    "SQL_Latin1_General_CP1255": (0x040D, 1255, {"CS_AS": 137, "CI_AS": 138}),
    "SQL_Latin1_General_CP1256": (0x0401, 1256, {"CS_AS": 145, "CI_AS": 146}),
    "SQL_Latin1_General_CP1257": (0x0425, 1257, {"CS_AS": 153, "CI_AS": 154}),
    "SQL_Scandinavian_CP850": (0x0406, 850, {"CS_AS": 55, "CI_AS": 59}),
    "SQL_SwedishStd_Pref_CP1": (0x040B, 1252, {"CI_AS": 185}),
    "SQL_Czech_CP1250": (0x0405, 1250, {"CS_AS": 83, "CI_AS": 84}),
    "SQL_Hungarian_CP1250": (0x040E, 1250, {"CS_AS": 85, "CI_AS": 86}),
    "SQL_Polish_CP1250": (0x0415, 1250, {"CS_AS": 87, "CI_AS": 88}),
}
_NAME = re.compile(
    r"^(?P<family>\w+?)(?:_(?P<version>90|100|140|160))?_(?:(?P<binary>BIN2?)|(?P<case>C[IS])_(?P<accent>A[IS])"
    r"(?P<kana>_KS)?(?P<width>_WS)?(?P<variation>_VSS)?(?P<sc>_SC)?)(?P<utf8>_UTF8)?$",
    re.IGNORECASE,
)
_MULTI_BYTE = frozenset({932, 936, 949, 950, 65001})


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation by its canonical name, with the properties that the name spells out.

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
        """Python's name of the code page."""
        return _codec(self.code_page)

    @property
    def multi_byte(self) -> bool:
        """Whether a character may take several bytes in the code page."""
        return self.code_page in _MULTI_BYTE

    def encode(self, text: str) -> bytes:
        """Bytes of char/varchar text; characters outside the code page become their best fit or '?'."""
        return encoder(self.code_page)(text)

    def decode(self, data: bytes) -> str:
        """Text of char/varchar bytes; bytes without meaning become the control characters of the same number."""
        return data.decode(self.codec, _SAME_NUMBER)

    def to_code_page(self, text: str) -> str:
        """The text as char/varchar would keep it."""
        return text if text.isascii() else self.decode(self.encode(text))


def _codec(code_page: int) -> str:
    return "utf-8" if code_page == 65001 else f"cp{code_page}"


@lru_cache(maxsize=64)
def encoder(code_page: int) -> Callable[[str], bytes]:
    """The function that encodes text; `str.encode` would look the codec up and pass through Python each time."""
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
"""What the code pages of Windows put in place of characters that have no decomposition (`α` is an a to 1252)."""
_BEST_FIT = "sqlserver-best-fit"
_SAME_NUMBER = "sqlserver-same-number"
codecs.register_error(_BEST_FIT, _best_fit)
codecs.register_error(_SAME_NUMBER, _same_number)


@lru_cache(maxsize=512)
def _named(name: str) -> Collation | None:
    match = _NAME.match(name)
    if match is None:
        return None
    families = {known.lower(): known for known in (*_FAMILIES, *_SQL_FAMILIES)}
    family = families.get(match["family"].lower())
    if family is None:
        return None
    binary = (match["binary"] or "").upper()
    flags = f"{match['case']}_{match['accent']}".upper() if not binary else ""
    version = int(match["version"] or 80)
    sort_id = 0
    if family in _SQL_FAMILIES:
        lcid, code_page, ids = _SQL_FAMILIES[family]
        if (binary or flags) not in ids or match["version"] or match["utf8"]:
            return None
        sort_id = ids[binary or flags]
    else:
        lcid, code_page = _FAMILIES[family]
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
        sql_order=family in _SQL_FAMILIES,
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
    """The collation of this name (in any case), or None; the names database_default and the like are not known here."""
    return _named(name.lower())


def collation_named(name: str) -> Collation:
    """The collation of this name; error 448 if there is none."""
    found = find_collation(name)
    if found is None:
        raise error(448, name=name)
    return found


def known_collations() -> list[Collation]:
    """Common collations of every family, for sys.fn_helpcollations."""
    names = [
        f"{family}_{flags}" for family in _FAMILIES for flags in ("BIN", "BIN2", "CI_AI", "CI_AS", "CS_AI", "CS_AS")
    ]
    names += [
        f"Latin1_General_100_{flags}" for flags in ("BIN2", "CI_AI", "CI_AS", "CS_AS", "CI_AS_SC", "CI_AS_SC_UTF8")
    ]
    names += [f"{family}_{flags}" for family, (_, _, ids) in _SQL_FAMILIES.items() for flags in ids]
    return [collation_named(name) for name in sorted(names)]
