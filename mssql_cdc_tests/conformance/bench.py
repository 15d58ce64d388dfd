"""One source and everybody who reads it at once: the genuine Debezium in several versions and modes, and ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyodbc
from mssql_sandbox.process import SandboxProcess

from mssql_cdc.cli import main
from mssql_cdc_tests.conformance.compare import plain
from mssql_cdc_tests.conformance.debezium import ORACLE, DebeziumEngine, DebeziumMachine, Record
from mssql_cdc_tests.conformance.scenario import (
    AFTER_EVOLUTION,
    CHANGES,
    DATABASE,
    EVOLUTION,
    LAST,
    SETUP,
    SNAPSHOT_ROWS,
)

WAIT_SECONDS = 240.0
Records = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """A genuine Debezium: its version and what it is told beside what all are told."""

    properties: Mapping[str, str]
    version: str = ORACLE


@dataclass(frozen=True, slots=True)
class Seen:
    """What everybody emitted, by the reader's name; ours only for the configurations that it was asked for."""

    theirs: Mapping[str, list[Record]]
    ours: Mapping[str, Records]

    def plain(self, name: str) -> Records:
        """A genuine Debezium's records in the shape of ours."""
        return [plain(record) for record in self.theirs[name]]


@dataclass(frozen=True, slots=True)
class Bench:
    """A running server, and a folder for everything that the connectors keep."""

    server: SandboxProcess
    folder: Path

    def walk(self, readers: Mapping[str, Reader], configurations: Mapping[str, Mapping[str, str]]) -> Seen:
        """Play the scenario in front of these genuine Debeziums, and of ours in these configurations."""
        self._execute(("CREATE DATABASE " + DATABASE,), database="master")
        self._execute(SETUP)
        self._wait_for_capture()
        with ExitStack() as stack:
            engines = self._start(readers, stack)
            for engine in engines.values():
                engine.wait_until(lambda found: _count(found, "r") >= SNAPSHOT_ROWS, timeout=WAIT_SECONDS)
            self._capture(configurations)
            self._execute(CHANGES)
            self._execute(EVOLUTION)
            self._wait_for_capture()
            self._execute(AFTER_EVOLUTION)
            self._execute((LAST,))
            theirs = {name: engine.wait_until(_is_over, timeout=WAIT_SECONDS) for name, engine in engines.items()}
        self._wait_for_capture()
        self._capture(configurations)
        return Seen(theirs, {name: self._records(name) for name in configurations})

    def _start(self, readers: Mapping[str, Reader], stack: ExitStack) -> dict[str, DebeziumEngine]:
        machines = {
            version: stack.enter_context(DebeziumMachine(self.folder / version, version))
            for version in sorted({reader.version for reader in readers.values()})
        }
        return {
            name: stack.enter_context(
                DebeziumEngine(
                    machines[reader.version],
                    self._properties(reader.properties) | {"name": name},
                    self.folder / f"debezium-{name}",
                )
            )
            for name, reader in readers.items()
        }

    def _properties(self, more: Mapping[str, str]) -> dict[str, str]:
        """What both connectors are told."""
        return {
            "topic.prefix": "server1",
            "database.hostname": self.server.host,
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.password": self.server.password,
            "database.names": DATABASE,
            "driver.encrypt": "false",
            "table.include.list": r"dbo\.(?!marker).*",
            "schema.history.internal.store.only.captured.tables.ddl": "true",
            "provide.transaction.metadata": "true",
            **more,
        }

    def _execute(self, batches: Iterable[str], *, database: str = DATABASE) -> list[Any]:
        """Run batches in autocommit; the rows of the last one that had any."""
        text = (
            f"DRIVER=FreeTDS;SERVER={self.server.host};PORT={self.server.port};TDS_Version=7.4;ClientCharset=UTF-8;"
            f"UID={self.server.user};PWD={{{self.server.password}}};DATABASE={database}"
        )
        rows: list[Any] = []
        with closing(pyodbc.connect(text, autocommit=True, timeout=10)) as connection:
            for batch in batches:
                cursor = connection.execute(batch)
                if cursor.description:
                    rows = cursor.fetchall()
                while cursor.nextset():
                    pass
        return rows

    def _wait_for_capture(self) -> None:
        """Wait until everything that is committed now has been captured: a row in a table of its own comes through."""
        deadline = time.monotonic() + WAIT_SECONDS
        self._execute(("INSERT INTO dbo.marker DEFAULT VALUES",))
        statement = (
            "SELECT CASE WHEN (SELECT MAX(id) FROM dbo.marker) = (SELECT MAX(id) FROM cdc.dbo_marker_CT) "
            "THEN 1 ELSE 0 END"
        )
        while self._execute((statement,))[0][0] != 1:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a row was not captured within {WAIT_SECONDS} s")
            time.sleep(0.05)

    def _capture(self, configurations: Mapping[str, Mapping[str, str]]) -> None:
        """Our connector in every configuration, until it has caught up."""
        for name, properties in configurations.items():
            told = self._properties(properties) | {"delta.warehouse": str(self.folder / f"lake-{name}")}
            self._config(name).write_text(json.dumps(told))
            self._command(name, "run", "--until-caught-up", "--timeout", str(WAIT_SECONDS))

    def _records(self, name: str) -> Records:
        """What our connector renders."""
        output = self.folder / f"{name}.jsonl"
        self._command(name, "records", "--output", str(output))
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    def _config(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _command(self, name: str, command: str, *options: str) -> None:
        code = main([command, "--config", str(self._config(name)), "--debug", *options])
        assert code == 0, f"{command} ({name}) ended with {code}; the reason stands on stderr"


def _count(records: list[Record], op: str) -> int:
    return sum(1 for record in records if isinstance(record.value, dict) and record.value.get("op") == op)


def _is_over(records: list[Record]) -> bool:
    """Whether the last row has come; metadata of its transaction may stand beside it."""
    return any(_is_last(record) for record in records[-3:])


def _is_last(record: Record) -> bool:
    after = record.value.get("after") if isinstance(record.value, dict) else None
    return bool(after) and after.get("b") == "last"
