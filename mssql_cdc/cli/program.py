"""`mssql-cdc …`: the connector without Dagster's daemon and UI, the sandbox, and looking at both.

Only arguments, progress and exit codes belong here; what a command does stands in the room that it names. Heavy
imports happen inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mssql_cdc.errors import ConfigurationError, MssqlCdcError

if TYPE_CHECKING:
    from mssql_cdc.capture.context import Database
    from mssql_cdc.config import Connector

EXIT_CODES = """exit codes:
  0  done
  1  a defect: please report it, with --debug
  2  the configuration, a permission or a file is wrong
  3  the source did not answer, or the time is up
  4  changes were lost at the source: a new snapshot is needed
  5  the check found a difference"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except MssqlCdcError as error:
        return _failed(error, error.exit_code, debug=options.debug)
    except OSError as error:
        return _failed(error, 2, debug=options.debug)
    except Exception as error:  # noqa: BLE001 - the last resort: one clear line, and the trace with --debug
        return _failed(error, 1, debug=options.debug)


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="mssql-cdc",
        description="Change data capture from SQL Server into Delta Lake.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _sandbox_parser(commands)
    _run_parser(commands)
    _records_parser(commands)
    _check_parser(commands)
    _discover_parser(commands)
    return parser


# -- sandbox ---------------------------------------------------------------------------------------------------


def _sandbox_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "sandbox",
        _sandbox,
        "Serve a stand-in SQL Server with CDC, in memory, until it is stopped.",
        "mssql-cdc sandbox --port 14330 --script demo.sql --ready-file /tmp/ready",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 = any free one (default: %(default)s)")
    parser.add_argument(
        "--script", type=Path, action="append", default=[], metavar="FILE.sql", help="run at start; may be repeated"
    )
    parser.add_argument(
        "--capture-interval",
        type=float,
        default=None,
        metavar="SECONDS",
        help="pause of the capture job (default: its own, 5 s)",
    )
    parser.add_argument("--encrypt", choices=("off", "login", "on"), default="login", help="TLS (default: %(default)s)")
    parser.add_argument("--password", default=None, help="password of the login sa (default: a random one)")
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="JSON file written once clients may connect: host, port, user, password",
    )


def _sandbox(options: argparse.Namespace) -> int:
    from mssql_cdc.sandbox.command import main as serve

    for script in options.script:
        if not script.is_file():
            raise ConfigurationError(f"{script}: no such file; --script takes files with T-SQL")
    arguments = ["--host", options.host, "--port", str(options.port), "--encrypt", options.encrypt]
    arguments += [part for script in options.script for part in ("--script", str(script))]
    for name in ("capture_interval", "password", "ready_file"):
        value = getattr(options, name)
        if value is not None:
            arguments += [f"--{name.replace('_', '-')}", str(value)]
    return serve(arguments)


# -- run -------------------------------------------------------------------------------------------------------


def _run_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _connector_command(
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
    from mssql_cdc.stream.loop import catch_up, run_for

    with _opened(options) as databases:
        if options.until_caught_up:
            catch_up(databases, timeout=options.timeout)
        else:
            run_for(databases, seconds=options.seconds)
    return 0


# -- records ---------------------------------------------------------------------------------------------------


def _records_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _connector_command(
        commands,
        "records",
        _records,
        "Write what Debezium would have sent, one JSON document per line, from the lake alone.",
        "mssql-cdc records --config shop.json --warehouse lake --output -",
    )
    parser.add_argument("--output", required=True, metavar="FILE.jsonl", help="file to write; - is standard output")


def _records(options: argparse.Namespace) -> int:
    from mssql_cdc.capture.context import warehouse_path
    from mssql_cdc.records import write_records

    connector, warehouse = _connector(options), warehouse_path(options.warehouse)
    if options.output == "-":
        count = write_records(connector, output=sys.stdout, warehouse=warehouse)
    else:
        with Path(options.output).open("w", encoding="utf-8", newline="\n") as output:
            count = write_records(connector, output=output, warehouse=warehouse)
    _progress(f"{count} records")
    return 0


# -- check -----------------------------------------------------------------------------------------------------


def _check_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _connector_command(
        commands,
        "check",
        _check,
        "Compare source and lake cell by cell, by a path of its own. The source should be at rest meanwhile.",
        "mssql-cdc check --config shop.json --warehouse lake",
    )


def _check(options: argparse.Namespace) -> int:
    from mssql_cdc.check.run import check_databases
    from mssql_cdc.stream.after import refresh_current

    with _opened(options) as databases:
        for database in databases:
            for error in refresh_current(database).errors.values():
                raise error
        return check_databases(databases, show=_progress)


# -- discover --------------------------------------------------------------------------------------------------


def _discover_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
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
    from mssql_cdc.stream.discover import write_table_list

    connector = load_connector(options.config)
    path, tables = write_table_list(connector, options.config)
    for table in tables:
        _progress(table)
    _progress(f"{len(tables)} tables written to {path}")
    return 0


# -- what commands share ---------------------------------------------------------------------------------------


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=text.split(". ", maxsplit=1)[0].rstrip("."),
        description=text,
        epilog=f"example:\n  {example}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the trace of an error")
    parser.set_defaults(command=function)
    return parser


def _connector_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = _command(commands, name, function, text, example)
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="connector configuration (Debezium's JSON)"
    )
    parser.add_argument("--warehouse", metavar="DIR", help="folder or URI of the lake (default: delta.warehouse)")
    return parser


def _connector(options: argparse.Namespace) -> Connector:
    from mssql_cdc.config import load_connector

    connector = load_connector(options.config)
    for notice in connector.notices:
        _progress(notice)
    return connector


def _opened(options: argparse.Namespace) -> AbstractContextManager[list[Database]]:
    """The databases of the configuration; Spark starts when it is needed and ends with the block."""
    from mssql_cdc.capture.context import open_databases

    return open_databases(_connector(options), warehouse=options.warehouse, log=_progress)


def _progress(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def _failed(error: BaseException, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    text = " ".join(str(error).split()) or type(error).__name__
    name = "" if isinstance(error, MssqlCdcError) else f"{type(error).__name__}: "
    print(f"mssql-cdc: {name}{text}", file=sys.stderr)
    return code


def entry() -> NoReturn:
    """The console script."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
