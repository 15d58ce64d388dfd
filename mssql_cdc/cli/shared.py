"""What the commands share: their parsers, opening a connector, progress on standard error."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mssql_cdc.capture.database import Database
    from mssql_cdc.config import Connector

Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it
EXIT_CODES = """exit codes:
  0  done
  1  a defect: please report it, with --debug
  2  the configuration, a permission or a file is wrong
  3  the source did not answer, the time is up, or the lake has not caught up yet
  4  changes were lost at the source: a new snapshot is needed
  5  the check found a difference"""


def command(
    commands: Commands,
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    example: str,
) -> argparse.ArgumentParser:
    """A command with its help, its example and `--debug`."""
    parser = commands.add_parser(
        name,
        help=text.split(". ", maxsplit=1)[0].rstrip("."),
        description=text,
        epilog=f"example:\n  {example}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the trace of an error, and what Spark prints")
    parser.set_defaults(command=function)
    return parser


def connector_command(
    commands: Commands,
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    example: str,
) -> argparse.ArgumentParser:
    """A command on the lake of a connector."""
    parser = command(commands, name, function, text, example)
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="connector configuration (Debezium's JSON)"
    )
    parser.add_argument("--warehouse", metavar="DIR", help="folder or URI of the lake (default: delta.warehouse)")
    return parser


def connector_of(options: argparse.Namespace) -> Connector:
    """The connector of the configuration; its notices are shown."""
    from mssql_cdc.config import load_connector

    connector = load_connector(options.config)
    for notice in connector.notices:
        progress(notice)
    return connector


def opened(options: argparse.Namespace, *, lasting: bool = False) -> AbstractContextManager[list[Database]]:
    """The databases of the configuration; Spark starts when it is needed and ends with the block.

    `lasting`: the command goes on for long.
    """
    from mssql_cdc.run.databases import open_databases

    quiet = not options.debug
    return open_databases(
        connector_of(options), warehouse=options.warehouse, log=progress, quiet=quiet, lasting=lasting
    )


def progress(line: str) -> None:
    """A line of progress, with the time."""
    say(f"{time.strftime('%H:%M:%S')} {line}")


def say(line: str) -> None:
    """A line on standard error; standard output is left to records."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
