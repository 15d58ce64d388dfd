"""What a conformance run is made of: scripts at the source, readings of them, and the workloads that are judged.

A script is T-SQL on tables of its own. A reading is one configuration that both connectors get. A course runs its
scripts once, in databases of its own, while its readings read; a workload is one script under one reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from mssql_cdc_tests.conformance.debezium import ORACLE

Verdict = Literal["equal", "listed", "different"]
SCHEMAS: dict[str, str] = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
"""Kafka Connect's JSON converter with its defaults: schemas, and defaults instead of null."""
NO_SCHEMAS: dict[str, str] = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
NULLS: dict[str, str] = {
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
}


class Wait(Enum):
    """Pauses of a script."""

    CAPTURED = "until everything so far is captured"
    READ = "until both connectors have read everything so far; only where all readings are live"
    RESTART = "as READ; then Debezium is started again"


WAIT, READ, RESTART = Wait.CAPTURED, Wait.READ, Wait.RESTART
Step = str | Wait


def captured(table: str, *, schema: str = "dbo", **more: str) -> str:
    """Return T-SQL that enables capture of a table.

    Args:
        table: Its name.
        schema: Its schema.
        more: Further arguments, as T-SQL texts.
    """
    arguments = "".join(f", @{name} = {value}" for name, value in more.items())
    quoted = table.replace("'", "''")
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = N'{schema}', @source_name = N'{quoted}', @role_name = NULL, "
        f"@supports_net_changes = 0{arguments}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A test's idea in T-SQL.

    Attributes:
        name: its name, which is also part of its tables' names.
        group: what it is about.
        restates: the Debezium test whose idea it has.
        tables: `schema.table` of its tables; their records are its records.
        setup: batches before the snapshots.
        changes: batches after them, and pauses.
        readings: the readings under which it is judged; empty: all of its course.
        expected: ids of the deliberate differences that it shows, by reading; `*` stands for every reading.
        silent: the readings under which it has no records.
        features: ids of the behaviors that it shows, for the feature index.
        database: its database, where the course has several.
    """

    name: str
    group: str
    restates: str
    tables: tuple[str, ...]
    setup: tuple[str, ...]
    changes: tuple[Step, ...] = ()
    readings: tuple[str, ...] = ()
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    silent: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    database: int = 0

    def expects(self, reading: str) -> tuple[str, ...]:
        """Return the ids of the differences that it shows under a reading."""
        return (*self.expected.get("*", ()), *self.expected.get(reading, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One configuration, for both connectors.

    Attributes:
        name: its name.
        properties: what it has beyond those of its course.
        theirs: properties that Debezium alone gets: how it pages, which changes no record.
        is_live: Debezium runs while the scripts' changes happen; otherwise it stops after its snapshot and goes on
            when they are done, which costs the machine less.
        version: Debezium's version.
        is_ours: whether this connector reads as well; otherwise the reading only shows what Debezium does.
        expected: ids of the deliberate differences that every workload of it shows.
        features: ids of the behaviors that it shows, for the feature index.
    """

    name: str
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    theirs: Mapping[str, str] = field(default_factory=dict[str, str])
    is_live: bool = False
    version: str = ORACLE
    is_ours: bool = True
    expected: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Scripts that run once, and their readings.

    Attributes:
        name: its name.
        databases: its own databases.
        scripts: what happens in them.
        readings: who reads.
        properties: what all readings have.
        collation: that of its databases; None: the server's.
        is_ordered: whether the order of the records of all tables is judged as well.
        ours_ends_with: the exit code of this connector when it has read all that it can.
        streams: whether its readings stream behind their snapshots; otherwise its scripts change nothing.
    """

    name: str
    databases: tuple[str, ...]
    scripts: Sequence[Script]
    readings: Sequence[Reading]
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    collation: str | None = None
    is_ordered: bool = True
    ours_ends_with: int = 0
    streams: bool = True

    def workloads(self) -> list[Workload]:
        """Return its workloads, by reading."""
        return [
            Workload(self, script, reading)
            for reading in self.readings
            for script in self.scripts
            if reading.is_ours and (not script.readings or reading.name in script.readings)
        ]


@dataclass(frozen=True, slots=True)
class Workload:
    """One script under one reading."""

    course: Course
    script: Script
    reading: Reading

    @property
    def name(self) -> str:
        """Its name: course, script and reading."""
        return f"{self.course.name}/{self.script.name}/{self.reading.name}"

    @property
    def expected(self) -> tuple[str, ...]:
        """Return the ids of the differences that it shows."""
        return (*self.reading.expected, *self.script.expects(self.reading.name))


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on a workload, with the differences that were found (none if it is equal or listed)."""

    workload: str
    group: str
    restates: str
    verdict: Verdict
    records: int
    shown: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
