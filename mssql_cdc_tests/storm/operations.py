"""Rules that are a whole operation of an administrator, of a server or of a run: several steps in a row, as one.

Drawn one by one, such steps would hardly ever follow each other. Their tables, numbers and pauses are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import rule

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lake.steps import Entry
from mssql_cdc.plan.decisions import Decision, Snapshot
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc_tests.storm.lake import Killed, entry_of, happening_at, is_known, killed_at, unopened
from mssql_cdc_tests.storm.schedule import CHANGES, KEYS, NAMES, PART, PLACES, VALUES, WITHIN, Schedule, of, tolerated
from mssql_cdc_tests.storm.worlds import KEYED, Change

TRANSACTIONS = st.lists(CHANGES, max_size=3)
FEW = st.integers(0, 3)
OWN_CHANGES = st.lists(st.tuples(KEYS, VALUES), max_size=3)
"""Rows of one table."""
SNAPSHOT_WRITES = st.tuples(
    st.sampled_from(
        ("snapshot.chunk_groups.commit", "snapshot.begin.append_offsets", "snapshot.finish.append_offsets")
    ),
    st.sampled_from((1, 1, 1, 2, 3)),
    st.booleans(),
)
"""A write of a snapshot, which of its calls, and whether the process ends behind it."""
LATER = st.integers(0, 2)
"""Seconds by which the clock of another run is ahead, so that its snapshot has another id."""
Place = tuple[int, int] | tuple[str, int, bool]
"""A place between two calls of a look, or a write at which it ends."""
LATE = "changes that wait"
"""They are not captured at once, and others were committed before."""
EVENTS = ("nothing", "changes", LATE, "cleanup", "another instance", "restore", "a table anew", "a stop")


class Operations(Schedule):
    """The operations."""

    def replace_capture(self, name: str, changes: list[Change], instances: int = 1) -> None:
        """Capture of a table is off while rows change; then it has new instances."""
        self.disabled(name)
        self.world.change(*changes)
        for number in range(instances):
            self.world.enable(name, more=number > 0)

    @rule(changes=CHANGES)
    def change_arrives(self, changes: list[Change]) -> None:
        """A transaction is captured and read."""
        self.world.change(*changes)
        self.world.scan(500)
        self.look()

    @of("instances")
    @rule(name=NAMES, keys=st.sets(st.integers(0, 3), max_size=3), gone=st.booleans(), instances=st.integers(1, 2))
    def capture_is_set_up_again(self, name: str, keys: set[int], gone: bool, instances: int) -> None:  # noqa: FBT001 (drawn)
        """A deployment takes capture away, changes or deletes rows of the table, and enables it again."""
        self.replace_capture(name, [(name, key, None if gone else "deployed") for key in sorted(keys)], instances)

    @of("instances")
    @rule(name=NAMES, before=CHANGES, after=CHANGES, scans=st.booleans(), looks=FEW, done=st.booleans())
    def table_gets_a_column(
        self,
        name: str,
        before: list[Change],
        after: list[Change],
        scans: bool,  # noqa: FBT001 (drawn)
        looks: int,
        done: bool,  # noqa: FBT001 (drawn)
    ) -> None:
        """A second instance captures a new column; the first one goes when it has been read, or should have been."""
        self.world.change((name, 0, "before"), *before)
        if scans:
            self.world.scan(500)
        self.world.enable(name, more=True)
        self.world.change((name, 1, "after"), *after)
        self.world.scan(500)
        self.look(looks)
        if done:
            self.disabled(name, oldest_only=True)

    @of("instances", "snapshots")
    @rule(
        name=NAMES,
        other=st.none() | st.sampled_from(KEYED),
        changes=OWN_CHANGES,
        scans=st.booleans(),
        looks=st.integers(0, 2),
    )
    def table_is_renamed(
        self,
        name: str,
        other: str | None,
        changes: list[tuple[int, str | None]],
        scans: bool,  # noqa: FBT001 (drawn)
        looks: int,
    ) -> None:
        """A table gets another name and its own one back, or exchanges it with another table.

        Rows change, and looks come, behind each step. A table that was not read in this epoch would be missed (B15).
        """
        swaps = other is not None and name in KEYED and other != name and not self.parts.keys() & {name, other}
        tables = [name, other] if swaps and other is not None else [name]
        if not all(self.is_read_now(one) for one in tables):
            return
        free = f"{name}_old"
        for old, new in [(name, free), *([(other, name), (free, other)] if swaps else [(free, name)])]:
            self.renamed(old, new)
            if changes:
                self.world.change(*((new, key, value) for key, value in changes))
            if scans:
                self.world.scan(500)
            self.look(looks)
        self.world.change(*((one, 0, "renamed") for one in tables))
        self.come_to_rest()

    @of("instances", "snapshots")
    @rule(
        names=st.permutations(KEYED),
        changes=OWN_CHANGES,
        before=st.integers(0, 2),
        looks=st.integers(1, 3),
    )
    def name_of_a_lost_table_is_taken(
        self, names: list[str], changes: list[tuple[int, str | None]], before: int, looks: int
    ) -> None:
        """A table is no longer captured and gets another name; a second one has its name until both get theirs back."""
        name, other = names
        if not all(self.is_read_now(one) for one in names) or self.parts.keys() & {*names}:
            return
        identity = self.world.interruption.object_id(name)
        self.disabled(name)
        self.look(before)
        for old, new in [(name, free := f"{name}_old"), (other, name)]:
            self.renamed(old, new)
        self.world.change((name, 0, "renamed"), *((name, key, value) for key, value in changes))
        self.world.scan(500)
        self.look(looks)
        with suppress(MssqlCdcError):
            seen = survey(self.database, currents=False)
            told = [gap.reason for gap in load_gaps(self.database.layout, self.database.storage)]
            told += [absent.reason for absent in seen.facts.absent if absent.former is not None]
            lost = (seen.offsets.last_of(identity or 0) or Entry("lost")).status == "lost"
            named = lost or any(f"(object id {identity})" in reason for reason in told)
            assert named, f"nothing says that {name} is no longer captured"
        for old, new in [(name, other), (free, name)]:
            self.renamed(old, new)
        self.come_to_rest()

    @of("cleanup")
    @rule(work=TRANSACTIONS, empty=st.integers(0, 2), kept=st.integers(0, 2), only=st.none() | NAMES)
    def connector_stands_still(self, work: list[list[Change]], empty: int, kept: int, only: str | None) -> None:
        """The connector does not read for as long as changes are kept, or longer."""
        self._write(work)
        self.world.scan(500)
        for _ in range(empty):
            self.world.scan(500)
        self.cleaned_up(kept, only)

    @of("cleanup")
    @rule(
        work=TRANSACTIONS,
        kept=st.integers(0, 2),
        at=st.integers(0, 1),
        within=st.integers(1, 14),
        only=st.none() | NAMES,
        quiet=st.booleans(),
    )
    def changes_go_while_they_are_read(
        self,
        work: list[list[Change]],
        kept: int,
        at: int,
        within: int,
        only: str | None,
        quiet: bool,  # noqa: FBT001 (drawn)
    ) -> None:
        """Cleanup runs in the middle of a look that has found something to read.

        `quiet`: a scan that finds nothing has left a row, up to which cleanup may go.
        """

        def clean_up() -> None:
            if quiet:
                self.world.scan(500)
            self.cleaned_up(kept, only)

        self._write(work)
        self.world.scan(500)
        self.look_while(clean_up, at, within)

    @of("restores")
    @rule(
        before=CHANGES,
        work=TRANSACTIONS,
        snapshot=st.none() | NAMES,
        looks=FEW,
        quiet=st.booleans(),
        after=TRANSACTIONS,
        part=PART,
    )
    def backup_is_brought_back(
        self,
        before: list[Change],
        work: list[list[Change]],
        snapshot: str | None,
        looks: int,
        quiet: bool,  # noqa: FBT001 (drawn)
        after: list[list[Change]],
        part: str | None = None,
    ) -> None:
        """A backup; the connector goes on, reads a table anew, or stands idle for days; then the backup is restored."""
        self.change_arrives(before)
        self.look()
        self.world.back_up()
        self._write(work)
        if snapshot is not None:
            self.ask(snapshot, part)
        self.look(looks)
        if quiet:
            self.quiet_days(early=False, changes=[])
        self.brought_back()
        self._write(after)

    @of("lag", "restores")
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
            self.look(2)

    @of("lag", "snapshots")
    @rule(
        name=NAMES,
        anew=st.booleans(),
        other=NAMES,
        count=st.integers(1, 5),
        early=st.booleans(),
        denied=st.none() | NAMES,
        looks=st.integers(1, 6),
        scans=st.lists(st.integers(1, 4), max_size=2),
        unseen=st.booleans(),
    )
    def snapshot_while_capture_lags(
        self,
        name: str,
        other: str,
        count: int,
        scans: list[int],
        *,
        anew: bool = False,
        early: bool = False,
        denied: str | None = None,
        looks: int = 2,
        unseen: bool = False,
    ) -> None:
        """A snapshot ends behind transactions that are not captured, and the next scans need not reach them.

        `anew`: the table has been created before, so that its stream begins with the snapshot. `denied` is a table
        whose changes the login may not read meanwhile. `unseen`: behind each scan, the table's change log cannot be
        opened at the first look.
        """
        if denied is not None:
            self.world.interruption.refused.add(denied)
            self.world.change((denied, 0, "denied"))
        if anew:
            self.world.drop_and_create(name)
            self.world.scan(500)
        else:
            self.ask(name)
        if early:
            self.world.begin_scan()
        for number in range(count):
            self.world.change((other, number % 3, f"b{number}"))
        self.look(looks)
        for most in scans:
            self.world.scan(most)
            with unopened(self.database, name) if unseen else nullcontext():
                self.look()
            self.look(1 + unseen)

    @of("snapshots")
    @rule(
        name=NAMES,
        rows=st.integers(0, 4),
        anew=st.booleans(),
        captured=st.booleans(),
        event=st.sampled_from(EVENTS),
        changes=st.none() | OWN_CHANGES,
        kept=st.integers(0, 2),
        place=st.tuples(PLACES, WITHIN) | SNAPSHOT_WRITES,
        looks=FEW,
        part=PART,
    )
    def snapshot_is_disturbed(
        self,
        name: str,
        rows: int,
        anew: bool,  # noqa: FBT001 (drawn)
        captured: bool,  # noqa: FBT001 (drawn)
        event: str,
        changes: list[tuple[int, str | None]] | None,
        kept: int,
        place: Place,
        looks: int,
        part: str | None = None,
    ) -> None:
        """A table with so many rows, or a part of it, is read; meanwhile, or while the run is dead, something happens.

        `anew`: the table has been created before, so that this is its first snapshot. Without `changes`, all its rows
        are deleted where they would be changed.
        """
        if changes is None:
            changes = [(key, None) for key in range(rows)]
        if event == "restore":
            self.world.back_up()
        if anew:
            self.world.drop_and_create(name)
        self.world.change(*((name, key, f"s{key}") for key in range(rows)))
        if captured:
            self.world.scan(500)
        if not anew and is_known(self.database, name):  # Else its first snapshot is due.
            self.ask(name, part)
        happens = self.event(event, name, [(name, key, value) for key, value in changes], kept)
        self.look_disturbed(happens, place, event)
        for _ in range(looks):
            if event == LATE:
                self.world.scan(1)
            self.look()

    @of("runs", "snapshots")
    @rule(
        name=NAMES,
        rows=st.integers(0, 3),
        later=LATER,
        by_hand=st.booleans(),
        place=SNAPSHOT_WRITES,
        looks=st.integers(1, 4),
        changes=st.none() | OWN_CHANGES,
    )
    def another_run_is_ahead(
        self,
        name: str,
        rows: int,
        later: int,
        by_hand: bool,  # noqa: FBT001 (drawn)
        place: tuple[str, int, bool],
        looks: int,
        changes: list[tuple[int, str | None]] | None,
    ) -> None:
        """Two runs plan the first snapshot of a table; one takes it, and streams on, while the other begins or reads.

        Without `changes`, all rows are deleted meanwhile.
        """
        if changes is None:
            changes = [(key, None) for key in range(rows)]
        self.world.drop_and_create(name)
        self.world.change(*((name, key, f"s{key}") for key in range(rows)))
        self.world.scan(500)
        run = self.database.named("another run")
        found = self.decided(run, later)
        if found is None or not isinstance(found[1], Snapshot):
            return
        decision = replace(found[1], by_hand=by_hand)

        def ahead() -> None:
            self.look(looks)
            self.world.change(*((name, key, value) for key, value in changes))
            self.world.scan(500)
            self.look()

        part, call, after = place
        write = next(write for write in self.world.writes if part in write)
        with happening_at(write, call, ahead, after=after):
            tolerated(lambda: take_snapshot(run, decision))

    @of("runs", "snapshots")
    @rule(
        name=NAMES,
        rows=st.integers(0, 3),
        place=SNAPSHOT_WRITES,
        groups=st.integers(1, 3),
        changes=OWN_CHANGES,
        scans=st.integers(0, 3),
    )
    def snapshot_is_planned_twice(
        self,
        name: str,
        rows: int,
        place: tuple[str, int, bool],
        groups: int,
        changes: list[tuple[int, str | None]],
        scans: int,
    ) -> None:
        """Two runs plan a first snapshot in one second; one takes it, and a third resumes the other plan beside it.

        The third ends behind so many groups; the changes come between what the two read.
        """
        self.world.drop_and_create(name)
        self.world.change(*((name, key, f"s{key}") for key in range(rows)))
        self.world.scan(500)
        run, second, third = (self.database.named(f"run {number}") for number in range(3))
        found = self.decided(run)
        if found is None or not isinstance(found[1], Snapshot):
            return
        decision, begins = found[1], next(write for write in self.world.writes if "snapshot.begin" in write)

        def resumed_beside() -> None:
            for key, value in changes:
                self.world.change((name, key, value))
            with killed_at("mssql_cdc.capture.snapshot.chunk_groups.commit", groups, after=True), suppress(Killed):
                tolerated(lambda: take_snapshot(third, decision))

        def planned_beside() -> None:
            with killed_at(begins, 1, after=False), suppress(Killed):
                tolerated(lambda: take_snapshot(second, decision))

        part, call, after = place
        write = next(write for write in self.world.writes if part in write)
        with happening_at(begins, 1, planned_beside), happening_at(write, call, resumed_beside, after=after):
            tolerated(lambda: take_snapshot(run, decision))
        for _ in range(scans):
            self.world.scan(1)
            self.look()

    @of("runs")
    @rule(
        work=TRANSACTIONS,
        write=st.sampled_from(("range.commit", "range.append_offsets")),
        call=st.integers(1, 2),
        after=st.booleans(),
        looks=FEW,
        restored=st.none() | TRANSACTIONS,
    )
    def run_dies_in_a_range(
        self,
        work: list[list[Change]],
        write: str,
        call: int,
        after: bool,  # noqa: FBT001 (drawn)
        looks: int,
        restored: list[list[Change]] | None = None,
    ) -> None:
        """A run ends between two writes of a range, and others go on, perhaps on a source without the range.

        Nothing but the commits of the dead run tells then that the source was restored.
        """
        if restored is not None:
            self.world.back_up()
        self._write(work)
        self.world.scan(500)
        self.look_and_die(f"mssql_cdc.capture.{write}", call, after=after)
        if restored is not None:
            self.brought_back()
            self._write(restored)
            self.world.scan(500)
        self.look(looks)

    def is_read_now(self, name: str) -> bool:
        """Whether a table is captured, streams in this epoch, and cannot have lost changes."""
        offsets, entry = self.database.offsets(), entry_of(self.database, name)
        if self.restored or entry is None or name in {*self.may_lack, *self.world.dark()}:
            return False
        same = entry.object_id == self.world.interruption.object_id(name) and entry.object_id in offsets.identities
        return same and entry.status == "streaming" and entry.epoch == offsets.epoch

    def look_disturbed(self, happens: Callable[[], None], place: Place, event: str) -> None:
        """Something happens between two calls of a look, or while a run is dead that had come to a write."""
        if len(place) == 2:
            at, within = place
            self.look_while(happens, at, 0 if event == "restore" else within)
        else:
            part, call, after = place
            write = next(write for write in self.world.writes if part in write)
            self.look_and_die(write, call, after=after)
            happens()

    def decided(self, run: Database, later: int = 0) -> tuple[Survey, Decision] | None:
        """What another run sees and decides, by a clock that is so many seconds ahead; None: it cannot look."""
        try:
            seen = survey(run, now=self.now + timedelta(seconds=later), currents=self.world.merges)
        except MssqlCdcError:
            return None
        return seen, plan(seen.facts)

    def _write(self, work: list[list[Change]]) -> None:
        for changes in work:
            self.world.change(*changes)

    def event(self, event: str, name: str, changes: list[Change], kept: int) -> Callable[[], None]:
        def change() -> None:
            self.world.change(*changes)
            self.world.scan(500)

        def change_late() -> None:
            self.world.change(("people", 0, "late"))
            self.world.change(*changes)

        def replace() -> None:
            self.replace_capture(name, changes)

        def make_anew() -> None:
            self.world.drop_and_create(name)

        def clean_up() -> None:
            change()
            self.cleaned_up(kept)

        def stop() -> None:
            change()
            self.control("stop-snapshot")

        def pause() -> None:
            change()
            self.control("pause-snapshot")

        def snapshot() -> None:
            change()
            self.ask(name)

        def nothing() -> None:
            """The run is started again."""

        return {
            "nothing": nothing,
            "changes": change,
            LATE: change_late,
            "cleanup": clean_up,
            "another instance": replace,
            "restore": self.brought_back,
            "a table anew": make_anew,
            "a stop": stop,
            "a pause": pause,
            "a blocking snapshot": snapshot,
        }[event]
