"""The names of topics (TOP-01 to TOP-11): what a naming strategy is, and Debezium's strategies.

A user's strategy is an entry point in the group `mssql_cdc.topic_naming_strategies`. The names of fields and schemas
belong to `names.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mssql_cdc.config import Connector, reveal
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.extension_points import (
    BUILT_IN,
    DEFAULT_NAMING,
    DEFAULT_REGEX_NAMING,
    DEFAULT_UNICODE_NAMING,
    SCHEMA_UNICODE_NAMING,
)
from mssql_cdc.config.property import LONGEST_TOPIC
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import load_extension
from mssql_cdc.records.names import underscores, unicode_text
from mssql_cdc.schema import TableId

_INVALID = re.compile(r"[^A-Za-z0-9._\-]")
_NOT_UNICODE = re.compile(r"[^A-Za-z0-9.\-]")
_TOPIC = re.compile(rf"[A-Za-z0-9._\-]{{1,{LONGEST_TOPIC}}}")
_METHODS = ("configure", "data_change_topic", "schema_change_topic", "heartbeat_topic", "transaction_topic")


class TopicNamingStrategy(Protocol):
    """Names the topics of a connector, like Debezium's `io.debezium.spi.topic.TopicNamingStrategy`."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Receive the connector's properties; called once, before the other methods."""
        ...

    def data_change_topic(self, table: TableId) -> str:
        """Return the topic of a table's changes; the schema names of its records begin with it, too."""
        ...

    def schema_change_topic(self) -> str:
        """Return the topic of schema changes."""
        ...

    def heartbeat_topic(self) -> str:
        """Return the topic of heartbeats."""
        ...

    def transaction_topic(self) -> str:
        """Return the topic of transactions."""
        ...


class Topics(TopicNamingStrategy, Protocol):
    """A naming strategy as records use it: it may add a field to keys."""

    def key_field(self, table: TableId) -> tuple[str, str] | None:
        """Return the name and the value of the field that is added to a table's keys, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class DebeziumTopics:
    """Debezium's own strategies: they differ in the parts of a table's name and in what replaces characters.

    Those with `Regex` then rename topics, and add a field to keys (`config/regex_naming.py`).
    """

    connector: Connector
    with_schema: bool = True
    invalid: re.Pattern[str] = _INVALID
    replace: Callable[[str], str] = underscores

    def configure(self, properties: Mapping[str, str]) -> None:
        """Do nothing: the connector has already been read."""

    def data_change_topic(self, table: TableId) -> str:
        """Return `<prefix>.<db>.<schema>.<table>`, or without the schema, or what the regex makes of it."""
        extensions, topic = self.connector.records.extensions, self._sanitized(self._origin(table))
        return extensions.regex_naming.topic(topic) if extensions.names_by_regex else topic

    def key_field(self, table: TableId) -> tuple[str, str] | None:
        """Return the field that distinguishes the tables of one topic."""
        extensions = self.connector.records.extensions
        return extensions.regex_naming.key_field_of(self._origin(table)) if extensions.names_by_regex else None

    def schema_change_topic(self) -> str:
        """Return `<prefix>`."""
        return self.connector.topic_prefix

    def heartbeat_topic(self) -> str:
        """Return `<topic.heartbeat.prefix>.<prefix>` (TOP-04)."""
        settings = self.connector.records
        return settings.heartbeat_topic or self._joined(settings.heartbeat_topic_prefix, self.connector.topic_prefix)

    def transaction_topic(self) -> str:
        """Return `<prefix>.<topic.transaction>`."""
        return self._joined(self.connector.topic_prefix, self.connector.records.transaction_topic)

    def _origin(self, table: TableId) -> str:
        schema = table.schema if self.with_schema else ""
        return self._joined(self.connector.topic_prefix, table.catalog or "", schema, table.name)

    def _joined(self, *parts: str) -> str:
        return self.connector.records.topic_delimiter.join(part for part in parts if part.strip())

    def _sanitized(self, topic: str) -> str:
        """Replace the characters that are not valid, and truncate the topic to Kafka's limit."""
        found = self.invalid.sub(lambda match: self.replace(match.group()), topic)[:LONGEST_TOPIC]
        return found.replace(".", self.replace(".")) if found in {".", ".."} else found


@dataclass(frozen=True, slots=True)
class CheckedTopics:
    """A user's strategy; a topic that Kafka would reject is an error."""

    name: str
    strategy: TopicNamingStrategy

    def configure(self, properties: Mapping[str, str]) -> None:
        """Pass on the properties."""
        self.strategy.configure(properties)

    def data_change_topic(self, table: TableId) -> str:
        """Return the strategy's topic."""
        return self._checked(self.strategy.data_change_topic(table), f"{table}")

    def schema_change_topic(self) -> str:
        """Return the strategy's topic."""
        return self._checked(self.strategy.schema_change_topic(), "schema changes")

    def heartbeat_topic(self) -> str:
        """Return the strategy's topic."""
        return self._checked(self.strategy.heartbeat_topic(), "heartbeats")

    def transaction_topic(self) -> str:
        """Return the strategy's topic."""
        return self._checked(self.strategy.transaction_topic(), "transactions")

    def key_field(self, table: TableId) -> None:
        """Add no field: the Python contract has none."""

    def _checked(self, topic: object, of: str) -> str:
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
            raise ConfigurationError(
                f"topic.naming.strategy: {self.name} names the topic of {of} {topic!r}; expected 1 to {LONGEST_TOPIC} "
                "letters, digits, '.', '_' and '-'"
            )
        return topic


def topics_of(connector: Connector) -> Topics:
    """Return the connector's naming strategy, configured.

    Raises:
        ConfigurationError: It is not installed, or cannot be loaded.
    """
    name = connector.records.extensions.topic_naming.strip()
    if name not in BUILT_IN[ExtensionGroup.TOPIC_NAMING_STRATEGIES]:
        made: TopicNamingStrategy = load_extension(
            ExtensionGroup.TOPIC_NAMING_STRATEGIES, name, setting="topic.naming.strategy", methods=_METHODS
        )
        made.configure({key: reveal(value) for key, value in connector.properties})
        return CheckedTopics(name, made)
    with_schema = name not in {DEFAULT_NAMING, DEFAULT_UNICODE_NAMING, DEFAULT_REGEX_NAMING}
    if name in {DEFAULT_UNICODE_NAMING, SCHEMA_UNICODE_NAMING}:
        return DebeziumTopics(connector, with_schema, _NOT_UNICODE, unicode_text)
    return DebeziumTopics(connector, with_schema)
