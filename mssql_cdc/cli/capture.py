"""Commands that work on a connector's lake: `run`, `records`, `check`, `discover`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mssql_cdc.cli.shared import Commands, command, connector_command, connector_of, opened, progress


def run_parser(commands: Commands) -> None:
    """Arguments of `run`."""
    parser = connector_command(
        commands,
        "run",
        _run,
        "Capture: a snapshot if one is due, then range after range. Goes on where the last call ended.",
        "mssql-cdc run --config shop.json --warehouse lake --until-caught-up",
    )
    until = parser.add_mutually_exclusive_group()
    until.add_argument(
        "--until-caught-up",
        action="store_true",
        help="end when everything that is in the source now is in change logs and current tables",
    )
    until.add_argument("--seconds", type=float, metavar="N", help="end after N seconds (default: never)")
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="SECONDS", help="with --until-caught-up (default: %(default)s)"
    )


def _run(options: argparse.Namespace) -> int:
    from mssql_cdc.run.loop import catch_up, run_for

    with opened(options, lasting=not options.until_caught_up) as databases:
        if options.until_caught_up:
            catch_up(databases, timeout=options.timeout)
        else:
            run_for(databases, seconds=options.seconds)
    return 0


def records_parser(commands: Commands) -> None:
    """Arguments of `records`."""
    parser = connector_command(
        commands,
        "records",
        _records,
        "Write what Debezium would have sent, one JSON document per line, from the lake alone.",
        "mssql-cdc records --config shop.json --warehouse lake --output -",
    )
    parser.add_argument("--output", required=True, metavar="FILE.jsonl", help="file to write; - is standard output")


def _records(options: argparse.Namespace) -> int:
    from mssql_cdc.records import write_records
    from mssql_cdc.run.databases import warehouse_path

    connector, warehouse = connector_of(options), warehouse_path(options.warehouse)
    if options.output == "-":
        count = write_records(connector, output=sys.stdout, warehouse=warehouse)
    else:
        with Path(options.output).open("w", encoding="utf-8", newline="\n") as output:
            count = write_records(connector, output=output, warehouse=warehouse)
    progress(f"{count} records")
    return 0


def check_parser(commands: Commands) -> None:
    """Arguments of `check`."""
    connector_command(
        commands,
        "check",
        _check,
        "Compare source and lake cell by cell, by a path of its own. The source should be at rest meanwhile.",
        "mssql-cdc check --config shop.json --warehouse lake",
    )


def _check(options: argparse.Namespace) -> int:
    from mssql_cdc.check.run import check_databases
    from mssql_cdc.run.execute import refresh_current

    with opened(options) as databases:
        for database in databases:
            for error in refresh_current(database).errors.values():
                raise error
        return check_databases(databases, show=progress)


def discover_parser(commands: Commands) -> None:
    """Arguments of `discover`."""
    parser = command(
        commands,
        "discover",
        _discover,
        "Ask the source which tables it captures and write <stem>.tables.json beside the configuration.",
        "mssql-cdc discover --config connectors/shop.json",
    )
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="connector configuration (Debezium's JSON)"
    )


def _discover(options: argparse.Namespace) -> int:
    from mssql_cdc.config import load_connector
    from mssql_cdc.run.discover import write_table_list

    connector = load_connector(options.config)
    path, tables = write_table_list(connector, options.config, warn=progress)
    for table in tables:
        progress(table)
    progress(f"{len(tables)} tables written to {path}")
    return 0
