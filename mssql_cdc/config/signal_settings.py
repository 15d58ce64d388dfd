"""Signals and notifications: the properties of `signal.*` and `notification.*`.

`signals.py` parses the signals themselves; `follow/` reads their channels, `capture/` sends notifications.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, model_validator

from mssql_cdc.config.extension_names import ExtensionGroup, require_installed
from mssql_cdc.config.property import Group, prop, section
from mssql_cdc.config.report import Report
from mssql_cdc.extensions import installed_names

SOURCE_CHANNEL, FILE_CHANNEL = "source", "file"
LOG_CHANNEL, SINK_CHANNEL = "log", "sink"

_CHANNELS = "signal.enabled.channels"
_NOTIFICATIONS = "notification.enabled.channels"


def _signal_channels(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """The channels: built-in ones in any case, others as their entry points are named."""
    report, found = Report.of(info), list[str]()
    for name in names:
        built_in = name.lower()
        if built_in in {SOURCE_CHANNEL, FILE_CHANNEL}:
            found.append(built_in)
        elif name in installed_names(ExtensionGroup.SIGNAL_CHANNELS):
            found.append(name)
        elif built_in == "jmx":
            report.notice(_CHANNELS, "jmx has no meaning here")
        elif built_in == "kafka":
            report.notice(
                _CHANNELS,
                "kafka has no effect: nothing reads Kafka here. Send signals through the signal table (source), a file "
                "(file), `mssql-cdc snapshot` or the launchpad of the asset `signals`, or install a channel of your "
                f"own as the entry point kafka in the group {ExtensionGroup.SIGNAL_CHANNELS}",
            )
        else:
            require_installed(ExtensionGroup.SIGNAL_CHANNELS, name, setting=_CHANNELS, report=report)
            found.append(name)
    return tuple(dict.fromkeys(found))


def _notification_channels(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """The same of notification channels; `sink` makes records of them."""
    report, found = Report.of(info), list[str]()
    for name in names:
        built_in = name.lower()
        if built_in == "jmx":
            report.notice(_NOTIFICATIONS, "jmx has no meaning here")
        elif built_in in {LOG_CHANNEL, SINK_CHANNEL}:
            found.append(built_in)
        else:
            require_installed(ExtensionGroup.NOTIFICATION_CHANNELS, name, setting=_NOTIFICATIONS, report=report)
            found.append(name)
    return tuple(dict.fromkeys(found))


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


@section(Group.SIGNAL)
class SignalSettings:
    """`tables`: full names `db.schema.table`; a connector with one database may leave the database out."""

    tables: tuple[str, ...] = prop("signal.data.collection", (), "SIG-02")
    """Names the signal table of each database, `db.schema.table`."""
    channels: Annotated[tuple[str, ...], AfterValidator(_signal_channels)] = prop(
        _CHANNELS, (SOURCE_CHANNEL,), "SIG-01 SIG-05 SIG-06 SIG-07"
    )
    """Selects where signals come from: `source` (the signal table), `file`, and channels of your own by the names of
    their entry points. The launchpad of the `signals` asset and `mssql-cdc snapshot` always work."""
    file: Annotated[str, AfterValidator(_absolute)] = prop("signal.file", "file-signals.txt", "SIG-06")
    """Names the file of the channel `file`: a JSON object per line, `{"id", "type", "data"}`. It is taken away as soon
    as it is found. A relative path becomes absolute at once."""
    poll_interval_ms: int = prop("signal.poll.interval.ms", 5000, "SIG-01", ge=1)
    """Sets how often in milliseconds the channels other than `source` are looked at: by `mssql-cdc run`, by a run in
    Dagster, and by the sensor (rounded up to whole seconds) while no run streams."""

    @property
    def polled(self) -> tuple[str, ...]:
        """The channels that are looked at in intervals; the signal table comes with the changes."""
        return tuple(name for name in self.channels if name != SOURCE_CHANNEL)

    def table_of(self, catalog: str) -> tuple[str, str] | None:
        """(schema, table) of the signal table in a database, or None."""
        for name in self.tables:
            found_catalog, schema, table = name.split(".", 2)
            if found_catalog.lower() == catalog.lower():
                return schema, table
        return None


@section(Group.SIGNAL)
class NotificationSettings:
    """Channels of notifications beside the asset."""

    channels: Annotated[tuple[str, ...], AfterValidator(_notification_channels)] = prop(_NOTIFICATIONS, (), "NOT-01")
    """Selects where notifications go: `log`, `sink` (records), and channels of your own by the names of their entry
    points. The `notifications` asset always has them all."""
    sink_topic: str | None = prop("notification.sink.topic.name", None, "NOT-01")
    """Names the topic of notification records; the channel `sink` requires it."""

    @model_validator(mode="after")
    def _check_sink(self, info: ValidationInfo) -> NotificationSettings:
        if SINK_CHANNEL in self.channels and not self.sink_topic:
            Report.of(info).complain("notification.sink.topic.name", "is required with the notification channel sink")
        if self.sink_topic and SINK_CHANNEL not in self.channels:
            Report.of(info).notice("notification.sink.topic.name", "no effect without the notification channel sink")
        return self
