"""Parsing and quoting of names in the parameters and results of the CDC procedures. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mssql_sandbox.cdc_messages import cdc_error

_CLOSING = {"[": "]", '"': '"'}


def split_column_list(text: str, *, procedure: str) -> list[str]:
    """The names of a comma-separated list, plain or quoted as `[a,b]` or `"a"`; doubled quotes are one quote.

    Raises:
        SqlError: 22965, a quoted name is not closed.
    """
    names: list[str] = []
    position = 0
    while position < len(text):
        while position < len(text) and (text[position].isspace() or text[position] == ","):
            position += 1
        if position >= len(text):
            break
        closing = _CLOSING.get(text[position])
        if closing is None:
            end = text.find(",", position)
            end = len(text) if end < 0 else end
            names.append(text[position:end].strip())
            position = end
        else:
            name, position = _quoted(text, position + 1, closing, procedure)
            names.append(name)
    return names


def _quoted(text: str, position: int, closing: str, procedure: str) -> tuple[str, int]:
    """The quoted name that starts at `position`, and the position after its closing quote."""
    characters: list[str] = []
    while position < len(text):
        if text[position] != closing:
            characters.append(text[position])
            position += 1
        elif text[position + 1 : position + 2] == closing:
            characters.append(closing)
            position += 2
        else:
            return "".join(characters), position + 1
    raise cdc_error(22965, procedure=procedure)


def bracket_list(names: Iterable[str]) -> str:
    """`[a], [b]` with `]` doubled, as `sp_cdc_help_change_data_capture` shows column lists."""
    return ", ".join(f"[{name.replace(']', ']]')}]" for name in names)


def equal_names(left: str, right: str) -> bool:
    """Whether two identifiers are the same under the default, case-insensitive collation."""
    return left.casefold().rstrip() == right.casefold().rstrip()
