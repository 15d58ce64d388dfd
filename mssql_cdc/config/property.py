"""What one property is: the value type of the property table, and how its text becomes a value.

The table itself is in the `catalogue_*` modules, its checks across properties in `resolve.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.secret import Secret

Kind = Literal["text", "bool", "int", "choice", "choices", "list", "regexes", "secret"]


class Status(Enum):
    """What this project does with a property."""

    IMPLEMENTED = "implemented"
    ACCEPTED = "accepted"  # has no meaning outside Kafka or Java: one line of notice
    PLANNED = "known, not implemented yet"  # ignoring it changes no row: one line of notice
    REFUSED = "known, not implemented yet (refused)"  # ignoring it would change rows: an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One row of the property table.

    `name` may hold placeholders (`column.mask.with.<n>.chars`) or end in `*` (a family). `default` is text as in a
    Debezium configuration. `refused` are the choices that are known but not implemented yet, `planned` those which
    are ignored with a notice; `aliases` are older names, `old_values` older spellings of a choice.
    """

    name: str
    kind: Kind
    text: str
    default: str | None = None
    features: tuple[str, ...] = ()
    status: Status = Status.IMPLEMENTED
    choices: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    shape: str | None = None
    required: bool = False
    aliases: tuple[str, ...] = ()
    old_values: tuple[tuple[str, str], ...] = ()

    @property
    def is_family(self) -> bool:
        """Whether the name stands for many."""
        return "<" in self.name or self.name.endswith("*")

    def family_expression(self) -> re.Pattern[str]:
        """A family's name as an expression; every placeholder is a group."""
        text = re.escape(self.name)
        text = re.sub(r"<\w+>", "(.+)", text)
        return re.compile(re.sub(r"\\\*$", "(.+)", text))

    @property
    def fixed_length(self) -> int:
        """How many characters of the name are fixed: the more, the better a family fits."""
        return len(re.sub(r"<\w+>|\*$", "", self.name))

    def parse(self, text: str) -> Any:
        """The value of the text: str, bool, int, tuple of str, PatternList or Secret.

        Raises:
            ValueError: saying what was found and what was expected (never repeating a secret).
        """
        match self.kind:
            case "bool":
                return _parse_bool(text)
            case "int":
                return _parse_int(text, self.minimum, self.maximum)
            case "choice":
                return self._choice(text)
            case "choices":
                return tuple(self._choice(one) for one in _split(text))
            case "list":
                return _split(text)
            case "regexes":
                patterns = PatternList(text)
                _ = patterns.expressions
                return patterns
            case "secret":
                return Secret(text)
            case _:
                return self._text(text)

    def _choice(self, text: str) -> str:
        value = text.strip().lower()
        value = dict(self.old_values).get(value, value)
        if value in self.refused:
            raise ValueError(f"{value!r} is known, not implemented yet; use {_either(self._usable())}")
        if value not in self.choices:
            raise ValueError(f"found {text!r}, expected {_either(self._usable())}")
        return value

    def _usable(self) -> tuple[str, ...]:
        return tuple(one for one in self.choices if one not in self.refused)

    def _text(self, text: str) -> str:
        if self.shape is not None and not re.fullmatch(self.shape, text):
            raise ValueError(f"found {text!r}, expected something that matches {self.shape}")
        return text


def _parse_bool(text: str) -> bool:
    value = text.strip().lower()
    if value not in {"true", "false"}:
        raise ValueError(f"found {text!r}, expected true or false")
    return value == "true"


def _parse_int(text: str, minimum: int | None, maximum: int | None) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise ValueError(f"found {text!r}, expected a whole number")
    value = int(text)
    if minimum is not None and value < minimum:
        raise ValueError(f"found {value}, expected {minimum} or more")
    if maximum is not None and value > maximum:
        raise ValueError(f"found {value}, expected {maximum} or less")
    return value


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in (raw.strip() for raw in text.split(",")) if part)


def _either(values: Sequence[str]) -> str:
    return " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)
