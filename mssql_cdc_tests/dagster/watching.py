"""A book about a followed database, without a run: what it writes, and a clock that a test moves."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from mssql_cdc.capture import range as capture_range
from mssql_cdc.capture.database import Database
from mssql_cdc.defs.book import Book
from mssql_cdc.defs.recorder import Event
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.requested import read_until
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import Location, metadata

HOUR = timedelta(hours=1)


@dataclass
class Written:
    """Stores events without a run, and keeps them."""

    instance: dg.DagsterInstance
    events: list[Event] = field(default_factory=list)

    def write(self, event: Event, *, of_run: bool = True) -> None:  # noqa: ARG002 (a test has no run)
        self.instance.report_runless_asset_event(event)
        self.events.append(event)

    def take(self) -> list[Event]:
        found, self.events = self.events, []
        return found


@dataclass
class Watch:
    """A database that is followed, with a book whose clock a test moves."""

    location: Location
    written: Written
    follower: Follower
    book: Book
    ahead: timedelta = timedelta(0)

    def step(self) -> Done:
        """Take a step and report it."""
        done = self.follower.attempt()
        assert done is not None
        self.book.add(done)
        return done

    def settle(self) -> None:
        for _ in range(6):
            self.step()
            if self.book.progress.idle:
                return
        raise AssertionError("the source does not come to rest")

    def windows(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """The windows of a change log that were reported since the last call, oldest first."""
        events = [event for event in self.written.take() if isinstance(event, dg.AssetMaterialization)]
        found = [event for event in events if event.asset_key == self.location.key(name)]
        return [(str(event.partition), metadata(event)) for event in found]

    def key(self, hours: int = 0) -> str:
        """The key of the window that is current, or was some hours ago."""
        return self.location.setup.windows.key(self.book.clock() - hours * HOUR)


def watched(streaming: Location, spark: Any) -> Watch:
    """Watch a location in hourly windows."""
    # In the middle of an hour, and on the server too, whose clock only goes forward.
    base = (datetime.now(UTC) + HOUR).replace(minute=30, second=0, microsecond=0)
    streaming.shop.set_clock(base)
    location = streaming.reloaded(dagster_window="hour", since=base)
    database = location.setup.open(spark=lambda: spark)
    written = Written(location.instance)
    made = Watch(location, written, Follower(database, ready=True), Book(location.setup, database, written))
    made.book.clock = lambda: base + made.ahead
    return made


def overtake(monkeypatch: pytest.MonkeyPatch, database: Database, only: Collection[TableId] | None = None) -> None:
    """Let another run read just before the next commit of a table: what is new, or only of these tables."""
    once, commit = threading.Lock(), capture_range.commit

    def overtaken(*arguments: Any, **more: Any) -> Any:
        if once.acquire(blocking=False):
            if only is not None:
                assert read_until(database, datetime.now(UTC) + timedelta(days=1), lambda _: only or ())
            else:
                assert Follower(database, ready=True, snapshots=False, merge=False).attempt() is not None
        return commit(*arguments, **more)

    monkeypatch.setattr(capture_range, "commit", overtaken)
