"""Waits until the lake holds all that the source holds now, without helping: the sensor and its runs must do it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import survey
from mssql_cdc.config import load_connector
from mssql_cdc.run.loop import goal_behind, has_reached

POLL_SECONDS = 1.0


def is_streaming(config: Path) -> bool:
    """Whether the initial snapshot is over: every captured table streams."""
    members = survey(_database(config)).facts.members
    return bool(members) and all(member.status == "streaming" for member in members)


def wait_until_caught_up(config: Path, *, timeout: float, check: Callable[[], None]) -> None:
    """Returns when change logs and current tables are at a complete cut that holds everything of this moment.

    Args:
        config: the connector's file.
        timeout: seconds.
        check: called at every look; raises when a process that is needed has died.

    Raises:
        TimeoutError: the time is up.
    """
    database = _database(config)
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


def _database(config: Path) -> Database:
    connector = load_connector(config)
    return Database.of(connector, connector.databases[0], spark=_never)


def _never() -> NoReturn:
    raise AssertionError("waiting starts no Spark")
