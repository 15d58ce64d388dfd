"""The description of the storm: what may happen, and what has to hold at every quiet point.

Hypothesis draws what applications, administrators, the capture job, the cleanup job and several runs of the connector
do. The world decides how whole it is: `model.py` or `whole.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.plan.decisions import Decision, Range, Restored, Wait
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.execute import execute
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loss import go_on_after_restore
from mssql_cdc.run.standing import standings
from mssql_cdc_tests.storm.lake import (
    Killed,
    change_log,
    is_known,
    killed_at,
    missing_events,
    restore_change_log,
    rows_by_the_log,
    untold_breaks,
)
from mssql_cdc_tests.storm.worlds import KEYED, TABLES, Change, World

NAMES = st.sampled_from(TABLES)
KEYS = st.integers(0, 3)
VALUES = st.none() | st.integers(0, 99).map("v{}".format)
CHANGES = st.lists(st.tuples(NAMES, KEYS, VALUES), min_size=1, max_size=3)
PLACES = st.integers(0, 4)
"""How many calls of the source a step makes before something happens."""
ENOUGH = 60
"""Looks that must do for the lake to come to rest."""


class Storm(RuleBasedStateMachine):
    """One schedule in one world."""

    def __init__(self, make: Callable[[Path], World]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="storm-"))
        self.world = make(self.folder)
        self.database = self.world.database
        self.stack = ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.stack.enter_context(self.world.open())
        for name, value in (("CHUNK_ROWS", 2), ("GROUP_CHUNKS", 1)):
            self.stack.enter_context(patch(f"mssql_cdc.capture.snapshot.take.{name}", value))
        self.follower = self._follower()
        self.repairs = 0
        self.restored = self.cleaned = False
        self.tampered: set[str] = set()
        self.rivals: list[tuple[Database, Survey, Decision]] = []

    def teardown(self) -> None:
        with self.stack:
            self.come_to_rest()

    def _follower(self) -> Follower:
        return Follower(self.database, merge=self.world.merges)

    # -- the source -------------------------------------------------------------------------------------------

    @initialize(changes=st.lists(CHANGES, max_size=4))
    def begin_with_rows(self, changes: list[list[Change]]) -> None:
        for one in changes:
            self.world.change(*one)

    @rule(changes=CHANGES)
    def transaction(self, changes: list[Change]) -> None:
        self.world.change(*changes)

    @rule(name=NAMES, count=st.integers(3, 8))
    def backlog(self, name: str, count: int) -> None:
        for number in range(count):
            self.world.change((name, number % 3, f"b{number}"))

    @rule(name=st.sampled_from(KEYED), key=KEYS, to=KEYS)
    def key_changes(self, name: str, key: int, to: int) -> None:
        self.world.move(name, key, to)

    @rule()
    def scan_begins(self) -> None:
        """The next scan sees the log as it is now."""
        self.world.begin_scan()

    @rule(most=st.integers(1, 4))
    def scan(self, most: int) -> None:
        self.world.scan(most)

    @rule()
    def server_restarts(self) -> None:
        self.world.restart()

    @rule(name=NAMES)
    def second_instance(self, name: str) -> None:
        self.world.enable(name, more=True)

    @rule(name=NAMES)
    def oldest_instance_goes(self, name: str) -> None:
        self.world.disable(name, oldest_only=True)

    @rule(name=NAMES, changes=CHANGES)
    def disable_change_enable(self, name: str, changes: list[Change]) -> None:
        self.world.disable(name)
        self.world.change(*changes)
        self.world.enable(name)

    @rule(name=NAMES)
    def disable(self, name: str) -> None:
        self.world.disable(name)

    @rule(name=NAMES)
    def enable(self, name: str) -> None:
        if name in self.world.dark():
            self.world.enable(name)

    @rule(name=NAMES)
    def drop_and_create(self, name: str) -> None:
        self.world.drop_and_create(name)

    @rule(kept=st.integers(0, 6))
    def clean_up(self, kept: int) -> None:
        self.cleaned = True
        self.world.clean_up(kept)

    @rule()
    def back_up(self) -> None:
        self.world.back_up()

    @rule()
    def restore(self) -> None:
        self.restored = True
        self.world.restore()

    # -- the connector ----------------------------------------------------------------------------------------

    @rule()
    def step(self) -> None:
        self._step(self.follower)

    @rule(early=st.booleans(), changes=CHANGES)
    def quiet_days(self, early: bool, changes: list[Change]) -> None:  # noqa: FBT001 (drawn)
        """Capture finds nothing, and the connector advances tables that would else fall behind the retention."""
        if early:  # What is written while a scan runs is not in it.
            self.world.begin_scan()
            self.world.change(*changes)
        for _ in range(2):
            self.world.scan(4)
        with ExitStack() as stack:
            for module in ("capture.survey", "run.quiet_look"):
                stack.enter_context(patch(f"mssql_cdc.{module}.DEFAULT_RETENTION", timedelta(0)))
            for _ in range(2):
                self.step()

    @rule(name=NAMES, other=NAMES, count=st.integers(1, 5), most=st.integers(1, 4), early=st.booleans())
    def snapshot_while_capture_lags(self, name: str, other: str, count: int, most: int, early: bool) -> None:  # noqa: FBT001
        """A snapshot ends behind transactions that are not captured, and the next scan need not reach them."""
        self._ask(name)
        if early:
            self.world.begin_scan()
        self.backlog(other, count)
        self.step()
        self.step()
        self.world.scan(most)
        for _ in range(3):
            self.step()

    @rule(changes=CHANGES, scans=st.integers(0, 2), at=PLACES)
    def step_while_the_source_changes(self, changes: list[Change], scans: int, at: int) -> None:
        def meanwhile() -> None:
            self.world.change(*changes)
            for _ in range(scans):
                self.world.scan(2)

        self._interrupted_step(meanwhile, at)

    @rule(name=NAMES, changes=CHANGES, at=PLACES)
    def step_while_an_instance_is_replaced(self, name: str, changes: list[Change], at: int) -> None:
        self._interrupted_step(lambda: self.disable_change_enable(name, changes), at)

    @rule(kept=st.integers(0, 2), at=PLACES)
    def step_while_it_is_cleaned_up(self, kept: int, at: int) -> None:
        self._interrupted_step(lambda: self.clean_up(kept), at)

    @rule(at=PLACES)
    def step_while_it_is_restored(self, at: int) -> None:
        self._interrupted_step(self.restore, at)

    @rule(write=st.integers(0, 20), call=st.integers(1, 3), after=st.booleans())
    def killed_step(self, write: int, call: int, after: bool) -> None:  # noqa: FBT001 (drawn)
        with killed_at(self.world.writes[write % len(self.world.writes)], call, after=after):
            try:
                self._step(self.follower)
            except Killed:
                self.follower = self._follower()

    def write(self, name: str) -> int:
        """The number of the write for `killed_step`, by a part of its name."""
        return next(number for number, target in enumerate(self.world.writes) if name in target)

    @rule(changes=CHANGES)
    def late_rival(self, changes: list[Change]) -> None:
        """A second run looks, the first one works on, and the second carries out what it had decided."""
        rival = self.database.named("rival")
        try:
            seen = survey(rival, currents=self.world.merges)
        except MssqlCdcError:
            return
        decision = plan(seen.facts)
        self.world.change(*changes)
        self.world.scan(3)
        self._step(self.follower)
        if isinstance(decision, Range):
            _tolerated(lambda: execute(rival, seen, decision, merge=self.world.merges))

    @rule()
    def rival_looks(self) -> None:
        """A run surveys and decides; it carries its decision out whenever `rival_acts` says so."""
        rival = self.database.named(f"rival {len(self.rivals)}")
        with contextlib.suppress(MssqlCdcError):
            seen = survey(rival, currents=self.world.merges)
            self.rivals.append((rival, seen, plan(seen.facts)))

    @rule(number=st.integers(0, 3))
    def rival_acts(self, number: int) -> None:
        if self.rivals:
            rival, seen, decision = self.rivals.pop(number % len(self.rivals))
            _tolerated(lambda: execute(rival, seen, decision, merge=self.world.merges))

    @rule(name=NAMES, back=st.integers(1, 3))
    def user_restores_a_change_log(self, name: str, back: int) -> None:
        if restore_change_log(self.database, name, back):
            self.tampered.add(name)

    @rule(name=NAMES)
    def snapshot_is_asked_for(self, name: str) -> None:
        self._ask(name)

    @rule()
    def quiet_point(self) -> None:
        self.come_to_rest()

    # -- what has to hold -------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Everything is captured and read; what was lost is named, and one snapshot of it repairs it."""
        self.world.interruption.arm(None)
        self._settle()
        named, dark = self._findings(), self.world.dark()
        for name in TABLES:
            if name not in named and (name not in dark or is_known(self.database, name)):
                self._same(name)
        if not named and not dark:
            return
        if dark:
            for name in dark:
                self.world.enable(name)
            self._settle()
        for name in named:
            self._ask(name)
        self._settle()
        assert not self._findings(), "a snapshot did not repair what was lost"
        for name in TABLES:
            self._same(name)

    def _same(self, name: str) -> None:
        wanted = self.world.rows(name)
        found = rows_by_the_log(self.database, name, keyed=name in self.world.keyed)
        assert found == wanted, f"the change log of {name} differs, and nothing says so"
        log = change_log(self.database, name)
        told = [change["_pos"] for change in log]
        assert len(told) == len(set(told)), f"{name}: a position is there twice"
        missing = missing_events(
            self.database, name, log, self.world.captured_events(name), tampered=name in self.tampered
        )
        assert not missing, f"the change log of {name} lacks events, and no gap says so: {missing}"

    def _findings(self) -> set[str]:
        """The tables of which the connector says that changes may be missing; each break of a stream is a gap."""
        seen = survey(self.database, currents=False)
        named = {text.rpartition(".")[2] for text in standings(seen).missing}
        untold = untold_breaks(self.database, {name for name in TABLES if name in named})
        assert not untold, f"streams broke off, and no gap says so: {untold}"
        reasons = {gap.reason for gap in load_gaps(self.database.layout, self.database.storage)}
        blamed = {reason for reason in reasons if reason.startswith("CDC cleanup")}
        assert self.cleaned or not blamed, f"nothing was cleaned up: {blamed}"
        return named

    def _settle(self) -> None:
        follower = self.follower = self._follower()
        waits = 0
        for look in range(ENOUGH):
            if look < ENOUGH // 4:
                self.world.beat()
            self.world.scan(500)
            self._step(follower)
            if isinstance(follower.decision, Restored):
                go_on_after_restore(self.database, by="the storm")
                self.restored = False
            waits = waits + 1 if isinstance(follower.decision, Wait) else 0
            if waits == 4:
                return
        raise AssertionError(f"the lake does not come to rest: {follower.decision}")

    def _ask(self, name: str) -> None:
        self.repairs += 1
        ask_for_snapshot(self.database, f"storm-{self.repairs}", [f"dbo.{name}"], channel="storm")

    def _step(self, follower: Follower) -> None:
        _tolerated(follower.step)
        done = follower.decision
        assert self.restored or not isinstance(done, Restored), f"nothing was restored: {done.reason}"
        if isinstance(done, Range):
            assert done.slices or done.idle or done.complete or done.give_up, f"a range without effect: {done.key}"

    def _interrupted_step(self, meanwhile: Callable[[], None], at: int) -> None:
        self.world.interruption.arm(meanwhile, at=at)
        self._step(self.follower)
        self.world.interruption.arm(None)


def _tolerated(action: Callable[[], object]) -> None:
    """What a run reports as an error is no defect if a later run overcomes it; any other exception is one."""
    with contextlib.suppress(MssqlCdcError):
        action()


def storm(
    make: Callable[[Path], Any],
    *,
    machine: type[Storm] = Storm,
    schedules: int,
    steps: int,
    seed: int,
    shrink: bool = False,
    numbers: Iterator[int] | None = None,
) -> None:
    """Play the schedules of a seed, each of at most so many steps.

    Args:
        make: Makes a world in a folder of its own.
        machine: The rules that are played.
        schedules: How many schedules.
        steps: The most rules that one schedule plays.
        seed: The same seed plays the same schedules.
        shrink: Look for the shortest schedule that fails, which takes long.
        numbers: Advances with every schedule.
    """

    @seeded(seed)
    class Played(machine):
        def __init__(self) -> None:
            super().__init__(make)
            if numbers is not None:
                next(numbers)

    run_state_machine_as_test(
        Played,
        settings=settings(
            max_examples=schedules,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
        ),
    )
