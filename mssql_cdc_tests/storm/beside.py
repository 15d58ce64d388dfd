"""Rules of incremental snapshots: beside blocking ones, over the same tables, and beside whatever else happens.

`incremental.py` has a machine for them alone, in which two runs take steps inside each other's.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from mssql_cdc_tests.storm.operations import EVENTS, OWN_CHANGES, Operations, Place
from mssql_cdc_tests.storm.schedule import NAMES, PART, PLACES, WITHIN, of

WRITES = st.tuples(
    st.sampled_from(("emission.commit", "emission.append_offsets", "chunks.write", "small_tables.commit")),
    st.sampled_from((1, 1, 2, 3)),
    st.booleans(),
)
"""A write of an incremental snapshot, which of its calls, and whether the process ends behind it."""
SIGNALS = st.sampled_from(("pause-snapshot", "resume-snapshot", "stop-snapshot"))
BEFORE = st.sampled_from((2, 3, 3, 4, 5, 1, 0))
"""Looks before something happens; at the second or third one, the first chunks are staged."""
BESIDE = ("changes", "changes", "a pause", "a blocking snapshot", "a blocking snapshot", *EVENTS)
"""What happens beside an incremental snapshot."""


class Beside(Operations):
    """The rules."""

    @of("snapshots", "instances", "restores", "users", "runs")
    @rule(name=NAMES, part=PART)
    def incremental_snapshot_is_asked_for(self, name: str, part: str | None = None) -> None:
        self.ask_beside(name, part)

    @of("snapshots")
    @rule(kind=SIGNALS)
    def snapshots_are_controlled(self, kind: str) -> None:
        self.control(kind)

    @of("snapshots", "restores", "instances", "cleanup", "lag")
    @rule(
        name=NAMES,
        rows=st.integers(1, 4),
        captured=st.booleans(),
        before=BEFORE,
        event=st.sampled_from(BESIDE),
        changes=st.none() | OWN_CHANGES,
        kept=st.integers(0, 2),
        place=st.tuples(PLACES, WITHIN) | WRITES,
        scans=st.lists(st.integers(0, 4), max_size=4),
        part=PART,
    )
    def incremental_snapshot_is_disturbed(
        self,
        name: str,
        rows: int,
        captured: bool,  # noqa: FBT001 (drawn)
        before: int,
        event: str,
        changes: list[tuple[int, str | None]] | None,
        kept: int,
        place: Place,
        scans: list[int],
        part: str | None = None,
    ) -> None:
        """Chunks of a table are read, staged and emitted; `before` looks have passed when something happens.

        `captured`: a restore takes back what the snapshot reads only. Without `changes`, all rows are deleted where
        they would be changed. Behind it, each look comes after a scan of so many transactions.
        """
        if changes is None:
            changes = [(key, None) for key in range(rows)]
        if event == "restore" and not captured:
            self.world.back_up()
        self.world.change(*((name, key, f"i{key}") for key in range(rows)))
        if captured:
            self.world.scan(500)
            if event == "restore":
                self.world.back_up()
        self.ask_beside(name, part)
        self.look(before)
        happens = self.event(event, name, [(name, key, value) for key, value in changes], kept)
        self.look_disturbed(happens, place, event)
        for most in scans:
            if most:
                self.world.scan(most)
            self.look()
