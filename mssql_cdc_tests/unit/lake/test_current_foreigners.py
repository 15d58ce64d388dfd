"""Any history of a current table between whose updates others write to it, and writers with stale plans come late."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import FencedError
from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current import CurrentResult
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.data_file import DataFile
from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.read import query
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lake.vectors import read_vector, write_vectors
from mssql_cdc_tests.examples import examples
from mssql_cdc_tests.lake_kit import Change, append, applied_batch, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_restores import commit_of, restore
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, Model, apply, mutate, newest, plan_of

Row = tuple[str, str | None, bool]
"""Name, note, and whether the note is unknown."""


@dataclass
class World:
    """A table, what its source holds, and what the table is to hold."""

    home: TableHome
    random: random.Random
    state: TableState
    vectors: Vectors = "auto"
    logs: CurrentLogs = field(default_factory=CurrentLogs)
    source: Model = field(default_factory=Model)
    batches: list[list[Change]] = field(default_factory=list[list[Change]])
    expected: dict[int, Row] = field(default_factory=dict[int, Row])
    past: list[TableLog] = field(default_factory=list[TableLog])
    applied: int = 0
    restored: bool = False
    late: list[tuple[int, Callable[[], CurrentResult]]] = field(
        default_factory=list[tuple[int, Callable[[], CurrentResult]]]
    )

    def changed(self) -> None:
        """Some batches of changes at the source."""
        for _ in range(self.random.randint(1, 3)):
            batch = mutate(self.random, self.source, 10 * (len(self.batches) + 1), self.random.randint(1, 30))
            self.state = append(self.state, SCHEMA, *batch)
            self.batches.append(batch)

    def reaches(self, batch: int) -> None:
        """What the table is to hold when it has reached a batch."""
        if self.restored:
            self.expected, self.applied, self.restored = {}, 0, False
        for changes in self.batches[self.applied : batch]:
            for change in changes:
                self._told(change)
        self.applied = max(batch, self.applied)

    def _told(self, change: Change) -> None:
        image = change.before if change.op == "d" else change.after
        assert image is not None
        key = image["id"]
        if change.op == "d":
            self.expected.pop(key, None)
        elif change.unavailable:
            _, note, unknown = self.expected.get(key, ("", None, True))
            self.expected[key] = (image["name"], note, unknown)
        else:
            self.expected[key] = (image["name"], image["note"], False)

    def updated(self) -> None:
        """Our own update, to the newest batch or, at times, to an earlier one."""
        most = len(self.batches)
        up_to = most if self.random.random() < 0.7 else self.random.randint(1, most)
        found = apply(self.home, up_to, self.vectors, self.logs if self.random.random() < 0.7 else None)
        self.reaches(found.batch)
        assert found.batch == max(up_to, self.applied)
        self.past.append(newest(self.home))

    def same(self) -> None:
        """The table holds what it is to hold, unless it was restored a moment ago."""
        found: dict[int, Row] = {}
        for batch in query(self.home.current, "SELECT id, name, note, _unavailable FROM t"):
            for row in batch.to_pylist():
                assert row["id"] not in found, "a key twice"
                found[row["id"]] = (row["name"], row["note"], row["_unavailable"] is not None)
        assert found == self.expected
        log = newest(self.home)
        assert log.rows == len(found)
        assert applied_batch(self.home, SCHEMA) == self.applied

    @property
    def plain(self) -> bool:
        """Whether `deltalake` may write to the table: it does not know deletion vectors."""
        return not newest(self.home).has_vectors

    def table(self) -> DeltaTable:
        """The table as a user opens it."""
        return DeltaTable(self.home.current)


def optimize(world: World) -> None:
    if world.plain:
        world.table().optimize.compact()
    else:
        purge(world)


def vacuum(world: World) -> None:
    if world.plain:
        world.table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        world.past.clear()
    else:
        commit_of(world.home, "VACUUM END", [])


def delete(world: World) -> None:
    """A user's DELETE: the rows stay away until their next change."""
    if not world.expected:
        return
    keys = world.random.sample(sorted(world.expected), min(3, len(world.expected)))
    for key in keys:
        del world.expected[key]
    if world.plain:
        world.table().delete(f"id IN ({', '.join(map(str, keys))})")
    else:
        delete_with_vectors(world, keys)


def delete_with_vectors(world: World, keys: list[int]) -> None:
    log, system, actions = newest(world.home), file_system(world.home.current), list[dict[str, Any]]()
    for file in log.files.values():
        data = DataFile(file, log.schema_json, system)
        dead = read_vector(file.vector, system)
        ids = data.column("id").to_pylist()
        gone = dead | type(dead)([row for row, key in enumerate(ids) if key in keys])
        if gone != dead:
            (vector,) = write_vectors([gone], system)
            actions += [file.remove(log.committed), file.add(vector=vector, rows=data.rows)]  # type: ignore[arg-type]
        data.close()
    commit_of(world.home, "DELETE", actions)


def purge(world: World) -> None:
    """As REORG … APPLY (PURGE) does it: a file with a vector becomes one without the deleted rows."""
    log, system, actions = newest(world.home), file_system(world.home.current), list[dict[str, Any]]()
    target = FileTarget(world.home.current, log.schema_json, ("id", "_key", "_pos", "_batch"))
    for file in log.files.values():
        data = DataFile(file, log.schema_json, system)
        rows = [batch for part in data.remaining(read_vector(file.vector, system)) for batch in part.to_batches()]
        actions += [file.remove(log.committed), *(one.add() for one in write_files(rows, target))]  # type: ignore[arg-type]
        data.close()
    commit_of(world.home, "REORG", actions)


def restored(world: World) -> None:
    if not world.past:
        return
    earlier = world.random.choice(world.past)
    if world.plain and earlier.version < newest(world.home).version:
        world.table().restore(earlier.version)
    else:
        restore(world.home, earlier)
    world.restored = True


def stale(world: World) -> None:
    """A writer makes its plan now, to any batch, and commits later."""
    up_to = world.random.randint(1, len(world.batches))
    if not world.restored and up_to > world.applied:
        world.late.append((up_to, plan_of(world.home, up_to, world.vectors)))


def late(world: World) -> None:
    """The writers with plans of before commit now."""
    while world.late:
        up_to, commit = world.late.pop()
        before = newest(world.home).version
        try:
            commit()
        except FencedError:
            assert newest(world.home).version == before
        else:
            assert not world.restored
            world.reaches(up_to)


FOREIGN = {one.__name__: one for one in (optimize, vacuum, delete, purge, restored, stale, late)}
STEPS = st.lists(st.sampled_from(sorted(FOREIGN)), max_size=3)


@pytest.mark.parametrize("vectors", ["auto", "true", "false"])
@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rounds=st.lists(STEPS, min_size=2, max_size=8))
def test_any_history_with_other_writers_in_between_is_the_model(
    tmp_path_factory: pytest.TempPathFactory, vectors: Vectors, seed: int, rounds: list[list[str]]
):
    home = home_in(tmp_path_factory.mktemp("lake"))
    world = World(home, random.Random(seed), change_log(home, SCHEMA), vectors)
    world.changed()
    world.updated()
    for steps in rounds:
        world.changed()
        for step in steps:
            FOREIGN[step](world)
        if world.random.random() < 0.3:
            checkpoint(home.current)
        if not world.restored:
            world.same()
        world.updated()
        world.same()
