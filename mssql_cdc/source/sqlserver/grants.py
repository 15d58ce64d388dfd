"""The permissions that a login lacks, from the server's message, whatever the login's language.

A message quotes names, and has the permission in capitals; the words between them are not interpreted. `classify`
decides which error it is.
"""

from __future__ import annotations

import re

from mssql_cdc.source.sqlserver.sql import quote

_GRANTS = {
    229: "GRANT {permission} ON {object} TO <login's user>, and membership of the gating role (role_name of the "
    "capture instance)",
    230: "GRANT {permission} ON {object} TO <login's user>",
    262: "GRANT {permission} TO <login's user>",
    297: "GRANT VIEW SERVER STATE TO <login>",
    300: "GRANT {permission} TO <login>",
    371: "GRANT VIEW DATABASE STATE TO <login's user>",
    916: "CREATE USER for the login in this database, and GRANT SELECT ON SCHEMA::cdc TO it",
    6004: "ask for a login with the needed server role",
    22904: "membership of db_owner",
}
NUMBERS = frozenset(_GRANTS)
"""The errors that a permission would fix."""
OF_ONE_OBJECT = frozenset({229, 230})
"""Those that concern one object of the database."""

_LATIN = "A-Za-z\u00c0-\u024f"
_QUOTED = tuple(
    re.compile(rf"(?<![{_LATIN}]){open_}(.+?){close}(?![{_LATIN}\d_])")
    for open_, close in ("''", '""', "“”", "„“", "«»", "「」")
)
"""Names in quotation marks; the apostrophe in `l'objet` follows a letter, that in `o'brien` precedes one."""
_PERMISSION = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?: [A-Z]{3,})*(?![A-Za-z])")
_HEAD_FINAL = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Chinese, Japanese, Korean: there the object of a column comes before the column."""


def needed(number: int, text: str) -> str:
    """Return the permission that a login lacks.

    Args:
        number: The number of the error, one of `NUMBERS`.
        text: The message of the server.
    """
    permission = _permission(text) or ("SELECT" if number in OF_ONE_OBJECT else "the permission in the message")
    return _GRANTS[number].format(permission=permission, object=_object(number, text) or "the object")


def _permission(text: str) -> str | None:
    """The permission: the words in capitals outside names, else the first name that is one."""
    without, names = text, list[str]()
    for pattern in _QUOTED:
        names += pattern.findall(without)
        without = pattern.sub("", without)
    found = _PERMISSION.search(without)
    return found[0] if found else next((name for name in names if _PERMISSION.fullmatch(name)), None)


def _object(number: int, text: str) -> str | None:
    """The object as a statement names it; None unless the message quotes exactly the names that are expected."""
    for pattern in _QUOTED:
        names = pattern.findall(text)
        if len(names) == _names(number) + 1 and _PERMISSION.fullmatch(names[0]):
            names = names[1:]  # In Russian the permission is quoted, too.
        match number, names:
            case 229, [name, _, schema]:
                return f"{quote(schema)}.{quote(name)}"
            case 230, [column, name, _, schema] if not _HEAD_FINAL.search(text):
                return f"{quote(schema)}.{quote(name)} ({quote(column)})"
            case _:
                pass
    return None


def _names(number: int) -> int:
    return 4 if number == 230 else 3
