"""The description of the storm: what may happen, and what has to hold at every quiet point.

Hypothesis draws what applications, administrators, the capture job, the cleanup job and several runs of the connector
do. Each schedule has a profile, the families of rules that it plays. The world decides how whole it is: `model.py` or
`whole.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.plan.decisions import Range, Snapshot
from mssql_cdc.run.execute import execute
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc_tests.storm.beside import Beside
from mssql_cdc_tests.storm.lake import restore_change_log, unopened
from mssql_cdc_tests.storm.operations import LATER
from mssql_cdc_tests.storm.schedule import CHANGES, FAMILIES, KEYS, NAMES, PART, PLACES, WITHIN, of, profiles, tolerated
from mssql_cdc_tests.storm.worlds import KEYED, PARTS, TABLES, Change

PROFILES = profiles(FAMILIES)
BOUNDS = st.sampled_from((None, None, 1, 2))
"""`max.iteration.transactions`."""
DENIED = st.sampled_from((None, None, None, *TABLES))
"""The table that the login may not read at first."""
OVERRIDES = "snapshot.select.statement.overrides"
OWN_STATEMENTS = st.just({}) | st.just({}) | st.dictionaries(NAMES, st.sampled_from(tuple(PARTS)), max_size=3)
"""`snapshot.select.statement.overrides`: tables, and the conditions of their statements."""
PAUSES = st.sampled_from((None, None, 3, 5))
"""Rules between two quiet points."""


class Storm(Beside):
    """One schedule in one world."""

    @initialize(
        profile=PROFILES,
        changes=st.lists(CHANGES, max_size=4),
        running=st.booleans(),
        bound=BOUNDS,
        pause=PAUSES,
        reads=st.booleans(),
        beside=st.booleans(),
        denied=DENIED,
        own=OWN_STATEMENTS,
    )
    def begin(
        self,
        profile: frozenset[str],
        changes: list[list[Change]],
        running: bool,  # noqa: FBT001 (drawn)
        bound: int | None,
        pause: int | None,
        reads: bool = False,  # noqa: FBT001, FBT002 (drawn)
        beside: bool = False,  # noqa: FBT001, FBT002 (drawn)
        denied: str | None = None,
        own: Mapping[str, str] | None = None,
    ) -> None:
        """The connector begins on tables with rows; `running`: it did so before, `reads`: added columns, too.

        `denied` is a table that its login may not read at first; `own` has the tables of which snapshots read a part.
        """
        self.profile, self.pause, self.beside = profile, pause, beside
        properties = {"incremental.snapshot.added.columns": "true"} if reads else {}
        properties |= {"max.iteration.transactions": f"{bound}"} if bound is not None else {}
        for name, part in (own or {}).items():
            properties[f"{OVERRIDES}.dbo.{name}"] = f"SELECT * FROM dbo.{name} WHERE {part}"
            self.parts[name] = {part}
        if own:
            properties[OVERRIDES] = ",".join(f"dbo.{name}" for name in own)
        if properties:
            self.world.configure(**properties)
            self.database = self.world.database
        self.follower = self.new_follower()
        for one in changes:
            self.world.change(*one)
        if denied is not None:
            self.select_is_revoked(denied)
            self.look(2)
        if running:
            self.come_to_rest()

    # -- the source -------------------------------------------------------------------------------------------

    @rule(changes=CHANGES)
    def transaction(self, changes: list[Change]) -> None:
        self.world.change(*changes)

    @of("lag", "cleanup", "snapshots")
    @rule(name=NAMES, count=st.integers(3, 8))
    def backlog(self, name: str, count: int) -> None:
        for number in range(count):
            self.world.change((name, number % 3, f"b{number}"))

    @rule(name=st.sampled_from(KEYED), key=KEYS, to=KEYS)
    def key_changes(self, name: str, key: int, to: int) -> None:
        self.world.move(name, key, to)

    @of("lag")
    @rule()
    def scan_begins(self) -> None:
        """The next scan sees the log as it is now."""
        self.world.begin_scan()

    @rule(most=st.integers(1, 4))
    def scan(self, most: int) -> None:
        self.world.scan(most)

    @of("lag", "restores")
    @rule()
    def server_restarts(self) -> None:
        self.world.restart()

    @of("instances")
    @rule(name=NAMES)
    def second_instance(self, name: str) -> None:
        self.world.enable(name, more=True)

    @of("instances")
    @rule(name=NAMES)
    def oldest_instance_goes(self, name: str) -> None:
        self.disabled(name, oldest_only=True)

    @of("instances", "snapshots")
    @rule(name=NAMES, changes=CHANGES)
    def disable_change_enable(self, name: str, changes: list[Change]) -> None:
        self.replace_capture(name, changes)

    @of("instances")
    @rule(name=NAMES)
    def disable(self, name: str) -> None:
        self.disabled(name)

    @of("instances")
    @rule(name=NAMES)
    def enable(self, name: str) -> None:
        if name in self.world.dark():
            self.world.enable(name)

    @of("instances", "restores")
    @rule(name=NAMES)
    def drop_and_create(self, name: str) -> None:
        self.world.drop_and_create(name)

    @of("cleanup", "lag", "snapshots")
    @rule(kept=st.integers(0, 6), only=st.none() | NAMES)
    def clean_up(self, kept: int, only: str | None = None) -> None:
        self.cleaned_up(kept, only)

    @of("restores")
    @rule()
    def back_up(self) -> None:
        self.world.back_up()

    @of("restores")
    @rule()
    def restore(self) -> None:
        self.brought_back()

    @of("restores")
    @rule()
    def recovery_fork_is_hidden(self) -> None:
        """The login may not see it any more when it asks for the log's end."""
        self.world.hide_fork()

    @of("lag", "runs")
    @rule(name=NAMES)
    def permission_is_revoked(self, name: str) -> None:
        """The login may not read a change table any more, until an administrator looks after it."""
        self.world.interruption.refused.add(name)

    @of("lag", "snapshots", "runs")
    @rule(name=NAMES)
    def select_is_revoked(self, name: str) -> None:
        """The login may not read a table of the source any more, so that no snapshot can read it, until the same."""
        self.world.interruption.denied.add(name)

    @of("lag", "snapshots", "runs")
    @rule(name=NAMES, looks=st.integers(1, 2))
    def change_log_cannot_be_opened(self, name: str, looks: int = 1) -> None:
        """The store does not answer for one table; the others go on without it."""
        with unopened(self.database, name):
            self.look(looks)

    @of("restores", "runs")
    @rule()
    def operator_resumes(self) -> None:
        self.look()
        tolerated(lambda: self.resume_after_restore(self.follower))

    # -- the connector ----------------------------------------------------------------------------------------

    @rule()
    def step(self) -> None:
        self.look()

    @of("lag", "snapshots")
    @rule(changes=CHANGES, scans=st.integers(0, 2), at=PLACES, within=WITHIN)
    def step_while_the_source_changes(self, changes: list[Change], scans: int, at: int, within: int = 0) -> None:
        def meanwhile() -> None:
            self.world.change(*changes)
            for _ in range(scans):
                self.world.scan(2)

        self.look_while(meanwhile, at, within)

    @of("instances", "snapshots")
    @rule(name=NAMES, changes=CHANGES, at=PLACES, within=WITHIN)
    def step_while_an_instance_is_replaced(self, name: str, changes: list[Change], at: int, within: int = 0) -> None:
        self.look_while(lambda: self.replace_capture(name, changes), at, within)

    @of("cleanup", "snapshots")
    @rule(kept=st.integers(0, 2), at=PLACES, within=WITHIN, only=st.none() | NAMES)
    def step_while_it_is_cleaned_up(self, kept: int, at: int, within: int = 0, only: str | None = None) -> None:
        self.look_while(lambda: self.cleaned_up(kept, only), at, within)

    @of("restores")
    @rule(at=PLACES)
    def step_while_it_is_restored(self, at: int) -> None:
        self.look_while(self.brought_back, at)

    @of("runs", "snapshots")
    @rule(write=st.integers(0, 20), call=st.integers(1, 3), after=st.booleans())
    def killed_step(self, write: int, call: int, after: bool) -> None:  # noqa: FBT001 (drawn)
        self.look_and_die(self.world.writes[write % len(self.world.writes)], call, after=after)

    def write(self, name: str) -> int:
        """The number of the write for `killed_step`, by a part of its name."""
        return next(number for number, target in enumerate(self.world.writes) if name in target)

    @of("runs")
    @rule(changes=CHANGES)
    def late_rival(self, changes: list[Change]) -> None:
        """A second run looks, the first one works on, and the second carries out what it had decided."""
        rival = self.database.named("rival")
        found = self.decided(rival)
        if found is None:
            return
        seen, decision = found
        self.world.change(*changes)
        self.world.scan(3)
        self.look()
        if isinstance(decision, Range):
            tolerated(lambda: execute(rival, seen, decision, merge=self.world.merges))

    @of("runs")
    @rule(later=LATER)
    def rival_looks(self, later: int = 0) -> None:
        """A run surveys and decides; it carries its decision out whenever `rival_acts` says so."""
        rival = self.database.named(f"rival {len(self.rivals)}")
        found = self.decided(rival, later)
        if found is not None:
            self.rivals.append((rival, *found))

    @of("runs")
    @rule(number=st.integers(0, 3), anew=st.booleans())
    def rival_acts(self, number: int, anew: bool = False) -> None:  # noqa: FBT001, FBT002 (drawn)
        """`anew`: a snapshot begins with a survey of its own, as every run takes one."""
        if self.rivals:
            rival, seen, decision = self.rivals.pop(number % len(self.rivals))
            if isinstance(decision, Snapshot) and anew:
                tolerated(lambda: take_snapshot(rival, decision))
            else:
                chunks = IncrementalSnapshots()
                tolerated(lambda: execute(rival, seen, decision, merge=self.world.merges, chunks=chunks))

    @of("users")
    @rule(name=NAMES, back=st.integers(1, 3))
    def user_restores_a_change_log(self, name: str, back: int) -> None:
        if restore_change_log(self.database, name, back):
            self.tampered.add(name)
            self.may_lack.add(name)

    @of("snapshots", "users", "lag", "restores", "runs")
    @rule(name=NAMES, part=PART)
    def snapshot_is_asked_for(self, name: str, part: str | None = None) -> None:
        self.ask(name, part)

    @rule()
    def quiet_point(self) -> None:
        self.come_to_rest()


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
