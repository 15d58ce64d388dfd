"""Runs courses: the real Debezium and this connector read the same scripts at one stand-in server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mssql_sandbox.process import SandboxProcess

from mssql_cdc.cli import main
from mssql_cdc.config.catalogue import ALL
from mssql_cdc_tests.conformance.compare import is_heartbeat, payload, plain, row_change
from mssql_cdc_tests.conformance.debezium import DebeziumEngine, DebeziumMachine, Record
from mssql_cdc_tests.conformance.source import FENCE, LAST_INSERT, LAST_UPDATE, WAIT_SECONDS, Source
from mssql_cdc_tests.conformance.workload import Course, Reading, Script

Records = list[dict[str, Any]]
_RENDERED = {one.name for one in ALL if one.path[:2] == ("connector", "records")} | {"heartbeat.interval.ms"}
"""Properties that change records only: readings that differ in nothing else share what this connector captured."""


@dataclass(frozen=True, slots=True)
class Stream:
    """All records of one reading, in order."""

    records: Records

    def of(self, script: Script, database: str) -> Records:
        """Return the records of a script's tables, and those of their transactions."""
        mine = {f"{database}.{table}" for table in script.tables}
        topics: dict[str, str] = {}
        commits: dict[tuple[str, str], str] = {}
        for record in self.records:
            if (table := table_of(record)) is not None:
                topics.setdefault(record["topic"], table)
                commits.setdefault((_database(record), _commit_of(record)), table)
        here = (record for record in self.records if _database(record) == database)
        return [record for record in here if _owner(record, topics, commits) in mine]

    def places(self) -> list[tuple[Any, ...]]:
        """Return where each change stands: the order of all tables' records, without those that end the stream."""
        found = []
        for record in self.records:
            change = row_change(record["topic"], record["value"])
            if change is not None and table_of(record) != f"{change['source']['db']}.{FENCE}":
                source = change["source"]
                found.append((record["topic"], change["op"], source["commit_lsn"], source["change_lsn"]))
        return found


def table_of(record: Mapping[str, Any]) -> str | None:
    """Return `database.schema.table` of a data record or a schema change; None if it belongs to no table."""
    value, change = payload(record["value"]), row_change(record["topic"], record["value"])
    if change is not None:
        source = change["source"]
        return f"{source['db']}.{source['schema']}.{source['table']}"
    if isinstance(value, dict) and "tableChanges" in value:
        return (
            ".".join(re.findall(r'"((?:[^"]|"")*)"', value["tableChanges"][0]["id"])) if value["tableChanges"] else None
        )
    return None


def _commit_of(record: Mapping[str, Any]) -> str:
    change = row_change(record["topic"], record["value"])
    return (payload(record["value"]) if change is None else change)["source"]["commit_lsn"]


def _database(record: Mapping[str, Any]) -> str:
    return record["sourcePartition"]["database"]


def _owner(record: Mapping[str, Any], topics: Mapping[str, str], commits: Mapping[tuple[str, str], str]) -> str | None:
    value = payload(record["value"])
    if isinstance(value, dict) and "status" in value and "event_count" in value:
        return commits.get((_database(record), value["id"]))
    return table_of(record) if value is not None else topics.get(record["topic"])


@dataclass(frozen=True, slots=True)
class Seen:
    """The streams of a course's readings by name."""

    theirs: Mapping[str, Stream]
    ours: Mapping[str, Stream]


@dataclass
class Bench:
    """A running server, one JVM for each version of Debezium, and a folder for the connectors' state."""

    server: SandboxProcess
    folder: Path
    say: Callable[[str], None] = lambda _: None
    _machines: dict[str, DebeziumMachine] = field(default_factory=dict[str, DebeziumMachine])
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, course: Course) -> Seen:
        """Run a course."""
        return _Run(self, course, Source(self.server, course.databases)).walk()

    def machine(self, version: str) -> DebeziumMachine:
        """Return the JVM of a version; it is started when it is first needed."""
        if version not in self._machines:
            self._machines[version] = self._stack.enter_context(DebeziumMachine(self.folder / version, version))
        return self._machines[version]


@dataclass
class _Run:
    bench: Bench
    course: Course
    source: Source
    theirs: dict[str, Records] = field(default_factory=dict[str, Records])

    def walk(self) -> Seen:
        course = self.course
        stopped = [one for one in course.readings if not one.is_live]
        ours = [one for one in course.readings if one.is_ours]
        self.source.create(course.collation)
        self._scripts(lambda script: script.setup)
        for database in course.databases:
            self.source.wait_for_capture(database)
        with self._told("snapshots of Debezium"):
            for reading in stopped:
                self._read(reading, self._is_snapshot_complete)
        with self._told("snapshots of mssql_cdc"):
            self._capture(ours)
        if course.streams:
            self._stream(stopped, ours)
        with self._told("records of mssql_cdc"):
            own = {one.name: Stream(self._records(one)) for one in ours}
        for name, found in self.theirs.items():
            lines = (json.dumps(record, ensure_ascii=False) for record in found)
            self._file(f"{name}.debezium.jsonl").write_text("\n".join(lines), encoding="utf-8")
        return Seen({name: Stream(found) for name, found in self.theirs.items()}, own)

    def _stream(self, stopped: Sequence[Reading], ours: Sequence[Reading]) -> None:
        """Let the scripts change rows, and both connectors read the changes."""
        course = self.course
        with ExitStack() as stack:
            live = [one for one in course.readings if one.is_live]
            engines = {one.name: stack.enter_context(self._engine(one)) for one in live}
            for engine in engines.values():
                engine.wait_until(self._is_snapshot_complete, timeout=WAIT_SECONDS)
            with self._told("scripts"):
                self._scripts(lambda script: script.changes, read=partial(self._let_read, engines, ours))
                self.source.finish()
            for reading in live:
                found = engines[reading.name].wait_until(self._end_of(reading), timeout=WAIT_SECONDS)
                self.theirs[reading.name] = [plain(one) for one in found]
        with self._told("streams of Debezium"):
            for reading in stopped:
                self._read(reading, self._end_of(reading))
        with self._told("streams of mssql_cdc"):
            self._capture(ours)

    def _scripts(self, steps: Callable[[Script], Sequence[Any]], read: Callable[[bool], None] | None = None) -> None:
        for script in self.course.scripts:
            self.source.walk(steps(script), database=self.course.databases[script.database], read=read)

    def _let_read(
        self,
        engines: Mapping[str, DebeziumEngine],
        ours: Iterable[Reading],
        restarts: bool,  # noqa: FBT001 (a callback)
    ) -> None:
        """Let both connectors read everything so far; start Debezium again if wanted (ours ends by itself)."""
        sign = self.source.sign()
        for engine in engines.values():
            engine.wait_until(lambda found: any(_shows(one, sign) for one in found), timeout=WAIT_SECONDS)
        if restarts:
            # All stop before any starts: engines of one name in one JVM share what the last to stop removes.
            for engine in engines.values():
                engine.__exit__(None, None, None)
            for engine in engines.values():
                engine.__enter__()
        self._capture(ours)

    def _is_snapshot_complete(self, records: list[Record]) -> bool:
        """Whether every database's snapshot has ended; its last record says so, or the heartbeat behind it."""
        done = {
            one.source_partition["database"]
            for one in records
            if one.source_offset.get("snapshot_completed") is True or is_heartbeat({"key": one.key})
        }
        return len(done) == len(self.course.databases)

    def _end_of(self, reading: Reading) -> Callable[[list[Record]], bool]:
        """Return a function that says whether the last row that a reading shows has arrived from every database."""
        skipped = {**self.course.properties, **reading.properties}.get("skipped.operations", "")
        last = LAST_UPDATE if "c" in skipped.split(",") else LAST_INSERT

        def is_over(records: list[Record]) -> bool:
            ends = {one.source_partition["database"] for one in records if _shows(one, last)}
            return len(ends) == len(self.course.databases)

        return is_over

    def _read(self, reading: Reading, is_done: Callable[[list[Record]], bool]) -> None:
        """Let Debezium read until it has come so far; it goes on where it stopped the last time."""
        with self._engine(reading) as engine:
            found = engine.wait_until(is_done, timeout=WAIT_SECONDS)
        self.theirs.setdefault(reading.name, []).extend(plain(record) for record in found)

    def _engine(self, reading: Reading) -> DebeziumEngine:
        properties = {**self._properties(reading), **reading.theirs, "name": reading.name}
        folder = self.bench.folder / self.course.name / f"debezium-{re.sub('[^A-Za-z0-9.]', '-', reading.name)}"
        return DebeziumEngine(self.bench.machine(reading.version), properties, folder)

    def _properties(self, reading: Reading) -> dict[str, str]:
        """The properties of both connectors."""
        server = self.bench.server
        return {
            "topic.prefix": "server1",
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.names": ",".join(self.course.databases),
            "driver.encrypt": "false",
            **({} if "table.include.list" in reading.properties else {"table.exclude.list": r"dbo\.marker"}),
            **self.course.properties,
            **reading.properties,
        }

    def _capture(self, readings: Iterable[Reading]) -> None:
        """Run this connector until it has caught up, once for all readings that differ only in their records."""
        done: set[str] = set()
        for reading in readings:
            lake = self._lake(reading)
            if lake not in done:
                done.add(lake)
                self._command(reading, "run", "--until-caught-up", "--timeout", str(WAIT_SECONDS))

    def _records(self, reading: Reading) -> Records:
        """The records that this connector renders."""
        output = self._file(f"{reading.name}.jsonl")
        self._command(reading, "records", "--output", str(output))
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    def _lake(self, reading: Reading) -> str:
        """The name of the first reading that captures the same."""
        own = _captured(reading.properties)
        return next(one.name for one in self.course.readings if one.is_ours and _captured(one.properties) == own)

    def _command(self, reading: Reading, command: str, *options: str) -> None:
        config = self._file(f"{reading.name}.json")
        told = self._properties(reading) | {
            "delta.warehouse": str(self._file(f"lake-{self._lake(reading)}")),
            # Debezium reads no rows when a capture instance adds columns.
            "incremental.snapshot.added.columns": "false",
        }
        config.write_text(json.dumps(told))
        code = main([command, "--config", str(config), "--debug", *options])
        accepted = {0, self.course.ours_ends_with} if command == "run" else {0}
        assert code in accepted, f"{command} ({reading.name}) ended with {code}; the reason stands on stderr"

    def _file(self, name: str) -> Path:
        """A file or folder of the course."""
        folder = self.bench.folder / self.course.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.bench.say(f"{self.course.name}: {what}: {time.monotonic() - began:.1f} s")


def _captured(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in _RENDERED}


def _shows(record: Record, sign: str) -> bool:
    change = row_change(record.topic, record.value)
    after = None if change is None else change["after"]
    return bool(after) and after.get("what") == sign
