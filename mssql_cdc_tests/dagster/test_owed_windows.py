"""Which windows a run reports when it begins, over many tables and weeks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from mssql_cdc.defs.accounts import owed_windows
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.windows import Windows
from mssql_cdc_tests.dagster.kit import connector, table

NOW = datetime.now(UTC).replace(minute=47)
SINCE = NOW.replace(minute=0, second=0, microsecond=0) - timedelta(days=60)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def _setup(tables: int) -> Setup:
    one = connector()
    schemas = tuple(table(f"t{number}") for number in range(tables))
    return Setup.of(one, "shop", schemas, warehouse="/nowhere", since=SINCE)


def test_the_windows_are_listed_once_for_all_tables(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch):
    setup, listed, between = _setup(40), list[datetime](), Windows.between

    def counted(windows: Windows, *bounds: Any) -> Iterator[datetime]:
        listed.append(windows.since)
        return between(windows, *bounds)

    def refused(windows: Windows) -> Any:
        raise AssertionError(f"croniter would run for each window of {windows.name}")

    monkeypatch.setattr(Windows, "between", counted)
    monkeypatch.setattr(Windows, "definition", property(refused))
    owed = owed_windows(setup, instance, setup.names.tables, NOW)
    assert listed == [SINCE]
    assert {len(one.missing) for one in owed.values()} == {60 * 24 + 1}
    assert {len(one.unfinished) for one in owed.values()} == {0}
    assert set(owed) == set(setup.names.tables)
    assert owed_windows(setup, instance, (), NOW) == {}
    assert listed == [SINCE], "a run that knows its tables asks for nothing"


@pytest.mark.parametrize("complete", [True, False, None])
def test_the_newest_windows_are_owed_until_they_are_reported_after_their_end(
    instance: dg.DagsterInstance, complete: Any
):
    setup = _setup(2)
    first, second = setup.names.tables
    for hours in (3, 2, 1):
        window = setup.windows.start(NOW - timedelta(hours=hours))
        metadata = {} if complete is None else {"mssql_cdc/complete": complete or hours == 3}
        instance.report_runless_asset_event(
            dg.AssetMaterialization(setup.names.log_key(first), partition=setup.windows.key(window), metadata=metadata)
        )
    owed = owed_windows(setup, instance, setup.names.tables, NOW)
    older, newest = (setup.windows.start(NOW - timedelta(hours=hours)) for hours in (2, 1))
    assert owed[first].unfinished == {True: set(), False: {newest, older}, None: {newest}}[complete]
    assert not {older, newest} & owed[first].missing
    assert setup.windows.start(NOW) in owed[first].missing, "it was never reported"
    assert len(owed[second].missing) == 60 * 24 + 1, "the tables have events of their own"


def test_the_newest_window_is_owed_although_an_older_one_was_reported_since(instance: dg.DagsterInstance):
    """An operator, or a run that makes up for missing windows, reports old ones behind it."""
    setup = _setup(1)
    (table,) = setup.names.tables
    for hours, complete in ((1, False), (9, True)):
        window = setup.windows.key(NOW - timedelta(hours=hours))
        metadata = {"mssql_cdc/complete": complete}
        instance.report_runless_asset_event(
            dg.AssetMaterialization(setup.names.log_key(table), partition=window, metadata=metadata)
        )
    owed = owed_windows(setup, instance, [table], NOW)
    assert owed[table].unfinished == {setup.windows.start(NOW - timedelta(hours=1))}
