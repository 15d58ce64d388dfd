"""Incremental snapshots in the storm's model: whatever happens beside them, what they emit is what the source had.

The tables begin without their rows (`snapshot.mode=no_data`), so only an incremental snapshot brings those that never
change. Two runs follow the database; each may take a step inside a step of the other, or be killed at any write.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.notifications import INCREMENTAL
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.daemon_work import DaemonWork
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.follower import Follower
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc_tests.spark.model_source import ModelReader
from mssql_cdc_tests.storm.emitted import emitted_rows_are_in_the_cut, emitted_rows_are_true
from mssql_cdc_tests.storm.lake import Killed, change_log, connector_for, happening_at, killed_at, rows_by_the_log
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.schedule import CHANGES, LOOK, PLACES
from mssql_cdc_tests.storm.worlds import KEYED, Change

MANY_KEYS = st.integers(0, 9)
MANY_CHANGES = st.lists(
    st.tuples(st.sampled_from(KEYED), MANY_KEYS, st.none() | st.integers(0, 99).map("v{}".format)),
    min_size=1,
    max_size=5,
)
NAMES = st.sampled_from(KEYED)
WRITES = (
    "mssql_cdc.capture.incremental.emission.commit",
    "mssql_cdc.capture.incremental.emission.append_offsets",
    "mssql_cdc.lake.small_tables.commit",
    "mssql_cdc.capture.incremental.chunks.write",
    "mssql_cdc.capture.range.commit",
    "mssql_cdc.capture.range.append_offsets",
)
WITHIN = ("passed_groups", "is_stale", "_touched", "write_files", "commit", "append_offsets")
"""Functions of an emission."""
MOST_STEPS = 240
"""Steps that must do for the lake to come to rest."""
TOLD = r"(STARTED( (PAUSED|RESUMED|ABORTED|IN_PROGRESS|TABLE_SCAN_COMPLETED))* (COMPLETED|ABORTED)( |$))*"
"""What is told of incremental snapshots: each begins and ends once."""
SIGNALS = st.sampled_from(["pause-snapshot", "resume-snapshot", "stop-snapshot"])


class IncrementalWorld(ModelWorld):
    """The model's world, whose connector reads no rows at its start."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        session: Any = None
        connector = connector_for(folder, **{"snapshot.mode": "no_data", "incremental.snapshot.chunk.size": "2"})
        self.database = Database.of(connector, "shop", spark=lambda: session, source=self.database.source)


class Incremental(RuleBasedStateMachine):
    """One schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="storm-"))
        self.world = IncrementalWorld(self.folder)
        self.stack = ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.stack.enter_context(self.world.open())
        for name, value in (("chunks.GROUP_ROWS", 4),):
            self.stack.enter_context(patch(f"mssql_cdc.capture.incremental.{name}", value))
        for name, value in (("incremental_step.MOST_STAGED", 2), ("incremental.REST_SECONDS", 0)):
            self.stack.enter_context(patch(f"mssql_cdc.follow.{name}", value))
        self.signals, self.now = 0, datetime.now(UTC)
        self.followers = [self._follower(0), self._follower(1)]

    def teardown(self) -> None:
        with self.stack:
            self.come_to_rest()

    def _follower(self, number: int) -> Follower:
        """A run; the first one reads groups beside its steps, which end before a later step looks at them."""
        thread = GroupThread(DaemonWork("incremental snapshot", start=lambda work: work())) if number == 0 else None
        database = self.world.database.named(f"run {number}").apart()
        return Follower(database, merge=False, chunks=IncrementalSnapshots(thread=thread), clock=lambda: self.now)

    # -- the source -------------------------------------------------------------------------------------------

    @initialize(changes=st.lists(MANY_CHANGES, max_size=6))
    def begin_with_rows(self, changes: list[list[Change]]) -> None:
        self.world.change(*((name, key, f"{name} {key}") for name in KEYED for key in range(0, 10, 2)))
        for one in changes:
            self.world.change(*one)

    @rule(changes=MANY_CHANGES)
    def transaction(self, changes: list[Change]) -> None:
        self.world.change(*changes)

    @rule(name=NAMES, key=MANY_KEYS, to=MANY_KEYS)
    def key_changes(self, name: str, key: int, to: int) -> None:
        self.world.move(name, key, to)

    @rule()
    def scan_begins(self) -> None:
        self.world.begin_scan()

    @rule(most=st.integers(1, 4))
    def scan(self, most: int) -> None:
        self.world.scan(most)

    @rule(number=st.integers(0, 1))
    def quiet_days(self, number: int) -> None:
        """Capture finds nothing, and the connector advances tables that would else fall behind the retention."""
        for _ in range(2):
            self.world.scan(500)
        with patch("mssql_cdc.capture.survey.DEFAULT_RETENTION", timedelta(0)):
            self.steps(number, 2)

    @rule(name=NAMES)
    def second_instance(self, name: str) -> None:
        self.world.enable(name, more=True)

    # -- signals ----------------------------------------------------------------------------------------------

    @rule(name=NAMES)
    def incremental_snapshot_is_asked_for(self, name: str) -> None:
        self._ask(name)

    @rule(name=NAMES)
    def blocking_snapshot_is_asked_for(self, name: str) -> None:
        self.signals += 1
        ask_for_snapshot(self.world.database, f"storm-{self.signals}", [f"dbo.{name}"], channel="storm")

    @rule(kind=SIGNALS)
    def signal(self, kind: str) -> None:
        self.signals += 1
        note_signal(self.world.database, SignalRow(f"storm-{self.signals}", kind, None), "storm", REQUESTED, kind)

    # -- the connector ----------------------------------------------------------------------------------------

    @rule(number=st.integers(0, 1))
    def step(self, number: int) -> None:
        self._step(number)

    @rule(number=st.integers(0, 1), steps=st.integers(2, 5))
    def steps(self, number: int, steps: int) -> None:
        for _ in range(steps):
            self._step(number)

    @rule(number=st.integers(0, 1), changes=CHANGES | MANY_CHANGES, scans=st.integers(0, 2), at=PLACES)
    def step_while_the_source_changes(self, number: int, changes: list[Change], scans: int, at: int) -> None:
        def meanwhile() -> None:
            self.world.change(*(one for one in changes if one[0] in KEYED))
            for _ in range(scans):
                self.world.scan(2)

        self._interrupted_step(number, meanwhile, at)

    @rule(
        name=NAMES,
        number=st.integers(0, 1),
        changes=MANY_CHANGES,
        chunk=st.integers(1, 3),
        passed=st.none() | MANY_KEYS,
    )
    def snapshot_beside_changes_that_are_captured_at_once(
        self, name: str, number: int, changes: list[Change], chunk: int, passed: int | None
    ) -> None:
        """Beside one of the chunks of a group, or of the next one.

        With row versions (`passed` is None) a statement shows the rows as they were when it began. With locks it shows
        those behind the key that it has `passed` as they are after the change.
        """
        self.world.scan(500)
        self._ask(name)
        server, calls = self.world.server, itertools.count(1)
        read = server.chunk_reader

        def chunk_reader(catalog: str, wanted: ChunkRead) -> ModelReader:
            wanted = replace(wanted, chunks=tuple(wanted.chunks))
            found = read(catalog, wanted)
            if next(calls) == chunk:
                self.world.change(*changes)
                self.world.scan(500)
                if passed is not None:
                    found = _read_with_locks(found, read(catalog, wanted), passed)
            return found

        with patch.object(server, "chunk_reader", chunk_reader):
            for _ in range(4):
                self._step(number)

    @rule(number=st.integers(0, 1), at=st.integers(0, 8), scans=st.integers(0, 2))
    def step_inside_a_step(self, number: int, at: int, scans: int) -> None:
        def meanwhile() -> None:
            for _ in range(scans):
                self.world.scan(2)
            self._step(1 - number)

        self._interrupted_step(number, meanwhile, at)

    @rule(number=st.integers(0, 1), place=st.sampled_from(WITHIN), steps=st.integers(1, 3), another=st.booleans())
    def steps_inside_an_emission(self, number: int, place: str, steps: int, another: bool) -> None:  # noqa: FBT001
        """What the other run does comes between two questions or writes; `another`: behind an instance that it sees."""

        def meanwhile() -> None:
            if another:
                self.world.enable("orders")
            self.world.scan(500)
            for _ in range(steps):
                self._step(1 - number)

        with happening_at(f"mssql_cdc.capture.incremental.emission.{place}", 1, meanwhile):
            self._step(number)

    @rule(number=st.integers(0, 1), write=st.sampled_from(WRITES), call=st.integers(1, 4), after=st.booleans())
    def killed_step(self, number: int, write: str, call: int, after: bool) -> None:  # noqa: FBT001 (drawn)
        with killed_at(write, call, after=after):
            try:
                self._step(number)
            except Killed:
                self.followers[number] = self._follower(number)

    @rule()
    def quiet_point(self) -> None:
        self.come_to_rest()

    # -- what has to hold -------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Everything is captured and read, and one more snapshot of each table completes it."""
        self.world.interruption.arm(None)
        self.signal("resume-snapshot")
        for name in KEYED:
            self._ask(name)
        self._settle()
        assert re.fullmatch(TOLD, " ".join(kind for kind, _ in self.told())), f"lost or repeated: {self.told()}"
        for name in KEYED:
            assert rows_by_the_log(self.world.database, name, keyed=True) == self.world.rows(name), (
                f"the change log of {name} is not the source"
            )
            log = change_log(self.world.database, name)
            positions = Counter(row["_pos"] for row in log)
            assert max(positions.values(), default=0) <= 1, f"{name}: a position is there twice"
            emitted_rows_are_true(name, log, self.world.server.rows_at)
            emitted_rows_are_in_the_cut(self.world.database, name, log)

    def told(self) -> list[tuple[str, str | None]]:
        """The notifications of incremental snapshots: types, and the last key of a chunk."""
        database = self.world.database
        rows = small_table(database.layout, "notifications", database.storage).rows()
        return [
            (row["type"], dict(row["additional_data"]).get("last_processed_key"))
            for row in rows
            if row["aggregate_type"] == INCREMENTAL
        ]

    def _settle(self) -> None:
        follower = self.followers[0] = self._follower(0)
        waits = 0
        for _ in range(MOST_STEPS):
            self.world.scan(500)
            self._step(0)
            done = isinstance(follower.decision, Wait) and not load(self.world.database).state.is_running
            waits = waits + 1 if done else 0
            if waits == 4:
                return
        raise AssertionError(f"it does not come to rest: {follower.decision}, {load(self.world.database).state}")

    def _ask(self, name: str) -> None:
        self.signals += 1
        ask_for_snapshot(
            self.world.database, f"storm-{self.signals}", [f"dbo.{name}"], channel="storm", kind="incremental"
        )

    def _step(self, number: int) -> None:
        self.world.interruption.opened = 0
        self.now += LOOK
        with contextlib.suppress(MssqlCdcError):
            self.followers[number].step()

    def _interrupted_step(self, number: int, meanwhile: Callable[[], None], at: int) -> None:
        self.world.interruption.arm(meanwhile, at=at)
        self._step(number)
        self.world.interruption.arm(None)


def _read_with_locks(before: ModelReader, after: ModelReader, passed: int) -> ModelReader:
    """A statement that had passed this key, in the order of keys, when the rows became other ones."""
    first = (row for row in before.changes if row.after and row.after["id"] <= passed)
    rest = (
        replace(row, sequence=row.sequence + 500) for row in after.changes if row.after and row.after["id"] > passed
    )
    return replace(before, changes=(*first, *rest))
