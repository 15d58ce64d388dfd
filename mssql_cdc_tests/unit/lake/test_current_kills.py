"""A process dies before or after any step of a current table's update: the next one goes on, and the rows are right.

The process is a real one and ends with `os._exit`, which runs no clean-up. Kills at random are in
`test_current_tables.py`.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pkgutil
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc.lake import key_index, shares
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.layout import TableHome
from mssql_cdc_tests.lake_kit import append, applied_batch, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_restores import restore
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, Model, apply, created, mutate, newest, rows

pytestmark = pytest.mark.slow

DIED = 9
BATCHES = 8
STEPS = {
    "data file": ("mssql_cdc.lake.apply_task.write_files", 2),
    "vectors": ("mssql_cdc.lake.apply_task.write_vectors", 3),
    "index": ("mssql_cdc.lake.key_index._build", 1),
    "index moved": ("pathlib.Path.replace", 1),
    "entry": ("mssql_cdc.lake.object_store.Folder.put_new", 3),
    "checkpoint": ("mssql_cdc.lake.table_commit.checkpoint", 2),
    "table created": ("mssql_cdc.lake.current.create", 1),
    "one share of several": ("mssql_cdc.lake.current.apply_task", 2),
}
"""Each step's function, and at which of its calls the process dies."""


def die() -> None:
    """End the process as a kill does."""
    os._exit(DIED)


def dying(real: Callable[..., Any], when: str, number: int) -> Callable[..., Any]:
    """The function, before or after whose call of this number the process dies."""
    numbers = itertools.count(1)

    def call(*arguments: Any, **more: Any) -> Any:
        own = next(numbers)  # Shares call it from several threads.
        if when == "before" and own == number:
            die()
        found = real(*arguments, **more)
        if when == "after" and own == number:
            die()
        return found

    return call


class HalfSink:
    """An output stream of which a process writes half before it dies."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def __enter__(self) -> HalfSink:
        return self

    def __exit__(self, *_: object) -> None:
        raise AssertionError("the process lives")

    def write(self, content: bytes) -> None:
        self._sink.write(content[: len(content) // 2])
        self._sink.close()
        die()


class HalfSystem:
    """A file system whose process dies while it writes a file."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def open_output_stream(self, path: str, **more: Any) -> HalfSink:
        return HalfSink(self._system.open_output_stream(path, **more))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes of small files, and a checkpoint after every second commit."""
    monkeypatch.setattr("mssql_cdc.lake.look_up.INDEXED_ROWS", 10)
    monkeypatch.setattr("mssql_cdc.lake.table_commit.CHECKPOINT_INTERVAL", 2)


def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that every update has several shares."""
    monkeypatch.setattr(shares, "MOST_ROWS", 4)
    monkeypatch.setattr(shares, "LOOK_UP_SECONDS", 1e-9)


def victim(folder: str, step: str, when: str) -> None:
    """Update the table batch by batch, and die at the step."""
    monkeypatch = pytest.MonkeyPatch()
    small(monkeypatch)
    if step == "one share of several":
        small_shares(monkeypatch)
    if when == "within":
        build: Callable[..., Any] = key_index._build
        monkeypatch.setattr(key_index, "_build", lambda file, uri, system: build(file, uri, HalfSystem(system)))
    else:
        target, number = STEPS.get(step, ("mssql_cdc.lake.current.commit", 1))
        monkeypatch.setattr(target, dying(pkgutil.resolve_name(target), when, number))
    home = home_in(folder)
    first = applied_batch(home, SCHEMA) + 1 if Path(home.current).exists() else 1
    for batch in range(first, BATCHES + 1):
        apply(home, batch if step != "replacement" else BATCHES, "true")


@pytest.fixture
def told(tmp_path: Path) -> tuple[TableHome, Model]:
    """A change log of some batches, of which none is applied, and the rows that they add up to."""
    random_, home = random.Random(7), home_in(tmp_path)
    model: Model = {key: ("a", None) for key in [*range(40), *range(1000, 1300)]}  # noqa: C420 (the type is wider)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(40)), *created(1, range(1000, 1300)))
    for at in range(2, BATCHES + 1):
        state = append(state, SCHEMA, *mutate(random_, model, at, 6))
    return home, model


def dies(folder: Path, step: str, when: str) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    process = processes.Process(target=victim, args=(str(folder), step, when))
    process.start()
    process.join()
    assert process.exitcode == DIED, "the process did not reach the step"


def goes_on(home: TableHome, model: Model) -> None:
    """Another process applies the rest, batch by batch."""
    logs = CurrentLogs()
    start = applied_batch(home, SCHEMA) + 1 if Path(home.current, "_delta_log").exists() else 1
    for batch in range(start, BATCHES + 1):
        apply(home, batch, "true", logs)
    assert rows(home) == model
    assert newest(home).rows == len(model)
    assert applied_batch(home, SCHEMA) == BATCHES
    versions = sorted(int(path.stem) for path in Path(home.current, "_delta_log").glob("*[0-9].json"))
    assert versions == list(range(len(versions)))


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.long), "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_dies_at_a_step_leaves_a_table_that_the_next_one_continues(
    tmp_path: Path, told: tuple[TableHome, Model], monkeypatch: pytest.MonkeyPatch, step: str, when: str
):
    small(monkeypatch)
    dies(tmp_path, step, when)
    goes_on(*told)


def test_an_index_of_which_half_is_written_is_not_used(
    tmp_path: Path, told: tuple[TableHome, Model], monkeypatch: pytest.MonkeyPatch
):
    small(monkeypatch)
    dies(tmp_path, "index", "within")
    home, _ = told
    (half,) = Path(home.current, key_index.FOLDER).iterdir()
    assert half.stat().st_size < 16 * 340
    goes_on(*told)
    assert [path for path in half.parent.iterdir() if path.suffix == ".idx"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_a_replacement_of_all_rows_replaces_them_once(
    tmp_path: Path, told: tuple[TableHome, Model], monkeypatch: pytest.MonkeyPatch, when: str
):
    small(monkeypatch)
    home, _ = told
    apply(home, 2, "true")
    earlier = newest(home)
    apply(home, 5, "true")
    restore(home, earlier)
    dies(tmp_path, "replacement", when)
    assert (newest(home).restored is None) == (when == "after")
    goes_on(*told)
    operations = [entry["operation"] for entry in DeltaTable(home.current).history()]
    assert operations.count("WRITE") == 1
