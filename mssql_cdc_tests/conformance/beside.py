"""Debezium beside this connector, over the database of one place; tests compare what both write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mssql_cdc_tests.conformance.debezium import DebeziumEngine, DebeziumMachine
from mssql_cdc_tests.end_to_end.kit import Place

SIGNALS = "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL"
"""The columns of a signal table."""
SCHEMAS = {
    f"{side}.converter.{name}": value
    for side in ("key", "value")
    for name, value in {"schemas.enable": "true", "replace.null.with.default": "false"}.items()
}
"""Records with their schemas, NULLs as they are."""


@dataclass(frozen=True)
class Beside:
    """An engine that runs, and the place in the machine's log where it began."""

    machine: DebeziumMachine
    engine: DebeziumEngine
    began: int

    @property
    def log(self) -> str:
        """What was logged since."""
        return self.machine.log.read_bytes()[self.began :].decode("utf-8", "replace")


@contextmanager
def debezium_beside(
    machine: DebeziumMachine, place: Place, folder: Path, properties: dict[str, str]
) -> Iterator[Beside]:
    """Run Debezium over the place's database until the block ends.

    Args:
        machine: Runs it.
        place: The place, whose connector has the same properties.
        folder: For what Debezium keeps.
        properties: What is configured beside the connection.
    """
    configured = {
        "name": "both",
        "topic.prefix": "shop",
        "database.hostname": place.server.host,
        "database.port": str(place.server.port),
        "database.user": place.server.user,
        "database.password": place.server.password,
        "database.names": place.database,
        **properties,
    }
    began = machine.log.stat().st_size
    with DebeziumEngine(machine, configured, folder / "engine") as engine:
        yield Beside(machine, engine, began)


def own_records(place: Place, folder: Path) -> list[dict[str, Any]]:
    """The records of this connector, in a new output."""
    output = folder / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
