"""Waits until the lake holds everything that the source holds now; the sensor and its runs do the actual work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import survey
from mssql_cdc.config import load_connector
from mssql_cdc.run.loop import goal_behind
from mssql_cdc.run.patience import has_reached

POLL_SECONDS = 1.0


def is_streaming(database: Database) -> bool:
    """Whether the initial snapshot has completed, that is, every captured table is streaming."""
    members = survey(database).facts.members
    return bool(members) and all(member.status == "streaming" for member in members)


def wait_until_caught_up(database: Database, *, timeout: float, check: Callable[[], None]) -> None:
    """Wait until change logs and current tables are at a complete cut that contains the current state of the source.

    Args:
        database: The database.
        timeout: The time limit in seconds.
        check: Called at every poll; raises an error if a required process has died.

    Raises:
        TimeoutError: The time ran out.
    """
    with database.session() as session:
        mark = session.mark()

    def caught_up() -> bool:
        goal = goal_behind(database, mark)
        if not goal:
            return False
        seen = survey(database)
        return has_reached(seen, goal, ()) and not seen.facts.behind

    _wait(caught_up, timeout=timeout, check=check, what="The lake had not caught up")


def _wait(condition: Callable[[], bool], *, timeout: float, check: Callable[[], None], what: str) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        check()
        if condition():
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"{what} after {timeout:g} s; see the logs in .demo/")


def demo_database(config: Path) -> Database:
    """The database of the demo's connector, for inspection only."""
    connector = load_connector(config)
    return Database.of(connector, connector.databases[0], spark=_never)


def _never() -> NoReturn:
    raise AssertionError("waiting must not start Spark")
