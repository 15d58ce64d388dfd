"""Random schedules of a modelled source and the connector: at each quiet point the lake is the source.

Hypothesis draws what applications, administrators, the capture job, the cleanup job and several runs of the connector
do, and shrinks a schedule that ends wrong. `STORM_EXAMPLES` and `STORM_STEPS` set how much is tried (`make storm`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.plan.decisions import Range, Restored, Wait
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.execute import execute
from mssql_cdc.run.loop import Follower
from mssql_cdc.run.loss import go_on_after_restore
from mssql_cdc.run.standing import standings
from mssql_cdc_tests.lake_kit import column
from mssql_cdc_tests.storm.lake import STEPS, Killed, change_log, killed_at, open_lake, rows_by_the_log, without_spark
from mssql_cdc_tests.storm.source import StormSource

KEYED, KEYLESS = ("orders", "people"), ("notes",)
NAMES = st.sampled_from((*KEYED, *KEYLESS))
KEYS = st.integers(0, 3)
VALUES = st.none() | st.integers(0, 99).map("v{}".format)
CHANGES = st.lists(st.tuples(NAMES, KEYS, VALUES), min_size=1, max_size=3)
ENOUGH = 60
"""Looks that must do for the lake to come to rest."""


class Storm(RuleBasedStateMachine):
    """One schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="storm-"))
        self.source = StormSource(*KEYED, keyless=KEYLESS)
        self.database = open_lake(self.source, self.folder)
        self.follower = Follower(self.database, merge=False)
        self.repairs = 0
        self.local = without_spark()
        self.local.__enter__()

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            self.local.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- the source -------------------------------------------------------------------------------------------

    @initialize(changes=st.lists(CHANGES, max_size=4))
    def begin_with_rows(self, changes: list[list[tuple[str, int, str | None]]]) -> None:
        for one in changes:
            self.source.change(*one)

    @rule(changes=CHANGES)
    def transaction(self, changes: list[tuple[str, int, str | None]]) -> None:
        self.source.change(*changes)

    @rule(name=NAMES, count=st.integers(3, 8))
    def backlog(self, name: str, count: int) -> None:
        for number in range(count):
            self.source.change((name, number % 3, f"b{number}"))

    @rule(name=st.sampled_from(KEYED), key=KEYS, to=KEYS)
    def another_key(self, name: str, key: int, to: int) -> None:
        self.source.move(name, key, to)

    @rule(most=st.integers(1, 4))
    def scan(self, most: int) -> None:
        self.source.scan(most)

    @rule()
    def server_restarts(self) -> None:
        self.source.forget_sessions()

    @rule(name=NAMES)
    def second_instance(self, name: str) -> None:
        self.source.enable(name, column(f"extra_{self.source.number}", "int"))

    @rule(name=NAMES)
    def oldest_instance_goes(self, name: str) -> None:
        if len(self.source.tables[name].instances) > 1:
            self.source.disable(name, oldest_only=True)

    @rule(name=NAMES, changes=CHANGES)
    def disable_change_enable(self, name: str, changes: list[tuple[str, int, str | None]]) -> None:
        self.source.disable(name)
        self.source.change(*changes)
        self.source.enable(name)

    @rule(name=NAMES)
    def drop_and_create(self, name: str) -> None:
        self.source.drop_and_create(name)

    @rule(back=st.integers(0, 6))
    def clean_up(self, back: int) -> None:
        self.source.clean_up(self.source.captured - back)

    @rule(back=st.integers(1, 8))
    def restore(self, back: int) -> None:
        self.source.go_back(self.source.number - back)

    # -- the connector ----------------------------------------------------------------------------------------

    @rule()
    def step(self) -> None:
        self._step(self.follower)

    @rule(changes=CHANGES, scans=st.integers(0, 2))
    def step_while_the_source_changes(self, changes: list[tuple[str, int, str | None]], scans: int) -> None:
        def meanwhile() -> None:
            self.source.change(*(one for one in changes if one[0] in KEYED))
            for _ in range(scans):
                self.source.scan(2)

        self.source.before_read = meanwhile
        self._step(self.follower)
        self.source.before_read = _nothing

    @rule(name=NAMES, changes=CHANGES)
    def step_while_an_instance_is_replaced(self, name: str, changes: list[tuple[str, int, str | None]]) -> None:
        self.source.before_read = lambda: self.disable_change_enable(name, changes)
        self._step(self.follower)
        self.source.before_read = _nothing

    @rule(write=st.sampled_from(STEPS), call=st.integers(1, 3), after=st.booleans())
    def killed_step(self, write: str, call: int, after: bool) -> None:  # noqa: FBT001 (drawn)
        with killed_at(write, call, after=after):
            try:
                self._step(self.follower)
            except Killed:
                self.follower = Follower(self.database, merge=False)

    @rule(changes=CHANGES)
    def late_rival(self, changes: list[tuple[str, int, str | None]]) -> None:
        """A second run looks, the first one works on, and the second carries out what it had decided."""
        rival = self.database.named("rival")
        try:
            seen = survey(rival, currents=False)
        except MssqlCdcError:
            return
        decision = plan(seen.facts)
        self.source.change(*changes)
        self.source.scan(3)
        self._step(self.follower)
        if isinstance(decision, Range):
            _tolerated(lambda: execute(rival, seen, decision, merge=False))

    @rule(name=NAMES)
    def snapshot_is_asked_for(self, name: str) -> None:
        self._ask(name)

    @precondition(lambda self: self.source.captured > 0)
    @rule()
    def quiet_point(self) -> None:
        self.come_to_rest()

    # -- what has to hold -------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Everything is captured and read; what was lost is named, and one snapshot of it repairs it."""
        self._settle()
        named = self._findings()
        for name, table in self.source.tables.items():
            if name not in named:
                self._same(name, keyed=table.keyed)
        for name in named:
            self._ask(name)
        self._settle()
        assert not self._findings(), "a snapshot did not repair what was lost"
        for name, table in self.source.tables.items():
            self._same(name, keyed=table.keyed)

    def _same(self, name: str, *, keyed: bool) -> None:
        wanted = dict(self.source.tables[name].rows)
        found = rows_by_the_log(self.database, name, keyed=keyed)
        assert sorted(found.elements()) == sorted(wanted.items()), f"{name} differs, and nothing says so"
        told = [change["_pos"] for change in change_log(self.database, name)]
        assert len(told) == len(set(told)), f"{name}: a position is there twice"

    def _findings(self) -> set[str]:
        """The tables of which the connector says that changes may be missing; each has a gap in the ledger."""
        seen = survey(self.database, currents=False)
        named = {text.rpartition(".")[2] for text in standings(seen).missing}
        ledger = {text.rpartition(".")[2] for text in open_gaps(self.database.layout, self.database.storage)}
        assert named <= ledger, f"{named - ledger} lost changes, and no gap says so"
        return named

    def _settle(self) -> None:
        follower = self.follower = Follower(self.database, merge=False)
        waits = 0
        for _ in range(ENOUGH):
            self.source.scan(1000)
            self._step(follower)
            if isinstance(follower.decision, Restored):
                go_on_after_restore(self.database, by="the storm")
            waits = waits + 1 if isinstance(follower.decision, Wait) else 0
            if waits == 4:
                return
        raise AssertionError(f"the lake does not come to rest: {follower.decision}")

    def _ask(self, name: str) -> None:
        self.repairs += 1
        ask_for_snapshot(self.database, f"storm-{self.repairs}", [f"dbo.{name}"], channel="storm")

    def _step(self, follower: Follower) -> None:
        _tolerated(follower.step)


def _tolerated(action: Callable[[], object]) -> None:
    """What a run reports as an error is no defect if a later run overcomes it; any other exception is one."""
    with contextlib.suppress(MssqlCdcError):
        action()


def _nothing() -> None:
    """Nothing happens while the connector reads."""


TestStorm = Storm.TestCase
TestStorm.settings = settings(
    max_examples=int(os.environ.get("STORM_EXAMPLES", "20")),
    stateful_step_count=int(os.environ.get("STORM_STEPS", "20")),
    deadline=None,
    print_blob=True,
    phases=[Phase.reuse, Phase.generate, *([Phase.shrink] if "STORM_SHRINK" in os.environ else [])],
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)
