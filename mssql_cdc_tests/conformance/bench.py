"""One source with concurrent readers: the real Debezium in several versions and modes, and this connector."""

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
    """A real Debezium: its version and its additional properties."""

    properties: Mapping[str, str]
    version: str = ORACLE


@dataclass(frozen=True, slots=True)
class Seen:
    """The records of all readers by name; those of this connector only for the requested configurations."""

    theirs: Mapping[str, list[Record]]
    ours: Mapping[str, Records]

    def plain(self, name: str) -> Records:
        """The records of a real Debezium in the format of this connector."""
        return [plain(record) for record in self.theirs[name]]


@dataclass(frozen=True, slots=True)
class Bench:
    """A running server, and a folder for the connectors' state."""

    server: SandboxProcess
    folder: Path

    def walk(self, readers: Mapping[str, Reader], configurations: Mapping[str, Mapping[str, str]]) -> Seen:
        """Run the scenario while these Debeziums read, and this connector in these configurations."""
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
        """The common properties of both connectors."""
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
        """Run batches in autocommit mode and return the rows of the last one that had any."""
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
        """Wait until everything committed so far has been captured, using a row in a separate table."""
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
        """Run this connector in every configuration until it has caught up."""
        for name, properties in configurations.items():
            told = self._properties(properties) | {"delta.warehouse": str(self.folder / f"lake-{name}")}
            self._config(name).write_text(json.dumps(told))
            self._command(name, "run", "--until-caught-up", "--timeout", str(WAIT_SECONDS))

    def _records(self, name: str) -> Records:
        """The records that this connector renders."""
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
    """Whether the last row has arrived; metadata of its transaction may accompany it."""
    return any(_is_last(record) for record in records[-3:])


def _is_last(record: Record) -> bool:
    after = record.value.get("after") if isinstance(record.value, dict) else None
    return bool(after) and after.get("b") == "last"
