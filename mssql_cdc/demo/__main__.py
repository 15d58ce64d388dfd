"""The command `make demo`: starts the sandbox, workload, Dagster and the live table, and stops them at the end.

`--headless --seconds N` runs without the webserver, then stops the workload, waits until the lake has caught up,
compares every table with the source, and exits with 0 only if all match and every kind of change has arrived.
At the end and on Ctrl-C it says how far the current tables were behind: median, 95 % and worst.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyodbc

from mssql_cdc.capture.database import Database
from mssql_cdc.cli.output import screen
from mssql_cdc.config import load_connector
from mssql_cdc.demo import table as live
from mssql_cdc.demo.caught_up import demo_database, is_streaming, wait_until_caught_up
from mssql_cdc.demo.evidence import findings
from mssql_cdc.demo.lags import LagReader, LagSamples, write
from mssql_cdc.demo.ports import free_port, is_taken
from mssql_cdc.demo.processes import Processes
from mssql_cdc.demo.workload import Workload
from mssql_cdc.source.sqlserver.connect import connection_string
from mssql_cdc.spark.remote import TOKEN_VARIABLE

ROOT = Path(".demo")
CONNECTOR = "demo"
DATABASE = "shop"
TABLE_SECONDS = 3.0
START_SECONDS = 120
CATCH_UP_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed arguments; `seconds` None: until Ctrl-C."""

    headless: bool
    seconds: float | None
    port: int
    json: Path | None = None


def parse(arguments: list[str]) -> Arguments:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="make demo", description=__doc__, epilog='example: make demo ARGS="--headless --seconds 90"'
    )
    parser.add_argument("--headless", action="store_true", help="without the webserver; checks everything at the end")
    parser.add_argument("--seconds", type=float, help="stop the workload after this long (default: until Ctrl-C)")
    parser.add_argument("--port", type=int, default=3000, help="port of the UI (default: 3000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lags of the current tables at the end")
    found = parser.parse_args(arguments)
    return Arguments(found.headless, found.seconds or (90.0 if found.headless else None), found.port, found.json)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and return the exit code, which is 0 if everything expected has happened."""
    wanted = parse(sys.argv[1:] if arguments is None else arguments)
    if importlib.util.find_spec("mssql_sandbox") is None:
        say("The demo needs the sandbox, which is not installed. In a clone: pip install ./sandbox")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    shutil.rmtree(ROOT, ignore_errors=True)
    (ROOT / "connectors").mkdir(parents=True)
    with Processes(ROOT) as processes:
        try:
            return _run(wanted, processes)
        except KeyboardInterrupt:
            say("Stopping.")
            return 0 if not wanted.headless else 1


def _run(wanted: Arguments, processes: Processes) -> int:
    server = _start_sandbox(processes)
    spark_port = free_port()
    config = _write_connector(server, spark_port)
    _start_spark(processes, spark_port)
    say("Discovering the captured tables …")
    _command("discover", "--config", str(config))
    port = free_port() if is_taken(wanted.port) else wanted.port
    _start_dagster(processes, headless=wanted.headless, port=port)
    if not wanted.headless:
        say(f"Dagster's UI: http://127.0.0.1:{port}")
    database = demo_database(config)
    workload = Workload(odbc(config))
    workload.start()
    say("Workload started; the initial snapshot runs first.")
    _watch(wanted, processes, workload, database, config)
    workload.stop()
    if not wanted.headless:
        return 0
    say(f"Workload stopped after {workload.transactions:,} transactions; waiting until the lake has caught up …")
    wait_until_caught_up(database, timeout=CATCH_UP_SECONDS, check=processes.check)
    processes.stop("dagster")
    return _verify(config, database)


def _verify(config: Path, database: Database) -> int:
    say("Comparing every table cell by cell with `mssql-cdc check` …")
    checked = _command("check", "--config", str(config), must=False)
    with pyodbc.connect(odbc(config), autocommit=True) as connection:
        say(live.render(live.lines(connection, database)))
    found = findings(database.layout)
    for finding in found:
        expected = f"at least {finding.wanted:,}" if finding.wanted else "none"
        say(f"{'ok ' if finding.ok else 'BAD'} {finding.what}: {finding.found:,} ({expected} expected)")
    complete = checked == 0 and all(finding.ok for finding in found)
    say("Source and lake match." if complete else "The demo found a difference; see above.")
    return 0 if complete else 5


def _watch(
    wanted: Arguments,
    processes: Processes,
    workload: Workload,
    database: Database,
    config: Path,
) -> None:
    """Show the live table until the snapshot has completed, then for the requested time (or forever)."""
    begun = time.monotonic()
    streaming: float | None = None
    with (
        _sampled(database, wanted.json) as samples,
        pyodbc.connect(odbc(config), autocommit=True) as connection,
        screen(sys.stdout) as show,
    ):
        while streaming is None or wanted.seconds is None or time.monotonic() < streaming + wanted.seconds:
            processes.check()
            if workload.error is not None:
                return
            if streaming is None and is_streaming(database):
                workload.streaming.set()
                samples.counting.set()
                streaming = time.monotonic()
            if streaming is None and time.monotonic() > begun + CATCH_UP_SECONDS:
                said = "\n".join(f"{name}.log ends with:\n{processes.said(name)}" for name in ("spark", "dagster"))
                raise TimeoutError(f"The initial snapshot did not complete in {CATCH_UP_SECONDS} s.\n{said}")
            state = "initial snapshot" if streaming is None else "streaming"
            note = f"{workload.transactions:,} transactions; {state}. Ctrl-C stops everything."
            show(live.as_table(live.lines(connection, database, lags=samples.latest)), [note])
            time.sleep(TABLE_SECONDS)


@contextmanager
def _sampled(database: Database, file: Path | None) -> Generator[LagSamples]:
    """Sample the lags; at the end, even after an interrupt, say what they were.

    Args:
        database: The database.
        file: Where to write the figures as well.
    """
    samples = LagSamples(LagReader(database.apart()))
    samples.start()
    try:
        yield samples
    finally:
        figures = samples.stop()
        if figures is not None:
            say(figures.text)
            if file is not None:
                write(figures, file)


def _start_sandbox(processes: Processes) -> dict[str, str]:
    say("Starting the sandbox with its sample database (200,000 rows) …")
    ready = ROOT / "sandbox.json"
    script = Path(__file__).parent / "database.sql"
    processes.start(
        "sandbox",
        [sys.executable, "-m", "mssql_sandbox", "--port", "0", "--script", str(script),
         "--capture-interval", "1", "--ready-file", str(ready)],
    )  # fmt: skip
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        processes.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"The sandbox was not ready after {START_SECONDS} s; see {ROOT / 'sandbox.log'}")
        time.sleep(0.1)
    return json.loads(ready.read_text())


def _write_connector(server: dict[str, str], spark_port: int) -> Path:
    """Write a connector as in Debezium's documentation, with the sandbox's address but without its password.

    Args:
        server: What the sandbox reports about itself.
        spark_port: The port of the Spark Connect server.
    """
    os.environ["DEMO_PASSWORD"] = str(server["password"])
    config = ROOT / "connectors" / f"{CONNECTOR}.json"
    properties = {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "database.hostname": server["host"],
        "database.port": str(server["port"]),
        "database.user": server["user"],
        "database.password": "${env:DEMO_PASSWORD}",
        "database.names": DATABASE,
        "topic.prefix": CONNECTOR,
        "signal.data.collection": f"{DATABASE}.dbo.debezium_signal",
        "driver.encrypt": "false",
        "delta.warehouse": str(ROOT.absolute() / "warehouse"),
        "delta.current.interval": "1",
        "dagster.max.run.seconds": "300",
        "spark.remote": f"sc://localhost:{spark_port}",
    }
    config.write_text(json.dumps({"name": CONNECTOR, "config": properties}, indent=2) + "\n")
    return config


def _start_spark(processes: Processes, port: int) -> None:
    """Start one Spark server for all runs: the run that takes over after five minutes need not start its own.

    Its workers read the source, so it is started once the environment has the password.

    Args:
        processes: The demo's processes.
        port: The port that the connector names.
    """
    os.environ[TOKEN_VARIABLE] = secrets.token_urlsafe(32)
    processes.start("spark", [sys.executable, "-m", "mssql_cdc.cli", "spark-server", "--port", str(port)])


def _start_dagster(processes: Processes, *, headless: bool, port: int) -> None:
    home = ROOT.absolute() / "dagster"
    home.mkdir()
    shutil.copy("dagster.yaml", home)
    environment = {
        "DAGSTER_HOME": str(home),
        "MSSQL_CDC_CONNECTORS": str(ROOT.absolute() / "connectors"),
        "MSSQL_CDC_SENSORS": "running",
    }
    scripts = Path(sys.executable).parent
    command = (
        [str(scripts / "dagster-daemon"), "run", "-m", "mssql_cdc.definitions"]
        if headless
        else [str(scripts / "dagster"), "dev", "-m", "mssql_cdc.definitions", "-h", "127.0.0.1", "-p", str(port)]
    )
    say("Starting Dagster …")
    processes.start("dagster", command, environment=environment)


def odbc(config: Path) -> str:
    """Return the connector's own connection string, which the workload and the live table also use."""
    return connection_string(load_connector(config).connection, DATABASE)


def _command(*arguments: str, must: bool = True) -> int:
    """Run one `mssql-cdc` command visibly; with `must`, a failure ends the demo."""
    code = subprocess.run([sys.executable, "-m", "mssql_cdc.cli", *arguments], check=False).returncode
    if code and must:
        raise RuntimeError(f"mssql-cdc {arguments[0]} ended with exit code {code}")
    return code


def say(text: str) -> None:
    """Print one message to the user."""
    print(text, flush=True)  # noqa: T201 (a command)


if __name__ == "__main__":
    sys.exit(main())
