"""Dagster under many tables and 60 days of windows: what reporting, the sensor and the webserver cost.

The project's own recorder and book write the events in a run, into Dagster's SQLite storage: those of every table at
the start of a run and while all tables change, and those of one table for all hours of the days, with a clock that goes
from hour to hour. For all tables that would take hours: the others get copies of its materializations in the database.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as db
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable

from mssql_cdc.config import load_connector
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.book import Book
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.handover import STATE_TAG, STREAMING
from mssql_cdc.defs.recorder import Event, Recorder
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import capture_specs, check_specs
from mssql_cdc.run.discover import read_table_list, table_list_path, write_table_list
from mssql_cdc.run.execute import Done
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, Spent, spending
from mssql_cdc_tests.benchmarks.opened import Opened, opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.pages import Pages, webserver
from mssql_cdc_tests.benchmarks.server import Server, change, create_database
from mssql_cdc_tests.benchmarks.states import UNKNOWN_FRESHNESS

HOUR = timedelta(hours=1)
_EVENT = 15.0
"""Milliseconds of CPU that an event may take: 10 of Dagster for SQLite (architecture, section 5), and what we add."""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass
class Counting(Recorder):
    """The recorder, which counts what it writes."""

    count: int = 0

    def write(self, event: Event, *, of_run: bool = True) -> None:
        """Store an event."""
        self.count += 1
        super().write(event, of_run=of_run)


@dataclass
class Place:
    """A code location, its lake, and its Dagster instance."""

    server: Server
    name: str
    folder: Path
    opened: Opened
    setup: Setup
    instance: dg.DagsterInstance
    rows: dict[str, int]

    def begin_windows(self, days: int) -> None:
        """Let the windows begin so many days ago."""
        config = self.folder / f"{self.name}.json"
        since = (datetime.now(UTC) - timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
        listed = table_list_path(config)
        listed.write_text(json.dumps({**json.loads(listed.read_text()), "since": since.isoformat()}))
        old = self.setup
        self.setup = Setup.of(old.connector, old.database, old.tables, warehouse=old.warehouse, since=since)

    def reporting(self, work: Callable[[Counting], None]) -> None:
        """Do this in a run of the capture step's assets."""
        recorders: list[Counting] = []

        @dg.multi_asset(
            name=f"capture__{self.setup.names.stem}",
            specs=capture_specs(self.setup),
            check_specs=check_specs(self.setup),
            can_subset=True,
        )
        def capture(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
            background = Background(context, None, str)  # pyright: ignore[reportArgumentType] (no Spark)
            recorders.append(Counting(context, background))
            work(recorders[0])
            yield from ()

        job = dg.define_asset_job(f"{self.setup.names.stem}__stream", selection=dg.AssetSelection.all())  # pyright: ignore[reportUnknownMemberType]
        made = dg.Definitions(assets=[capture], jobs=[job], executor=dg.in_process_executor)
        key = self.setup.windows.key(datetime.now(UTC))
        found = made.resolve_job_def(job.name).execute_in_process(
            instance=self.instance, partition_key=key, run_config=QUIET
        )
        if not found.success:
            raise RuntimeError("the events could not be written")

    def book(self, recorder: Recorder, **more: Any) -> Book:
        """A book of this database."""
        return Book(self.setup, self.opened.database, recorder, **more)

    def change(self) -> None:
        """Change every table, and wait for capture."""
        with self.server.connect(self.name) as connection:
            for table in self.rows:
                change(connection, table, first=1 + self.rows[table], rows=1)
                self.rows[table] += 1
        wait_for_capture(self.server, self.name, self.rows)


def windows(bench: Bench) -> Iterator[Figure]:
    """Measure reporting, the sensor, and the webserver without and with the days' windows."""
    with bench.sandbox() as server:
        yield from _windows(bench, server)


def _windows(bench: Bench, server: Server) -> Iterator[Figure]:
    sizes = bench.sizes
    tables, days, repeat = sizes.captured, sizes.days, sizes.repeat
    name, own = f"windows{tables}", bench.folder / "windows"
    own.mkdir()
    rows = {f"t{number}": 0 for number in range(tables)}
    create_database(server, name, rows)
    with opened(server, name, own) as connector:
        place = _place(server, name, own, connector, rows)
        bench.say("windows: a run without the days")
        yield from _reports(place, repeat, "without the days")
        yield from _sensor(place, repeat, "without the days")
        with webserver(own) as pages:
            before = dict(_pages(pages, place, repeat))
        for what, (wall, _) in before.items():
            yield Figure(f"{what}, without the days", wall, "ms")
        place.begin_windows(days)
        bench.say(f"windows: {days} days")
        yield from _fill(place, days)
        yield from _reports(place, repeat, f"with {days} days")
        yield from _sensor(place, repeat, f"with {days} days")
        with webserver(own) as pages:
            first = {what: pages.timed(work)[0] for what, work in pages.kinds(_keys(place)).items()}
            after = dict(_pages(pages, place, repeat))
            place.reporting(lambda recorder: _changed(place, place.book(recorder)))
            changed = {what: pages.timed(work)[0] for what, work in pages.kinds(_keys(place)).items()}
            # No daemon runs here, which would judge freshness.
            found = pages.faults(_keys(place)).items()
            faults = [f"{name}: {why}" for name, why in found if why != UNKNOWN_FRESHNESS]
    note = "; ".join(faults)[:2000]
    yield Figure(f"assets that are not green, with {days} days", len(faults), "assets", at_most=0, note=note)
    for what, (wall, cpu) in after.items():
        yield Figure(f"{what}, with {days} days", wall, "ms")
        yield Figure(f"{what}, with {days} days: CPU", cpu, "ms")
        yield Figure(f"{what}, with {days} days, after every table was reported", changed[what], "ms")
        yield Figure(f"{what}, with {days} days, for the first time", first[what], "ms")
        yield Figure(f"{what}, with {days} days against without", wall / before[what][0], "x")


def _place(server: Server, name: str, folder: Path, connector: Opened, rows: dict[str, int]) -> Place:
    config = folder / f"{name}.json"
    loaded = load_connector(config)
    write_table_list(loaded, config, warn=lambda _: None)
    schemas = tuple(schema for schemas in read_table_list(config).values() for schema in schemas)
    setup = Setup.of(loaded, loaded.databases[0], schemas, warehouse=str(folder / name))
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    place = Place(server, name, folder, connector, setup, dg.DagsterInstance.from_config(str(home)), rows)
    place.begin_windows(0)
    return place


def _keys(place: Place) -> Sequence[dg.AssetKey]:
    """The assets of the graph that runs report, the most expensive ones first."""
    return [*place.setup.log_keys, *place.setup.current_keys, place.setup.heartbeat_key]


# -- Reporting ---------------------------------------------------------------------------------------------------


def _reports(place: Place, repeat: int, when: str) -> Iterator[Figure]:
    """A run whose tables all change: what it reports when it begins, and then as often as it may.

    The book's clock shows the newest commit time that was read, so that it is never in a later window than the changes.

    Args:
        place: The code location.
        repeat: Rounds behind each median.
        when: How many windows there are.
    """
    tables, counts, spent, waits = len(place.rows), list[int](), list[Spent](), list[float]()
    opening = list[Spent]()

    def work(recorder: Counting) -> None:
        at = datetime.now(UTC)
        book = place.book(recorder, clock=lambda: at)
        for _ in range(1 + repeat):
            place.change()
            done, one, before = place.opened.whole.step(), Spent(), recorder.count
            at = _newest(done)
            with spending(one):
                with spending(Spent()) as added:
                    book.add(done)
                opening.append(added)
            waits.append(max(60.0, float(sum(bool(one.due) for one in book.accounts.tables.values()))))
            with spending(one):
                book.finish()
                if counts:
                    book.heartbeat()  # Due with every report; the clock does not move on by a minute here.
            counts.append(recorder.count - before)
            spent.append(one)
        until_idle(place.opened.whole)

    place.reporting(work)
    begins, runs = f"a run over {tables} tables begins, {when}", f"a run with {tables} changing tables, {when}"
    yield Figure(f"{begins}: events", counts[0], "events")
    yield Figure(f"{begins}: opening its accounts, CPU", opening[0].cpu, "s")
    yield Figure(f"{begins}: CPU of an event", 1000 * spent[0].cpu / counts[0], "ms", at_most=_EVENT)
    each = statistics.median(counts[1:])
    wait = statistics.median(waits[1:])
    cpu = statistics.median(1000 * one.cpu / count for one, count in zip(spent[1:], counts[1:], strict=True))
    yield Figure(f"{runs}: events of a report", each, "events")
    yield Figure(f"{runs}: seconds between reports", wait, "s")
    yield Figure(f"{runs}: events a minute", 60 * each / wait, "1/min")
    yield Figure(f"{runs}: CPU of an event", cpu, "ms", at_most=_EVENT)
    yield Figure(f"{runs}: share of a core for events", each * cpu / wait / 10, "%")


def _newest(done: Done) -> datetime:
    """The newest commit time that a step read."""
    outcomes = done.range.tables.values() if done.range is not None else ()
    return max(datetime.fromisoformat(one.last) for one in outcomes if one.last)


def _changed(place: Place, book: Book) -> None:
    """Report all tables once more."""
    place.change()
    book.add(place.opened.whole.step())
    book.turn()
    until_idle(place.opened.whole)


def _fill(place: Place, days: int) -> Iterator[Figure]:
    """All hours of the days: one table by the book, the others as its copies."""
    table = place.setup.names.tables[0]
    idle = place.opened.whole.step()
    counted, spent = 0, Spent()

    def work(recorder: Counting) -> None:
        nonlocal counted
        at = place.setup.windows.since + HOUR / 2
        book = place.book(recorder, only={table}, clock=lambda: at)
        with spending(spent):
            for _ in range(24 * days):
                book.add(idle)
                book.turn()
                at += HOUR
        counted = recorder.count

    place.reporting(work)
    yield Figure(f"{days} days of a table's windows: events an hour", counted / (24 * days), "events")
    yield Figure(f"{days} days of a table's windows: CPU of an event", 1000 * spent.cpu / counted, "ms")
    copied = _copy(place, place.setup.names.log_key(table))
    yield Figure(f"{days} days: copies for the other tables", copied, "events")
    size = sum(path.stat().st_size for path in (place.folder / "home").rglob("*.db"))
    yield Figure(f"{days} days of {len(place.rows)} tables: size of Dagster's storage", size / 2**20, "MiB")


def _copy(place: Place, of: dg.AssetKey) -> int:
    """Copy the materializations of a change log for the other tables, with their keys; return how many were made."""
    events, count = SqlEventLogStorageTable, 0
    names = [column.name for column in events.columns if column.name not in {"id", "event", "asset_key"}]
    storage: Any = place.instance.event_log_storage
    with storage.index_connection() as connection:
        for key in place.setup.log_keys:
            if key == of:
                continue
            text = db.func.replace(events.c.event, json.dumps(of.path), json.dumps(key.path))
            kept = (events.c.asset_key == of.to_string()) & (events.c.dagster_event_type == "ASSET_MATERIALIZATION")
            chosen = db.select(*(events.c[name] for name in names), text, db.literal(key.to_string())).where(kept)
            made = connection.execute(events.insert().from_select([*names, "event", "asset_key"], chosen))
            count += made.rowcount
    return count


# -- The sensor and the webserver --------------------------------------------------------------------------------


def _sensor(place: Place, repeat: int, when: str) -> Iterator[Figure]:
    """A tick that surveys the source, and one while a run streams."""
    setup = place.setup
    made = build_definitions(setup.connector, tables=setup.tables, warehouse=setup.warehouse, since=setup.windows.since)
    repository = made.get_repository_def()
    sensor = repository.get_sensor_def(f"{setup.names.stem}__sensor")

    def tick(cursor: str | None) -> str | None:
        context = dg.build_sensor_context(
            instance=place.instance,
            instance_ref=place.instance.get_ref(),
            repository_def=repository,
            resources={},
            cursor=cursor,
            sensor_name=sensor.name,
        )
        return sensor.evaluate_tick(context).cursor

    cursor = tick(None)
    yield from _median(f"a tick that surveys {len(place.rows)} tables, {when}", repeat, lambda: tick(None))
    job = repository.get_job(f"{setup.names.stem}__stream")
    run = place.instance.add_run(
        dg.DagsterRun(job_name=job.name, status=dg.DagsterRunStatus.STARTED, tags={STATE_TAG: STREAMING})
    )
    cursor = tick(cursor)
    yield from _median(f"a tick while a run streams {len(place.rows)} tables, {when}", repeat, lambda: tick(cursor))
    place.instance.delete_run(run.run_id)


def _median(name: str, repeat: int, work: Callable[[], object]) -> Iterator[Figure]:
    taken: list[tuple[float, float]] = []
    for _ in range(repeat):
        begun, cpu = time.perf_counter(), time.process_time()
        work()
        taken.append((1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - cpu)))
    yield Figure(name, statistics.median(wall for wall, _ in taken), "ms")
    yield Figure(f"{name}: CPU", statistics.median(cpu for _, cpu in taken), "ms")


def _pages(pages: Pages, place: Place, repeat: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Milliseconds by the clock and of CPU for the queries of each page, warm."""
    for what, work in pages.kinds(_keys(place)).items():
        work()
        found = [pages.timed(work) for _ in range(repeat)]
        yield what, (statistics.median(wall for wall, _ in found), statistics.median(cpu for _, cpu in found))
