"""Changes that come late are sent, whenever writing ends and wherever it goes on (rules A1, A4).

An output that keeps its state has each change once. A consumer that goes on at offsets may get one again, and misses
none. Both have the changes of each table in order.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mssql_cdc.records import database_records, pieces
from mssql_cdc.records.resume import Resumed, resume
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered
from mssql_cdc.records.write import records_behind
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

NAMES = ("a", "b", "c")
Sent = tuple[str, int]


@dataclass(frozen=True)
class Step:
    """Commits, each of some tables; a cut with those tables that are read; then the windows that are written.

    `back` is how many records a consumer had not committed when it ended.
    """

    commits: Sequence[set[str]]
    read: set[str]
    windows: int
    back: int


SOME = st.sets(st.sampled_from(NAMES), min_size=1)
WINDOWS = st.sampled_from([0, 1, 2, 3, 1000])
STEPS = st.lists(st.builds(Step, st.lists(SOME, max_size=5), SOME, WINDOWS, st.integers(0, 3)), max_size=5)
GIVEN_UP = [Step([{"a", "b"}] * 5, {"a"}, 1000, 0), Step([], {"a", "b"}, 1, 0)]
"""b is read late, and writing ends behind the first of its changes."""


@dataclass
class Course:
    """A lake whose tables are read together or late, and what was changed: a key is the number of its commit."""

    lake: Lake
    commit: int = 0
    changed: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in NAMES})
    unread: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in NAMES})

    def __post_init__(self) -> None:
        self.schemas = {name: self.lake.add(table(name)) for name in NAMES}
        self.play(Step([set(NAMES)], set(NAMES), 0, 0))

    def play(self, step: Step) -> None:
        """Change the tables, and read some of them."""
        for names in step.commits:
            self.commit += 1
            for name in names:
                self.changed[name].append(self.commit)
                self.unread[name].append(self.commit)
        for name in step.read:
            if self.unread[name]:
                own = (Change(at, "c", after={"id": at}, sequence=ord(name)) for at in self.unread[name])
                self.lake.append(self.schemas[name], *own)
                self.unread[name] = []
        self.lake.cut(self.commit, only=step.read)


def taken(found: Iterable[Rendered]) -> list[tuple[Sent, dict[str, Any]]]:
    """The changes among records, each with its offset."""
    rows = [row for one in found for row in one.records.to_pylist()]
    return [
        ((row["topic"].rsplit(".")[-1], json.loads(row["key"])["id"]), json.loads(row["source_offset"])) for row in rows
    ]


def of_tables(sent: Iterable[Sent]) -> dict[str, list[int]]:
    """The keys of each table, in order."""
    found: dict[str, list[int]] = {name: [] for name in NAMES}
    for name, key in sent:
        found[name].append(key)
    return found


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(STEPS, st.integers(1, 5))
@example(GIVEN_UP, 1)
def test_late_changes_are_sent_once_after_a_state_and_at_least_once_after_an_offset(steps: list[Step], rows: int):
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(pieces.streamed.__kwdefaults__, {"window_rows": rows}),
    ):
        course = Course(Lake(Path(folder), {"include.schema.changes": False}))
        connector = course.lake.connector
        state: StreamState | None = None
        written: list[Sent] = []
        had: list[tuple[Sent, dict[str, Any]]] = []
        for step in [*steps, Step([], set(NAMES), 1000, 0)]:
            course.play(step)
            for one in islice(database_records(connector, DATABASE, state=state), step.windows):
                state = one.state if state is None else StreamState.from_json(one.state.to_json())
                written += [sent for sent, _ in taken([one])]
            had = had[: max(0, len(had) - step.back)]
            begins = resume(connector, DATABASE, SourceOffset.of(had[-1][1])) if had else Resumed(None)
            assert begins is not None
            had += taken(islice(records_behind(connector, DATABASE, begins), step.windows))
        assert of_tables(written) == course.changed
        assert of_tables(dict.fromkeys(sent for sent, _ in had)) == course.changed
