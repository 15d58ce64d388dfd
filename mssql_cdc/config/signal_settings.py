"""Signals and notifications: the properties of `signal.*` and `notification.*`.

`signals.py` parses the signals themselves; `follow/` reads their channels, `capture/` sends notifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, model_validator

from mssql_cdc.config.extension_names import ExtensionGroup, require_installed
from mssql_cdc.config.filters import split_name
from mssql_cdc.config.property import GivenProperty, Group, members, prop, section, split, topic_name
from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret, reveal
from mssql_cdc.extensions import installed_names

SOURCE_CHANNEL, FILE_CHANNEL, KAFKA_CHANNEL = "source", "file", "kafka"
LOG_CHANNEL, SINK_CHANNEL = "log", "sink"
_JMX = "jmx"

_CHANNELS = "signal.enabled.channels"
_SERVERS = "signal.kafka.bootstrap.servers"
_GROUP, _POLL_TIMEOUT_MS = "kafka-signal", 100
_CLIENT, _EXTRA = "confluent_kafka", "pip install 'mssql-cdc[kafka]'"
_NOTIFICATIONS = "notification.enabled.channels"


def own_channels(given: Mapping[str, str]) -> Iterator[str]:
    """The channels of a configuration that are extensions: properties may begin with their names.

    Args:
        given: the configured texts by the properties' names.
    """
    installed = installed_names(ExtensionGroup.SIGNAL_CHANNELS)
    for name in split(given.get(_CHANNELS, "")):
        built_in = name.lower() in {SOURCE_CHANNEL, FILE_CHANNEL}
        if not built_in and (name in installed or name.lower() not in {KAFKA_CHANNEL, _JMX}):
            yield name
    for name in split(given.get(_NOTIFICATIONS, "")):
        if name.lower() not in {LOG_CHANNEL, SINK_CHANNEL, _JMX}:
            yield name


def _signal_channels(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """The channels: built-in names in any case, others exactly as their entry points are named."""
    report, found = Report.of(info), list[str]()
    for name in names:
        built_in = name.lower()
        if built_in in {SOURCE_CHANNEL, FILE_CHANNEL}:
            found.append(built_in)
        elif name in installed_names(ExtensionGroup.SIGNAL_CHANNELS):
            found.append(name)
        elif built_in == _JMX:
            report.notice(_CHANNELS, "jmx has no meaning here")
        elif built_in == KAFKA_CHANNEL:
            if find_spec(_CLIENT) is None:
                report.complain(_CHANNELS, f"kafka needs a client of Kafka, which is not installed: {_EXTRA}")
            found.append(built_in)
        else:
            require_installed(ExtensionGroup.SIGNAL_CHANNELS, name, setting=_CHANNELS, report=report)
            found.append(name)
    return tuple(dict.fromkeys(found))


def _notification_channels(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """The same for notification channels; `sink` turns notifications into records."""
    report, found = Report.of(info), list[str]()
    for name in names:
        built_in = name.lower()
        if built_in == _JMX:
            report.notice(_NOTIFICATIONS, "jmx has no meaning here")
        elif built_in in {LOG_CHANNEL, SINK_CHANNEL}:
            found.append(built_in)
        else:
            require_installed(ExtensionGroup.NOTIFICATION_CHANNELS, name, setting=_NOTIFICATIONS, report=report)
            found.append(name)
    return tuple(dict.fromkeys(found))


def _option(one: GivenProperty, _: Report) -> tuple[str, str | Secret]:
    return one.parts[0], one.value


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


@section(Group.SIGNAL)
class SignalSettings:
    """`tables`: full names `db.schema.table`; a connector with one database may leave the database out.

    The connector completes them, one per database, with brackets where a name has dots.
    """

    tables: tuple[str, ...] = prop("signal.data.collection", (), "SIG-02")
    """Names the signal table of each database, `db.schema.table`; put a name with dots in brackets."""
    channels: Annotated[tuple[str, ...], AfterValidator(_signal_channels)] = prop(
        _CHANNELS, (SOURCE_CHANNEL,), "SIG-01 SIG-05 SIG-06 SIG-07"
    )
    """Selects where signals come from: `source` (the signal table), `file`, `kafka`, and channels of your own by the
    names of their entry points. The launchpad of the `signals` asset and `mssql-cdc snapshot` always work."""
    file: Annotated[str, AfterValidator(_absolute)] = prop("signal.file", "file-signals.txt", "SIG-06")
    """Names the file of the channel `file`: a JSON object per line, `{"id", "type", "data"}`. It is removed as soon as
    it is found. A relative path becomes absolute on load."""
    poll_interval_ms: int = prop("signal.poll.interval.ms", 5000, "SIG-01", ge=1)
    """Sets how often in milliseconds the channels other than `source` are polled: by `mssql-cdc run`, by a run in
    Dagster, and by the sensor (rounded up to whole seconds) while no run streams."""

    kafka_servers: str | None = prop(_SERVERS, None, "SIG-05")
    """Names the brokers of the channel `kafka`, which requires it."""
    kafka_topic: Annotated[str, AfterValidator(topic_name)] | None = prop("signal.kafka.topic", None, "SIG-05")
    """Names the signal topic, by default `<topic.prefix>-signal`. Its first partition is read: messages whose key is
    `topic.prefix` and whose value is JSON, `{"id", "type", "data"}`."""
    kafka_group: str = prop("signal.kafka.groupId", _GROUP, "SIG-05")
    """Names the consumer group at whose offset the first poll begins; later polls use the lake's offset."""
    kafka_poll_timeout_ms: int = prop("signal.kafka.poll.timeout.ms", _POLL_TIMEOUT_MS, "SIG-05", ge=0)
    """Limits how many milliseconds a poll waits for the next message; the first poll waits for up to five seconds."""
    kafka_consumer: Annotated[tuple[tuple[str, str | Secret], ...], members(_option)] = prop(
        "signal.consumer.*", (), "SIG-05", late=True
    )
    """Sets a client option of the channel `kafka` by its librdkafka name."""

    @model_validator(mode="after")
    def _check_source(self, info: ValidationInfo) -> SignalSettings:
        if self.tables and SOURCE_CHANNEL not in self.channels:
            text = f"signals in it are not read, because {_CHANNELS} lacks {SOURCE_CHANNEL}"
            Report.of(info).notice("signal.data.collection", text)
        return self

    @model_validator(mode="after")
    def _check_kafka(self, info: ValidationInfo) -> SignalSettings:
        named = dict(self.kafka_consumer)
        servers = self.kafka_servers or named.get("bootstrap.servers")
        if self.reads_kafka and not servers:
            Report.of(info).complain(_SERVERS, "is required with the signal channel kafka")
        if not self.reads_kafka:
            given = {
                _SERVERS: self.kafka_servers,
                "signal.kafka.topic": self.kafka_topic,
                "signal.kafka.groupId": self.kafka_group != _GROUP,
                "signal.kafka.poll.timeout.ms": self.kafka_poll_timeout_ms != _POLL_TIMEOUT_MS,
                **{f"signal.consumer.{name}": True for name in named},
            }
            for name in (name for name, is_given in given.items() if is_given):
                Report.of(info).notice(name, "no effect without the signal channel kafka")
        return self

    @property
    def reads_kafka(self) -> bool:
        """Whether the built-in channel `kafka` is enabled; an entry point of this name takes its place."""
        return KAFKA_CHANNEL in self.channels and KAFKA_CHANNEL not in installed_names(ExtensionGroup.SIGNAL_CHANNELS)

    def kafka_settings(self) -> dict[str, str]:
        """The settings of the client, with references resolved now (raises MissingSecretError)."""
        given = {"group.id": self.kafka_group} | {name: reveal(value) for name, value in self.kafka_consumer}
        return ({"bootstrap.servers": self.kafka_servers} if self.kafka_servers else {}) | given

    @property
    def polled(self) -> tuple[str, ...]:
        """The channels that are polled at intervals; the signal table arrives with the changes."""
        return tuple(name for name in self.channels if name != SOURCE_CHANNEL)

    def table_of(self, catalog: str) -> tuple[str, str] | None:
        """(schema, table) of the signal table in a database, or None."""
        for name in self.tables:
            found_catalog, schema, table = split_name(name)
            if found_catalog.lower() == catalog.lower():
                return schema, table
        return None


@section(Group.SIGNAL)
class NotificationSettings:
    """Channels of notifications in addition to the asset."""

    channels: Annotated[tuple[str, ...], AfterValidator(_notification_channels)] = prop(_NOTIFICATIONS, (), "NOT-01")
    """Selects where notifications go: `log`, `sink` (records), and channels of your own by the names of their entry
    points. The `notifications` asset always has them all."""
    sink_topic: Annotated[str, AfterValidator(topic_name)] | None = prop("notification.sink.topic.name", None, "NOT-01")
    """Names the topic of notification records; the channel `sink` requires it."""

    @model_validator(mode="after")
    def _check_sink(self, info: ValidationInfo) -> NotificationSettings:
        if SINK_CHANNEL in self.channels and not self.sink_topic:
            Report.of(info).complain("notification.sink.topic.name", "is required with the notification channel sink")
        if self.sink_topic and SINK_CHANNEL not in self.channels:
            Report.of(info).notice("notification.sink.topic.name", "no effect without the notification channel sink")
        return self
