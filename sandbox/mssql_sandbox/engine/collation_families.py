"""The families of collations: locale, code page and versions.

The meaning of a name belongs to `collation`. Families without a code page, for national text only, are not supported.
"""

from __future__ import annotations

_BY_VERSION = {
    "80": ("Danish_Norwegian:0406:1252 Japanese_Unicode:10411:932 Korean_Wansung:0412:949"),
    "80 90": (
        "Chinese_PRC:0804:936 Chinese_PRC_Stroke:20804:936 Chinese_Taiwan_Bopomofo:30404:950 "
        "Chinese_Taiwan_Stroke:0404:950 Japanese:0411:932"
    ),
    "80 100": (
        "Albanian:041C:1250 Arabic:0401:1256 Croatian:041A:1250 Cyrillic_General:0419:1251 Czech:0405:1250 "
        "Estonian:0425:1257 Finnish_Swedish:040B:1252 French:040C:1252 Georgian_Modern_Sort:10437:1252 "
        "German_PhoneBook:10407:1252 Greek:0408:1253 Hebrew:040D:1255 Hungarian:040E:1250 "
        "Hungarian_Technical:1040E:1250 Icelandic:040F:1252 Latin1_General:0409:1252 Latvian:0426:1257 "
        "Lithuanian:0427:1257 Modern_Spanish:0C0A:1252 Polish:0415:1250 Romanian:0418:1250 Slovak:041B:1250 "
        "Slovenian:0424:1250 Thai:041E:874 Traditional_Spanish:040A:1252 Turkish:041F:1254 Ukrainian:0422:1251 "
        "Vietnamese:042A:1258"
    ),
    "90": "Chinese_Hong_Kong_Stroke:0C04:950",
    "90 100": (
        "Azeri_Cyrillic:082C:1251 Azeri_Latin:042C:1254 Kazakh:043F:1251 Korean:0412:949 Macedonian_FYROM:042F:1251 "
        "Tatar:0444:1251 Uzbek_Latin:0443:1254"
    ),
    "100": (
        "Bashkir:046D:1251 Bosnian_Cyrillic:201A:1251 Bosnian_Latin:141A:1250 Breton:047E:1252 "
        "Chinese_Simplified_Pinyin:0804:936 Chinese_Simplified_Stroke_Order:20804:936 "
        "Chinese_Traditional_Bopomofo:30404:950 Chinese_Traditional_Pinyin:1404:950 "
        "Chinese_Traditional_Stroke_Count:0404:950 Chinese_Traditional_Stroke_Order:21404:950 Corsican:0483:1252 "
        "Danish_Greenlandic:0406:1252 Dari:048C:1256 Frisian:0462:1252 Mapudungan:047A:1252 Mohawk:047C:1252 "
        "Norwegian:0414:1252 Persian:0429:1256 Romansh:0417:1252 Sami_Norway:043B:1252 "
        "Sami_Sweden_Finland:083B:1252 Serbian_Cyrillic:0C1A:1251 Serbian_Latin:081A:1250 Tamazight:085F:1252 "
        "Turkmen:0442:1250 Uighur:0480:1256 Upper_Sorbian:042E:1252 Urdu:0420:1256 Welsh:0452:1252 Yakut:0485:1251"
    ),
    "100 140": "Japanese_Bushu_Kakusu:40411:932 Japanese_XJIS:0411:932",
}
FAMILIES: dict[str, tuple[int, int]] = {
    name: (int(lcid, 16), int(code_page))
    for text in _BY_VERSION.values()
    for name, lcid, code_page in (family.split(":") for family in text.split())
}
"""Locale and code page of the families of Windows collations."""
SQL_FAMILIES: dict[str, tuple[int, int, dict[str, int]]] = {
    "SQL_Latin1_General_CP1": (0x0409, 1252, {"CS_AS": 51, "CI_AS": 52, "CI_AI": 54}),
    "SQL_Latin1_General_Pref_CP1": (0x0409, 1252, {"CI_AS": 53}),
    "SQL_Latin1_General_CP437": (0x0409, 437, {"BIN": 30, "BIN2": 30, "CS_AS": 31, "CI_AS": 32, "CI_AI": 34}),
    "SQL_Latin1_General_Pref_CP437": (0x0409, 437, {"CI_AS": 33}),
    "SQL_Latin1_General_CP850": (0x0409, 850, {"BIN": 40, "BIN2": 40, "CS_AS": 41, "CI_AS": 42, "CI_AI": 44}),
    "SQL_Latin1_General_Pref_CP850": (0x0409, 850, {"CI_AS": 43}),
    "SQL_1xCompat_CP850": (0x0409, 850, {"CI_AS": 49}),
    "SQL_AltDiction_Pref_CP850": (0x0409, 850, {"CI_AS": 56}),
    "SQL_Latin1_General_CP1250": (0x0409, 1250, {"CS_AS": 81, "CI_AS": 82}),
    "SQL_Latin1_General_CP1251": (0x0409, 1251, {"CS_AS": 105, "CI_AS": 106}),
    "SQL_Latin1_General_CP1253": (0x0409, 1253, {"CS_AS": 113, "CI_AS": 114, "CI_AI": 124}),
    "SQL_Latin1_General_CP1254": (0x041F, 1254, {"CS_AS": 129, "CI_AS": 130}),
    "SQL_Latin1_General_CP1255": (0x0409, 1255, {"CS_AS": 137, "CI_AS": 138}),
    "SQL_Latin1_General_CP1256": (0x0409, 1256, {"CS_AS": 145, "CI_AS": 146}),
    "SQL_Latin1_General_CP1257": (0x0409, 1257, {"CS_AS": 153, "CI_AS": 154}),
    "SQL_MixDiction_CP1253": (0x0409, 1253, {"CS_AS": 120}),
    "SQL_AltDiction2_CP1253": (0x0409, 1253, {"CS_AS": 122}),
    "SQL_Scandinavian_CP850": (0x040B, 850, {"CS_AS": 59, "CI_AS": 60}),
    "SQL_Scandinavian_Pref_CP850": (0x040B, 850, {"CI_AS": 58}),
    "SQL_SwedishPhone_Pref_CP1": (0x040B, 1252, {"CI_AS": 184}),
    "SQL_SwedishStd_Pref_CP1": (0x040B, 1252, {"CI_AS": 185}),
    "SQL_Danish_Pref_CP1": (0x0406, 1252, {"CI_AS": 183}),
    "SQL_Icelandic_Pref_CP1": (0x040F, 1252, {"CI_AS": 186}),
    "SQL_Czech_CP1250": (0x0405, 1250, {"CS_AS": 83, "CI_AS": 84}),
    "SQL_Hungarian_CP1250": (0x040E, 1250, {"CS_AS": 85, "CI_AS": 86}),
    "SQL_Polish_CP1250": (0x0415, 1250, {"CS_AS": 87, "CI_AS": 88}),
    "SQL_Romanian_CP1250": (0x0418, 1250, {"CS_AS": 89, "CI_AS": 90}),
    "SQL_Croatian_CP1250": (0x041A, 1250, {"CS_AS": 91, "CI_AS": 92}),
    "SQL_Slovak_CP1250": (0x041B, 1250, {"CS_AS": 93, "CI_AS": 94}),
    "SQL_Slovenian_CP1250": (0x0424, 1250, {"CS_AS": 95, "CI_AS": 96}),
    "SQL_Ukrainian_CP1251": (0x0422, 1251, {"CS_AS": 107, "CI_AS": 108}),
    "SQL_Estonian_CP1257": (0x0425, 1257, {"CS_AS": 155, "CI_AS": 156}),
    "SQL_Latvian_CP1257": (0x0426, 1257, {"CS_AS": 157, "CI_AS": 158}),
    "SQL_Lithuanian_CP1257": (0x0427, 1257, {"CS_AS": 159, "CI_AS": 160}),
}
"""Locale of the national text, code page, and sort order [doc: fn_helpcollations]."""
