"""One schedule of the storm: its world, its runs of the connector, and what has to hold at every quiet point.

`machine.py` and `operations.py` have the rules that a schedule plays.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.config.signals import PauseSnapshot, ResumeSnapshot, StopSnapshot
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Decision, Range, Restored, Wait
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loss import acknowledge, go_on_after_restore
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId
from mssql_cdc_tests.storm.emitted import pause_lets_no_chunk_be_read
from mssql_cdc_tests.storm.lake import (
    Killed,
    change_log,
    entry_of,
    has_streamed,
    is_known,
    killed_at,
    missing_columns,
    missing_events,
    opened_snapshots,
    rows_by_the_log,
    untold_breaks,
    was_read_again,
)
from mssql_cdc_tests.storm.runs import chunks_between, snapshots_between
from mssql_cdc_tests.storm.worlds import PARTS, TABLES, World

NAMES = st.sampled_from(TABLES)
KEYS = st.integers(0, 3)
VALUES = st.none() | st.integers(0, 99).map("v{}".format)
CHANGES = st.lists(st.tuples(NAMES, KEYS, VALUES), min_size=1, max_size=3)
PART = st.sampled_from((None, None, *PARTS))
"""The filter of a snapshot."""
PLACES = st.integers(0, 4)
"""How many sessions and readers a step opens before something happens."""
WITHIN = st.just(0) | st.integers(1, 12)
"""How many further calls of a session it makes before."""
ENOUGH = 60
"""Looks that must do for the lake to come to rest; one that reads further than all before is none of them."""
LOOK, LONG = timedelta(seconds=1), timedelta(minutes=1)
"""How far a look advances the clock, and how far it goes when a schedule comes to rest and a retry has to wait."""
MOST_STEPS = 240
"""A defect may let every look read further, or chunks, for ever."""
SMALL: Mapping[str, int] = {
    "capture.snapshot.take.CHUNK_ROWS": 2,
    "capture.snapshot.take.GROUP_CHUNKS": 1,
    "capture.incremental.chunks.GROUP_ROWS": 2,
    "follow.incremental_step.MOST_STAGED": 2,
    "follow.incremental.REST_SECONDS": 0,
    "lake.offset_commits.KEEP_EVERY": 7,
}
"""Several groups of chunks though tables have few rows, digests though `_offsets` has few, and no pauses."""
FAMILIES = ("lag", "instances", "cleanup", "restores", "snapshots", "runs", "users")
"""Rules that are played together; those of no family are played in every schedule."""


def profiles(families: Collection[str]) -> st.SearchStrategy[frozenset[str]]:
    """Which families of rules a schedule plays: mostly one, whose rules then meet each other often; or two, or all.

    Args:
        families: All families.
    """
    one, two = (st.frozensets(st.sampled_from(sorted(families)), min_size=n, max_size=n) for n in (1, 2))
    return st.one_of(one, one, one, two, st.just(frozenset(families)))


def of(*families: str) -> Callable[[Any], Any]:
    """A rule of these families: a schedule whose profile has none of them does not play it."""
    return precondition(lambda machine: not machine.profile.isdisjoint(families))


class Schedule(RuleBasedStateMachine):
    """A schedule in one world, without its rules."""

    profile = frozenset(FAMILIES)
    pause: int | None = None
    """How many rules lie between two quiet points; None: there are those that are drawn, and the last one."""
    beside = False
    """Whether looks take snapshots beside the stream, as the loop and Dagster do, or as a step of their own."""

    def __init__(self, make: Callable[[Path], World]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="storm-"))
        self.world = make(self.folder)
        self.database = self.world.database
        self.stack = ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.stack.enter_context(self.world.open())
        for name, value in SMALL.items():
            self.stack.enter_context(patch(f"mssql_cdc.{name}", value))
        self.now = datetime.now(UTC)
        """The clock of the runs: schedules must not depend on how fast the machine is."""
        self.follower = self.new_follower()
        self.repairs = self.played = 0
        self.restored = self.cleaned = self.controlled = self.has_renamed = False
        self.tampered: set[str] = set()
        self.may_lack: set[str] = set()
        self.parts: dict[str, set[str]] = {}
        """The conditions by which the first read of a table may have left rows out."""
        self.rivals: list[tuple[Database, Survey, Decision]] = []

    def teardown(self) -> None:
        with self.stack:
            self.come_to_rest()

    def new_follower(self) -> Follower:
        """A run that knows nothing yet."""
        beside = snapshots_between(self.database) if self.beside else None
        chunks = chunks_between() if self.beside else IncrementalSnapshots()
        return Follower(self.database, merge=self.world.merges, beside=beside, chunks=chunks, clock=lambda: self.now)

    @invariant()
    def rest_between_rules(self) -> None:
        """What a defect has done is seen before something else covers it."""
        self.played += 1
        if self.pause is not None and self.played % self.pause == 0:
            self.come_to_rest()

    # -- what happens -----------------------------------------------------------------------------------------

    def disabled(self, name: str, *, oldest_only: bool = False) -> None:
        """Capture ends, or its older instance goes; changes that were not read go with it."""
        self.may_lack.add(name)
        self.world.disable(name, oldest_only=oldest_only)

    def renamed(self, name: str, to: str) -> None:
        """A table gets another name; what is known of it goes on under that."""
        self.world.rename(name, to)
        self.has_renamed = True
        interruption = self.world.interruption
        for names in (self.may_lack, self.tampered, interruption.refused, interruption.denied):
            if name in names:
                names.remove(name)
                names.add(to)
        if name in self.parts:
            self.parts[to] = self.parts.pop(name)

    def cleaned_up(self, kept: int, only: str | None = None) -> None:
        """Cleanup removes captured changes, of every table or of one."""
        self.cleaned = True
        self.may_lack.update(TABLES if only is None else (only,))
        self.world.clean_up(kept, only=only)

    def brought_back(self) -> None:
        """The last backup takes the database's place.

        If the login may not see the recovery fork, nothing shows that rows are taken back which a snapshot has read and
        capture has not (A7): such a restore is not played.
        """
        unseen = self.database.offsets().unwitnessed_marks or load(self.database).state.reading is not None
        if self.world.fork_is_hidden() and unseen:
            return
        self.restored = True
        self.may_lack.update(TABLES)
        self.world.restore()

    def ask(self, name: str, part: str | None = None) -> None:
        """A snapshot of a table, or of a part of its rows, is requested."""
        self.repairs += 1
        self.filtered(name, part)
        ask_for_snapshot(self.database, f"storm-{self.repairs}", [f"dbo.{name}"], channel="storm", condition=part)

    def ask_beside(self, name: str, part: str | None = None) -> None:
        """An incremental snapshot of a table, or of a part of its rows, is requested."""
        table = f"{self.database.catalog}.dbo.{name}"
        data: dict[str, object] = {"type": "incremental", "data-collections": [table]}
        if part is not None:
            data["additional-conditions"] = [{"data-collection": table, "filter": part}]
        if name not in self.world.keyed:
            data["surrogate-key"] = "id"
        self._signal("execute-snapshot", json.dumps(data))

    def control(self, kind: str) -> None:
        """Snapshots of both types pause, go on or stop."""
        self.controlled = True
        self._signal(kind, None)

    def _signal(self, kind: str, data: str | None) -> None:
        self.repairs += 1
        note_signal(self.database, SignalRow(f"storm-{self.repairs}", kind, data), "storm", REQUESTED, kind)

    def filtered(self, name: str, part: str | None) -> None:
        """A filter is asked for; that of a table which has not streamed yet may become its first read."""
        if part is not None and not has_streamed(self.database, name):
            self.parts.setdefault(name, set()).add(part)

    def look(self, times: int = 1) -> None:
        """The connector looks and does what there is to do."""
        for _ in range(times):
            self._step(self.follower)

    def resume_after_restore(self, follower: Follower) -> None:
        """An operator lets the connector go on, if it stopped because the source was restored."""
        if isinstance(follower.decision, Restored):
            go_on_after_restore(self.database, by="the storm")
            self.restored = False

    def look_while(self, meanwhile: Callable[[], None], at: int, within: int = 0) -> None:
        """Something happens between two calls that a look makes."""
        self.world.interruption.arm(meanwhile, at=at, within=within)
        self.look()
        self.world.interruption.arm(None)

    def look_and_die(self, target: str, call: int, *, after: bool) -> None:
        """The process of a look ends at the n-th call of a write, if there are as many."""
        with killed_at(target, call, after=after):
            try:
                self.look()
            except Killed:
                self.follower = self.new_follower()

    # -- what has to hold -------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Everything is captured and read; what was lost is named, and one snapshot of it repairs it."""
        self.world.interruption.arm(None)
        self.world.interruption.refused.clear()
        self.world.interruption.denied.clear()
        if self.controlled:
            self.control("resume-snapshot")
            self.controlled = False
        self._settle()
        named, dark = self._findings(), self.world.dark()
        for name in TABLES:
            if name not in named and (name not in dark or is_known(self.database, name)):
                self._same(name)
        if named or dark:
            if dark:
                for name in dark:
                    self.world.enable(name)
                self._settle()
            for name in named:
                self.ask(name)
            self._settle()
            assert not self._findings(), "a snapshot did not repair what was lost"
            for name in TABLES:
                self._same(name)
        self.may_lack.clear()

    def _same(self, name: str) -> None:
        lacking, parts = self.world.rows(name), self.parts_of(name)
        lacking.subtract(rows_by_the_log(self.database, name, keyed=name in self.world.keyed, part=bool(parts)))
        left_out = {row: n for row, n in lacking.items() if n > 0 and not all(PARTS[one](row[0]) for one in parts)}
        assert lacking == Counter(left_out), f"the change log of {name} differs, and nothing says so: {lacking}"
        log = change_log(self.database, name)
        told = [change["_pos"] for change in log]
        assert len(told) == len(set(told)), f"{name}: a position is there twice"
        self.world.check_emitted(name, log)
        missing = missing_events(
            self.database, name, log, self.world.captured_events(name), tampered=name in self.tampered
        )
        assert not missing, f"the change log of {name} lacks events, and no gap says so: {missing}"
        if not self.cleaned:  # Else it may be unknown what an older instance holds, which then is read to its end.
            without = missing_columns(self.database, log, self.world.captured_columns_by_event(name))
            assert not without, f"the change log of {name} lacks columns that an instance had captured: {without}"

    def parts_of(self, name: str) -> Collection[str]:
        """The conditions by which rows of the table may be left out; none once it had to be read in full (C19)."""
        parts = self.parts.get(name, ())
        return () if parts and was_read_again(self.database, name, keyed=name in self.world.keyed) else parts

    def _findings(self) -> set[str]:
        """The tables of which the connector says that changes may be missing; each break of a stream is a gap.

        One that was given up before it was read, and that is no longer captured, is named as failed.
        """
        seen = survey(self.database, currents=False)
        stand = standings(seen)
        names = [text.rpartition(".")[2] for text in stand.missing]
        if former := {name.partition(" (")[0] for name in names if name.endswith(")")}:
            # Another table has the name: nothing repairs what was lost of the one that had it.
            captured = [self.world.interruption.object_id(name) for name in TABLES if name not in self.world.dark()]
            assert not any(f"(object id {one})" in name for one in captured for name in names), f"{names} are captured"
            acknowledge(self.database, [TableId("shop", "dbo", name) for name in former], by="the storm")
        named = {name for name in names if not name.endswith(")")}
        named |= {text.rpartition(".")[2] for text in stand.failed} & self.world.dark()
        untold = untold_breaks(self.database, {name for name in TABLES if name in named})
        assert not untold, f"streams broke off, and no gap says so: {untold}"
        reasons = {gap.reason for gap in load_gaps(self.database.layout, self.database.storage)}
        blamed = {reason for reason in reasons if reason.startswith("CDC cleanup")}
        assert self.cleaned or not blamed, f"nothing was cleaned up: {blamed}"
        assert named <= self.may_lack, f"nothing of {named - self.may_lack} can have been lost"
        return named

    def _settle(self) -> None:
        """Runs read until nothing is left; each tries again what its predecessors gave up."""
        for _ in range(3):
            self._run_until_idle()
            found = ((name, entry_of(self.database, name)) for name in TABLES)
            given_up = {name for name, entry in found if entry is not None and entry.status == "failed"}
            if not self._has_followed_advice() and not given_up - self.world.dark():
                return
        raise AssertionError("tables that can be read again stay given up")

    def _has_followed_advice(self) -> bool:
        """Whether an operator has done what the errors of tables ask for."""
        return False

    def _run_until_idle(self) -> None:
        follower = self.follower = self.new_follower()
        looks = waits = 0
        furthest: tuple[int, Lsn] | None = None
        beats = iter(range(ENOUGH // 4))
        for _ in range(MOST_STEPS):
            if looks == ENOUGH:
                break
            is_due = load(self.database).is_due  # Chunks take three looks each, and are as many as there are signals.
            if is_due or next(beats, None) is not None:  # Without scans, each group of chunks waits for a transaction.
                self.world.beat()
            self.world.scan(500)
            self._step(follower)
            self.resume_after_restore(follower)
            match follower.decision:
                case Wait(until=None):
                    waits = 0 if is_due else waits + 1
                case Wait():  # Something is left: a retry is held back.
                    pass
                case _:
                    waits = 0
            if follower.errors or (isinstance(follower.decision, Wait) and follower.decision.until):
                self.now += LONG
            match follower.decision:
                case Range(range=read) if furthest is None or (read.epoch, read.to) > furthest:
                    furthest = read.epoch, read.to
                case _:
                    looks += not is_due
            if waits == 4:
                return
        raise AssertionError(f"the lake does not come to rest: {follower.decision}")

    def _step(self, follower: Follower) -> None:
        earlier = follower.decision
        paused = self._paused(follower)
        self.world.interruption.opened = 0
        self.now += LOOK
        tolerated(follower.step)
        self._opened_tables_are_read()
        if paused is not None:
            pause_lets_no_chunk_be_read(paused, load(self.database).state)
        done = follower.decision
        if done is earlier:  # The step failed before it decided.
            return
        assert self.restored or not isinstance(done, Restored), f"nothing was restored: {done.reason}"
        if isinstance(done, Range):
            assert done.slices or done.idle or done.complete or done.give_up, f"a range without effect: {done.key}"
            assert follower.seen is not None
            ahead = _left_behind(follower.seen, done)
            assert not ahead, f"{done.key} ends below {ahead}, which a range has already read further"

    def _paused(self, follower: Follower) -> State | None:
        """The state of incremental snapshots, if a look has to pause them and the run holds no chunk to be staged."""
        thread = follower.chunks.thread if follower.chunks is not None else None
        if not self.controlled or (thread is not None and not thread.is_free):
            return None
        stored = load(self.database)
        signals = {type(one) for one in stored.commands}
        paused = stored.state.paused or PauseSnapshot in signals
        return stored.state if paused and signals.isdisjoint({ResumeSnapshot, StopSnapshot}) else None

    def _opened_tables_are_read(self) -> None:
        """No current table may show rows of a snapshot before its stream has passed the snapshot's end (C18)."""
        if self.restored:
            return  # Until that is noticed, positions are those of another history.
        for name, object_id, number, end, position in opened_snapshots(self.database):
            read = self.world.is_read(object_id, number, end, position)
            assert read, f"{name} is open at {position}, before what its snapshot has shown or its end {end}"


def _left_behind(seen: Survey, done: Range) -> dict[str, str]:
    """The tables that stand beyond a new range though their changes are captured (A4).

    A retry has the end of its first attempt, and a second instance may end a range earlier (B14).
    """
    facts = seen.facts
    if done.attempt > 1 or done.give_up or facts.captured is None or any(len(m.instances) > 1 for m in facts.members):
        return {}
    streaming = ((m.table.name, m.position) for m in facts.members if m.status == "streaming" and m.position)
    return {name: at.text for name, at in streaming if done.range.to < at <= facts.captured}


def tolerated(action: Callable[[], object]) -> None:
    """What a run reports as an error is no defect if a later run overcomes it; any other exception is one."""
    with contextlib.suppress(MssqlCdcError):
        action()
