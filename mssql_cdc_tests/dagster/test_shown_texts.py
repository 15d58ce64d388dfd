"""What every kind of run and the sensor show: no secret of an error that is not ours, and the notices once."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, quote_plus

import dagster as dg
import pytest
from dagster._utils.error import serializable_error_info_from_exc_info

from mssql_cdc.errors import StorageError
from mssql_cdc_tests.dagster.conftest import opened_instance
from mssql_cdc_tests.dagster.kit import READER_PASSWORD, Location, failures, shown
from mssql_cdc_tests.sandbox_source.kit import open_shop

pytestmark = pytest.mark.spark
FORMS = {READER_PASSWORD, quote(READER_PASSWORD, safe=""), quote(READER_PASSWORD), quote_plus(READER_PASSWORD)}


class ForeignError(Exception):
    """What a library raises that knows nothing of ours."""


def fail(error: type[Exception]) -> NoReturn:
    """Raise an error with the password in it, in its context and in its cause."""
    try:
        try:
            raise ValueError(f"PWD={READER_PASSWORD}")
        except ValueError:
            raise KeyError(f"sa:{quote_plus(READER_PASSWORD)}@host")  # noqa: B904 (the context is meant)
    except KeyError as cause:
        raise error(f"no bucket https://sa:{quote(READER_PASSWORD, safe='')}@host") from cause


def of_window(location: Location) -> dg.ExecuteInProcessResult:
    return location.materialize(location.key("orders"), partition=location.window)


def of_sensor(location: Location) -> dg.ExecuteInProcessResult:
    location.tick()
    (request,) = location.requests
    return location.run(request)


def of_snapshot(location: Location) -> dg.ExecuteInProcessResult:
    return location.materialize(location.snapshots, partition="dbo.orders")


def of_current(location: Location) -> dg.ExecuteInProcessResult:
    return location.materialize(location.current("orders"))


def of_check(location: Location) -> dg.ExecuteInProcessResult:
    check = dg.AssetCheckKey(location.key("orders"), "captured_faithfully")
    job = location.repository.get_implicit_global_asset_job_def()
    chosen = job.get_subset(asset_selection=set(), asset_check_selection={check})
    return chosen.execute_in_process(instance=location.instance, raise_on_error=False)


def of_signals(location: Location) -> dg.ExecuteInProcessResult:
    ops = {"ops": {f"signals__{location.names.stem}": {"config": {"tables": ["dbo.orders"]}}}}
    return location.materialize(location.names.extra_key("signals"), run_config=ops)


def of_maintenance(location: Location) -> dg.ExecuteInProcessResult:
    job = location.repository.get_job(f"{location.names.stem}__maintain")
    return job.execute_in_process(instance=location.instance, raise_on_error=False)


def of_records(location: Location) -> dg.ExecuteInProcessResult:
    return location.materialize(location.setup.records_key)


@dataclass(frozen=True)
class Kind:
    """A kind of run: how it is launched, what fails in it, and whether that ends it."""

    launch: Callable[[Location], dg.ExecuteInProcessResult]
    fails: str
    ends: bool = True
    properties: dict[str, str] = field(default_factory=dict)


KINDS = {
    "a window by hand": Kind(of_window, "mssql_cdc.run.requested.survey"),
    "a window of the sensor": Kind(of_sensor, "mssql_cdc.run.follower.execute"),
    "a range of the sensor": Kind(of_sensor, "mssql_cdc.run.requested.execute"),
    "a snapshot": Kind(of_snapshot, "mssql_cdc.run.snapshots.execute"),
    "a current table": Kind(of_current, "mssql_cdc.defs.work.survey"),
    "an executed check": Kind(of_check, "mssql_cdc.defs.asked.judge"),
    "a signal": Kind(of_signals, "mssql_cdc.defs.signals.ask_for_snapshot"),
    "maintenance": Kind(of_maintenance, "mssql_cdc.defs.maintenance.maintain"),
    "an output of records": Kind(of_records, "mssql_cdc.run.records_output.open_output"),
    "records beside a window": Kind(of_sensor, "mssql_cdc.run.records_output.open_output", ends=False),
    "a merge": Kind(of_sensor, "mssql_cdc.lake.current.CurrentTables._plan"),
    "an event": Kind(of_sensor, "mssql_cdc.defs.book.Book._rows", ends=False),
}


@pytest.fixture(scope="module")
def read_so_far(
    server: dict[str, Any], empty_home: Path, tmp_path_factory: pytest.TempPathFactory, spark: object
) -> Iterator[Location]:
    """What `reading` copies. Nothing here writes to the source, so all tests share its database."""
    folder = tmp_path_factory.mktemp("read")
    home = shutil.copytree(empty_home, folder / "home")
    with open_shop(server) as shop:
        shop.set_clock(datetime.now(UTC))
        for name in ("orders", "people"):
            shop.create(name, "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
        with opened_instance(home) as instance:
            streaming = Location.of(shop, folder, instance, snapshot_mode="no_data")
            streaming.settle()
        location = streaming.as_reader()
        shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
        shop.scan()
        yield location


@pytest.fixture
def reading(read_so_far: Location, tmp_path: Path) -> Iterator[Location]:
    """A location whose login has a password that libraries escape, with a row to read and an output of records."""
    (tmp_path / "out").mkdir()
    lake = shutil.copytree(read_so_far.folder / "lake", tmp_path / "lake")
    home = shutil.copytree(read_so_far.folder / "home", tmp_path / "home")
    with opened_instance(home) as instance:
        yield replace(read_so_far, folder=tmp_path, instance=instance).reloaded(delta_warehouse=str(lake))


# A broken table cannot be counted, which its update tells: nothing is logged for its event.
_FAULTS = [(name, error) for error in (ForeignError, StorageError) for name in KINDS]
_FAULTS.remove(("an event", StorageError))


@pytest.mark.parametrize(("name", "error"), _FAULTS)
def test_no_secret_of_an_error_reaches_the_event_log(
    name: str, error: type[Exception], reading: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    kind, location = KINDS[name], reading
    if "records" in name:
        location = location.reloaded(delta_records_output=str(tmp_path / "out" / "records.jsonl"))
    if name == "a window of the sensor":
        location.settle()
        location = location.reloaded(dagster_max_run_seconds=1)
    raised: list[int] = []

    def fails(*_: Any, **__: Any) -> NoReturn:
        raised.append(1)
        fail(error)

    monkeypatch.setattr(kind.fails, fails)
    done = kind.launch(location)
    assert raised, "nothing has failed"
    assert done.success is not kind.ends
    text = shown(location.instance)
    assert "no bucket https://sa:***@host" in text
    assert {form for form in FORMS if form in text} == set()
    if kind.ends:
        assert "no bucket https://sa:***@host" in failures(done)[0]


@pytest.mark.parametrize("error", [ForeignError, StorageError])
def test_no_secret_of_an_error_reaches_a_tick(
    error: type[Exception], reading: Location, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mssql_cdc.defs.sensors.survey", lambda *_, **__: fail(error))
    try:
        reading.tick()
    except Exception:  # noqa: BLE001 (as the daemon does)
        found = serializable_error_info_from_exc_info(sys.exc_info())
    else:
        raise AssertionError("the tick did not fail")
    text = repr(found) + found.to_string()
    assert error.__name__ in text
    assert "no bucket https://sa:***@host" in text
    assert {form for form in FORMS if form in text} == set()


def test_an_error_that_may_quote_a_row_shows_its_place_and_no_value(reading: Location, monkeypatch: pytest.MonkeyPatch):
    row = "a-value-of-a-row"

    def fails(*_: Any, **__: Any) -> NoReturn:
        raise ValueError(row)

    monkeypatch.setattr("mssql_cdc.run.requested.execute", fails)
    done = of_window(reading)
    assert re.search(r"ValueError at \S+test_shown_texts\.py:\d+", failures(done)[0])
    assert row not in shown(reading.instance)


NOTICES = "2 Kafka and Java settings have no meaning here: tasks.max, producer.acks"


@pytest.mark.parametrize("name", [n for n in KINDS if n not in {"a merge", "an event", "records beside a window"}])
def test_what_has_no_meaning_is_said_once_in_the_log_of_every_run(name: str, reading: Location, tmp_path: Path):
    location = reading.reloaded(
        tasks_max="3", producer_acks="all", delta_records_output=str(tmp_path / "out" / "records.jsonl")
    )
    if name == "a window of the sensor":
        location.settle()
        location = location.reloaded(dagster_max_run_seconds=1)
    done = KINDS[name].launch(location)
    assert done.success, failures(done)
    assert len(re.findall(re.escape(NOTICES), location.said(done))) == 1


def test_what_has_no_meaning_is_said_by_the_sensor_once_when_it_is_turned_on(reading: Location):
    location = reading.reloaded(tasks_max="3", producer_acks="all")
    said: list[int] = []
    for at in (1_000.0, 1_000.0, 2_000.0):
        location.started = at
        location.tick()
        said.append(location.tick_log.count(NOTICES))
    assert said == [1, 0, 1]
