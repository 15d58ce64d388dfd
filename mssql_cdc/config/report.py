"""Findings while a configuration is read: problems, notices, settings with which no records are rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationInfo

NO_MEANING = "Kafka and Java settings have no meaning here"
"""The notice about all properties without meaning in the groups that belong to Kafka and Java."""
_BEFORE_SALT = (r"(?i)(salt\.).+", r"(?i)(mask\.hash\..*?\.with\.).+", r"(?i)(mask\.hash\.(?:v2\.)?[^.]+\.).+")
"""What precedes a salt in the name of a property, the best match first."""
_UNRENDERED = "records are not rendered with these settings; capture works"


@dataclass(frozen=True, slots=True)
class Report:
    """Findings while a configuration is read: problems make it fail, notices are shown.

    `problems` are pairs of a property and what is wrong, `notices` of a property and what it does not do. `unrendered`
    lists the properties with which no records are rendered because they would differ from those that consumers expect,
    `ineffective` those that have no effect in combination with the others, with the reason.
    """

    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notices: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    unrendered: list[str] = field(default_factory=list[str])
    ineffective: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @classmethod
    def of(cls, info: ValidationInfo) -> Report:
        """The report of the configuration that is being read; a new one when code creates the values."""
        return info.context if isinstance(info.context, Report) else cls()

    def complain(self, name: str, problem: str) -> None:
        """Note a problem with a property."""
        self.problems.append((shown_name(name), problem))

    def notice(self, name: str, text: str) -> None:
        """Note what a property does not do."""
        self.notices.append((shown_name(name), text))

    def refuse_records(self, name: str) -> None:
        """Note a property that changes the records that consumers receive, in a way that is not implemented."""
        if name not in self.unrendered:
            self.unrendered.append(name)

    def lines(self) -> tuple[str, ...]:
        """The notices: one line for all properties with the same text."""
        names: dict[str, list[str]] = {}
        for name, text in self.notices:
            names.setdefault(text, []).append(name)
        if self.unrendered:
            names[_UNRENDERED] = self.unrendered
        return (*(_line(text, listed) for text, listed in names.items()), *self._ineffective_line())

    def _ineffective_line(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        for name, why in self.ineffective:
            reasons.setdefault(why, []).append(name)
        if len(self.ineffective) == 1:
            yield "{} has no effect {}".format(*self.ineffective[0])
        elif reasons:
            listed = "; ".join(f"{', '.join(names)} {why}" for why, names in reasons.items())
            yield f"{len(self.ineffective)} settings have no effect in this configuration: {listed}"


def _line(text: str, names: Sequence[str]) -> str:
    if text == NO_MEANING:
        return f"{len(names)} {NO_MEANING}: {', '.join(names)}" if len(names) > 1 else f"{names[0]} has no meaning here"
    return f"{', '.join(names)}: {text}"


def shown_name(name: str) -> str:
    """A property's name as it may be shown: without the salt of a mask, even if another part is misspelled."""
    shown = name
    for before_salt in _BEFORE_SALT:
        if (shown := re.sub(before_salt, r"\1***", name)) != name:
            break
    return shown
