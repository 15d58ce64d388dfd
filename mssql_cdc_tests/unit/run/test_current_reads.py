"""The Delta log of a current table is read once in the step that changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.database import Database
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import current, model_database
from mssql_cdc_tests.spark.model_source import ModelSource

TABLES = ("orders", "people")


@pytest.fixture
def source() -> ModelSource:
    return ModelSource(*TABLES)


@pytest.fixture
def database(source: ModelSource, tmp_path: Path) -> Database:
    return model_database(source, None, tmp_path, snapshot_mode="no_data")  # type: ignore[arg-type]


@pytest.fixture
def follower(source: ModelSource, database: Database) -> Follower:
    """It has read everything, and each current table has a row."""
    found = Follower(database)
    rest(found)
    change(source, found)
    rest(found)
    return found


def rest(follower: Follower) -> None:
    """Read everything."""
    for _ in range(20):
        if isinstance(follower.step().decision, Wait):
            return
    raise AssertionError("the follower does not come to rest")


def change(source: ModelSource, follower: Follower) -> Done:
    """A step that finds a change of each table."""
    for name in source.tables:
        source.put(name, 1, f"at {source.number}")
    source.capture()
    return follower.step()


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the folders of current tables that are opened, and the entries of their logs that are asked for."""
    found: Counter[str] = Counter()
    made, read = Folder.__init__, Folder.read

    def opening(folder: Folder, uri: str, *more: Any) -> None:
        found["opened"] += uri.endswith("/current")
        made(folder, uri, *more)

    def reading(folder: Folder, path: str) -> bytes | None:
        found["read"] += folder._uri.endswith("/current")
        return read(folder, path)

    with patch.object(Folder, "__init__", opening), patch.object(Folder, "read", reading):
        yield found


def test_a_step_asks_for_two_entries_of_each_current_table(source: ModelSource, follower: Follower):
    """The newest known one, and the one behind it. An auditor: for twice as many, in four folders opened anew."""
    change(source, follower)
    with counted() as asked:
        done = change(source, follower)
    assert len(done.merged.tables) == len(TABLES)
    assert asked == Counter(read=2 * len(TABLES))


def test_a_table_that_was_just_updated_is_not_read_to_learn_that_it_has_every_row(
    source: ModelSource, follower: Follower
):
    change(source, follower)
    with counted() as asked:
        assert isinstance(follower.step().decision, Wait)
    assert not asked


def test_a_table_that_a_user_changed_between_two_steps_is_updated_from_what_it_is_now(
    source: ModelSource, database: Database, follower: Follower
):
    change(source, follower)
    DeltaTable(f"{database.layout.root}/dbo/orders/current").optimize.compact()
    DeltaTable(f"{database.layout.root}/dbo/people/current").restore(0)
    done = change(source, follower)
    assert not done.merged.errors
    assert {name: current(database, name) for name in TABLES} == {name: source.tables[name].rows for name in TABLES}
