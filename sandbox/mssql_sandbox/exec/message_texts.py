"""Message texts with placeholders, as RAISERROR and FORMATMESSAGE fill them."""

from __future__ import annotations

import re
from typing import Any

from mssql_sandbox.errors import error

_PLACE = re.compile(
    r"%(?P<flags>[-+0 #]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?(?:h|l|I64)?(?P<kind>[diosuxX%])"
)


def formatted(template: str, arguments: list[Any]) -> str:
    """A RAISERROR message, filled as by printf; 2786 for text as %d and a number as %s."""
    left = list(arguments)

    def fill(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        width = left.pop(0) if match["width"] == "*" and left else match["width"]
        precision = left.pop(0) if match["precision"] == "*" and left else match["precision"]
        if not left:
            return "(null)"
        value = left.pop(0)
        if value is None:
            return "(null)"
        shown = f"%{match['flags']}{width or ''}{'.' + str(precision) if precision is not None else ''}"
        ordinal = len(arguments) - len(left)
        if (kind == "s") != isinstance(value, str):
            raise error(2786, ordinal=ordinal)
        if kind == "s":
            return (shown + "s") % value
        return (shown + ("d" if kind in "diu" else kind)) % int(value)

    return _PLACE.sub(fill, template)
