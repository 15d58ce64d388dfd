"""The options of Debezium's naming strategies with `Regex`: they route the tables that match to one topic (TOP-11).

As in Debezium 3.3.1, a topic is matched as it would be without them, but the field that they add to keys is derived
from the table's name before characters are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_cdc.config.java_regex import JavaReplacement, java_pattern
from mssql_cdc.config.property import Group, prop, properties_of, section

PHYSICAL_TABLE = "__dbz__physicalTableIdentifier"


@section(Group.RECORD)
class RegexNaming:
    """How topics are renamed, and the field that keeps keys distinct."""

    regex: str | None = prop("topic.regex", None, "TOP-11")
    """Matches whole topics as a Java regular expression; a table that does not match keeps its topic. Required by the
    naming strategies with `Regex`."""
    replacement: str | None = prop("topic.replacement", None, "TOP-11")
    """Forms the new topic; `$1` and `${name}` stand for groups. Required by the naming strategies with `Regex`."""
    unique_keys: bool = prop("topic.key.enforce.uniqueness", True, "TOP-11")
    """Adds a field to each key that distinguishes the tables of a topic. The naming strategies with `Regex` read it."""
    key_field: str = prop("topic.key.field.name", PHYSICAL_TABLE, "TOP-11")
    """Names the field that naming strategies with `Regex` add to keys."""
    key_regex: str | None = prop("topic.key.field.regex", None, "TOP-11")
    """Matches a table's topic as it would be without these options, before characters are replaced. The field in keys
    has that topic, or what `topic.key.field.replacement` turns it into."""
    key_replacement: str | None = prop("topic.key.field.replacement", None, "TOP-11")
    """Forms the value of the field in keys; `$1` and `${name}` stand for groups."""

    def topic(self, origin: str) -> str:
        """Return the topic of a table whose topic would be `origin` without these options."""
        return self._topic.apply(origin) or origin

    def key_field_of(self, origin: str) -> tuple[str, str] | None:
        """Return the name and the value of the field that is added to a table's keys.

        Args:
            origin: What the table's topic would be without these options, before characters are replaced.
        """
        if not self.unique_keys:
            return None
        found = self._key.apply(origin) if _given(self.key_regex) else None
        return self.key_field, origin if found is None else found

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each property that is missing or not valid, and why."""
        if not _given(self.regex):
            yield "topic.regex", "is required by topic.naming.strategy: the expression that topics must match"
        if not _given(self.replacement):
            yield "topic.replacement", "is required by topic.naming.strategy: what takes the place of a topic"
        if _given(self.regex) and _given(self.replacement):
            yield from _invalid(self._topic, "topic.regex", "topic.replacement")
        if _given(self.key_regex) and not _given(self.key_replacement):
            yield "topic.key.field.replacement", "must be non-empty if topic.key.field.regex is set"
        elif _given(self.key_regex):
            yield from _invalid(self._key, "topic.key.field.regex", "topic.key.field.replacement")

    def unread(self, *, is_used: bool) -> Iterator[tuple[str, str]]:
        """Yield each property that is set and not read, and what it needs.

        Args:
            is_used: Whether the naming strategy is one of those with `Regex`.
        """
        for one in properties_of(RegexNaming):
            if getattr(self, one.path[-1]) == one.default:
                continue
            if not is_used:
                yield one.name, "only the naming strategies with Regex read it"
            elif one.name.startswith("topic.key.field.") and not self.unique_keys:
                yield one.name, "nothing reads it with topic.key.enforce.uniqueness=false"
            elif one.name == "topic.key.field.replacement" and not _given(self.key_regex):
                yield one.name, "nothing reads it without topic.key.field.regex"

    @property
    def _topic(self) -> JavaReplacement:
        return JavaReplacement(self.regex or "", self.replacement or "")

    @property
    def _key(self) -> JavaReplacement:
        return JavaReplacement(self.key_regex or "", self.key_replacement or "")


def _given(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def _invalid(one: JavaReplacement, regex: str, replacement: str) -> Iterator[tuple[str, str]]:
    try:
        java_pattern(one.expression)
    except ValueError as error:
        yield regex, str(error)
        return
    try:
        one.check()
    except ValueError as error:
        yield replacement, str(error)
