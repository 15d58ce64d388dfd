"""One source, two connectors: the genuine Debezium 3.3.1 and ours, side by side on one stand-in server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyodbc

from mssql_cdc_tests.conformance.compare import plain
from mssql_cdc_tests.conformance.debezium import DebeziumEngine, Record
from mssql_cdc_tests.conformance.scenario import (
    AFTER_EVOLUTION,
    CHANGES,
    DATABASE,
    EVOLUTION,
    LAST,
    SETUP,
    SNAPSHOT_ROWS,
)
from mssql_cdc_tests.sandbox.processes import SandboxProcess

WAIT_SECONDS = 120.0
Records = list[dict[str, Any]]


@dataclass
class Bench:
    """A running server, and a folder for everything that the connectors keep."""

    server: SandboxProcess
    folder: Path
    modes: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> tuple[Records, Records]:
        """Play the scenario in front of both; what ours and what Debezium emitted."""
        self.execute(("CREATE DATABASE " + DATABASE,), database="master")
        self.execute(SETUP)
        self.wait_for_capture()
        with DebeziumEngine(self.properties | {"name": "oracle"}, self.folder / "debezium") as engine:
            engine.wait_until(lambda found: _count(found, "r") >= SNAPSHOT_ROWS, timeout=WAIT_SECONDS)
            self.capture()
            self.execute(CHANGES)
            self.execute(EVOLUTION)
            self.wait_for_capture()
            self.execute(AFTER_EVOLUTION)
            self.execute((LAST,))
            engine.wait_until(lambda found: bool(found) and _is_last(found[-1]), timeout=WAIT_SECONDS)
            theirs = [plain(record) for record in engine.records]
        self.wait_for_capture()
        self.capture()
        return self.records(), theirs

    @property
    def properties(self) -> dict[str, str]:
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
            **self.modes,
        }

    def execute(self, batches: Iterable[str], *, database: str = DATABASE) -> list[Any]:
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

    def wait_for_capture(self) -> None:
        """Wait until everything that is committed now has been captured: a row in a table of its own comes through."""
        deadline = time.monotonic() + WAIT_SECONDS
        self.execute(("INSERT INTO dbo.marker DEFAULT VALUES",))
        statement = (
            "SELECT CASE WHEN (SELECT MAX(id) FROM dbo.marker) = (SELECT MAX(id) FROM cdc.dbo_marker_CT) "
            "THEN 1 ELSE 0 END"
        )
        while self.execute((statement,))[0][0] != 1:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a row was not captured within {WAIT_SECONDS} s")
            time.sleep(0.05)

    def capture(self) -> None:
        """Our connector, until it has caught up."""
        self._cli("run", "--until-caught-up", "--timeout", str(WAIT_SECONDS))

    def records(self) -> Records:
        """What our connector renders."""
        output = self.folder / "records.jsonl"
        self._cli("records", "--output", str(output))
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    def _cli(self, *arguments: str) -> None:
        config = self.folder / "connector.json"
        config.write_text(json.dumps(self.properties | {"delta.warehouse": str(self.folder / "lake")}))
        command = [sys.executable, "-m", "mssql_cdc.cli", *arguments, "--config", str(config), "--debug"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * WAIT_SECONDS)
        assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}\n{done.stderr[-6000:]}"


def _count(records: list[Record], op: str) -> int:
    return sum(1 for record in records if isinstance(record.value, dict) and record.value.get("op") == op)


def _is_last(record: Record) -> bool:
    after = record.value.get("after") if isinstance(record.value, dict) else None
    return bool(after) and after.get("b") == "last"
