"""The conditions that log lines report, each with a level and a stable code.

A line belongs to the first condition one of whose pieces it contains. Every other line reports progress, has level
INFO, and has no code. The lines are written where the conditions are detected; docs/records.md shows this table.
"""

from __future__ import annotations

from dataclasses import dataclass

LOGGER = "mssql_cdc"
"""The logger for what Debezium does not log."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition.

    Attributes:
        code: Its name.
        level: Its severity: INFO, WARN or ERROR, the same as in Debezium where Debezium logs the same.
        meaning: What it means, for the documentation.
        says: Pieces of the lines that report it; none: the caller that logs it gives its code.
        logger: The class that logs the same in Debezium, so that rules about loggers keep working.
    """

    code: str
    level: str
    meaning: str
    says: tuple[str, ...] = ()
    logger: str = LOGGER


PROPERTY_NOTICE = "property-notice"
ENDED, ENDED_BY_FORCE = "ended", "ended-by-force"
CONDITIONS = (
    Condition(PROPERTY_NOTICE, "WARN", "properties that have no effect, or another one than in Debezium"),
    Condition(
        "property-without-object",
        "WARN",
        "a property names something that does not exist",
        ("has no captured table of this name", "its heartbeats reach no change log"),
    ),
    Condition(
        "guardrail-exceeded",
        "WARN",
        "more captured tables than `guardrail.collections.max` allows",
        ("Guardrail limit exceeded",),
        logger="io.debezium.config.CommonConnectorConfig",
    ),
    Condition(
        "no-captured-tables",
        "WARN",
        "no table is enabled for CDC, or the filters leave none",
        ("has no table enabled for CDC", "captures no table: ", "no changes will be captured"),
        logger="io.debezium.relational.RelationalDatabaseSchema",
    ),
    Condition(
        "table-not-readable",
        "WARN",
        "a captured table that the login cannot see, or that cannot be read",
        (" that the login cannot see (", " cannot be captured: "),
    ),
    Condition(
        "agent-not-running",
        "ERROR",
        "SQL Server Agent is stopped, so nothing is captured",
        ("Agent is not running",),
        logger="io.debezium.connector.sqlserver.SqlServerStreamingChangeEventSource",
    ),
    Condition(
        "capture-stalled",
        "WARN",
        "capture has not scanned the log for a while",
        ("check its capture job", "check that SQL Server Agent is running"),
    ),
    Condition("doubtful-column", "WARN", "a column whose values CDC may spoil", ("; CDC may corrupt",)),
    Condition(
        "partitions-switched",
        "WARN",
        "a partitioned table may lose or gain rows that CDC does not capture",
        ("allows ALTER TABLE … SWITCH",),
    ),
    Condition("column-not-masked", "WARN", "a mask names a non-text column", ("matches it; only text is. Its values",)),
    Condition(
        "column-continued",
        "WARN",
        "a type changed to one that its Delta column cannot be widened to",
        ("It continues in the Delta column",),
    ),
    Condition(
        "capture-instance-read",
        "INFO",
        "a capture instance that another one has followed is read to its end",
        ("is read to its end; it may be dropped",),
    ),
    Condition(
        "streaming-disabled",
        "INFO",
        "`snapshot.mode` streams no changes: the connector ends after its snapshot",
        ("Streaming is disabled for snapshot mode",),
        logger="io.debezium.connector.sqlserver.SqlServerStreamingChangeEventSource",
    ),
    Condition("schema-history-rebuilt", "WARN", "a lost schema history was rebuilt", ("was rebuilt from the source",)),
    Condition(
        "changes-lost",
        "ERROR",
        "changes are missing at the source; a blocking snapshot repairs it",
        (" are lost: ", "CDC cleanup removed changes", "CDC is no longer enabled on it", "its oldest capture instance"),
    ),
    Condition(
        "source-restored", "ERROR", "the source was restored or failed over", ("the source was restored or failed",)
    ),
    Condition(
        "processing-failed",
        "WARN",
        "a change left out of the records (`event.processing.failure.handling.mode=warn`)",
        ("; its records are left out",),
        logger="io.debezium.pipeline.EventDispatcher",
    ),
    Condition(
        "reselect-disabled",
        "WARN",
        "ReselectColumns has nothing to look for",
        ("nothing is read again",),
        logger="io.debezium.processors.reselect.ReselectColumnsPostProcessor",
    ),
    Condition(
        "reselect-failed",
        "WARN",
        "ReselectColumns could not query the source",
        ("Failed to re-select columns",),
        logger="io.debezium.processors.reselect.ReselectColumnsPostProcessor",
    ),
    Condition(
        "reselect-row-missing",
        "WARN",
        "ReselectColumns found no such row",
        ("Failed to find row in table",),
        logger="io.debezium.processors.reselect.ReselectColumnsPostProcessor",
    ),
    Condition(
        "signal-ignored",
        "WARN",
        "a signal is not understood, or refused",
        (" is ignored: ",),
        logger="io.debezium.pipeline.signal.SignalProcessor",
    ),
    Condition(
        "signal-log",
        "INFO",
        "the message of a signal of type `log`",
        (" (log): ",),
        logger="io.debezium.pipeline.signal.actions.Log",
    ),
    Condition("channel-failed", "WARN", "a channel of signals cannot be read", ("; it is tried again",)),
    Condition("sink-failed", "ERROR", "a channel of notifications failed", ("notification channel ",)),
    Condition(
        "notification",
        "INFO",
        "a notification (channel `log`)",
        ("[Notification Service]",),
        logger="io.debezium.pipeline.notification.channels.LogNotificationChannel",
    ),
    Condition("snapshot-given-up", "ERROR", "a requested snapshot failed", ("the requested snapshot is given up",)),
    Condition(
        "snapshot-not-filtered",
        "WARN",
        "a requested snapshot reads the whole table",
        ("read in full without the signal's filter",),
    ),
    Condition(
        "table-failed",
        "ERROR",
        "a table could not be read or written; the others continue",
        (" failed: ", "failed and will be retried: "),
    ),
    Condition(
        "database-left-out",
        "ERROR",
        "one of several databases cannot be followed at the moment",
        ("is left out for a minute",),
    ),
    Condition("overtaken", "WARN", "another process writes to the same lake", ("; surveying again",)),
    Condition(
        "retry",
        "WARN",
        "the source did not answer; the event `retry` says the same",
        ("; retry ",),
        logger="io.debezium.pipeline.ErrorHandler",
    ),
    Condition(
        "unsafe-storage",
        "WARN",
        "restores or rival writers could go unnoticed",
        ("recovery fork: a restore", "safely from one driver only", "may not create files atomically"),
    ),
    Condition("command-refused", "WARN", "a line of standard input is not a command", ("A command was refused",)),
    Condition("reader-gone", "WARN", "standard output was closed", ("The reader of the records has gone",)),
    Condition(ENDED, "INFO", "SIGTERM has ended the process; the message says within how many seconds"),
    Condition(ENDED_BY_FORCE, "INFO", "the process did not end by itself in time and was killed; nothing is lost"),
)


def condition_of(line: str) -> Condition | None:
    """Return the condition that a line reports; None: it reports progress."""
    return next((one for one in CONDITIONS if any(piece in line for piece in one.says)), None)


def condition_named(code: str) -> Condition:
    """Return the condition with this code."""
    return next(one for one in CONDITIONS if one.code == code)
