"""Options shared by several commands, and opening the connector that they name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.output import Output

if TYPE_CHECKING:
    from mssql_cdc.capture.database import Database
    from mssql_cdc.config import Connector

_EXIT_CODES = """\b
Exit codes:
  0    done
  1    internal error: please report it with the output of --debug
  2    invalid configuration, missing permission, or unreadable file
  3    source unavailable, no progress for too long, a table failed, or lake not caught up yet
  4    rows may be missing: changes were lost, or the source went back in time
  5    the check found differences
  75   records --follow only: start it again
  130  interrupted by Ctrl+C; 143: ended by SIGTERM"""


def epilog(*examples: str) -> str:
    """Build the text below the options in a command's help: examples, then the exit codes."""
    return "\n".join(["\b", "Examples:", *(f"  {one}" for one in examples), "", _EXIT_CODES])


def _set_debug(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click's signature)
    context.ensure_object(Output).debug = value


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Connector configuration: Debezium's JSON.",
)
warehouse_option = click.option(
    "--warehouse", metavar="DIR", help="Folder or URI of the lake.  [default: delta.warehouse]"
)
debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_set_debug,
    help="Show the traceback of an error, and Spark's output.",
)


def load(output: Output, config: Path) -> Connector:
    """Load the connector from the file and show its notices."""
    from mssql_cdc.config import load_connector

    connector = load_connector(config)
    output.redact = connector.redact
    for notice in connector.notices:
        output.line(notice)
    return connector


def opened(
    output: Output, config: Path, warehouse: str | None, *, lasting: bool = False, ahead: bool = False
) -> AbstractContextManager[list[Database]]:
    """Open the connector's databases; Spark starts when needed and ends with the block.

    Args:
        output: Shows notices and progress.
        config: The connector's file.
        warehouse: Overrides `delta.warehouse`.
        lasting: The command runs for a long time.
        ahead: Start Spark in a thread if there is a large first snapshot.
    """
    from mssql_cdc.run.databases import open_databases

    connector = load(output, config)
    return open_databases(
        connector, warehouse=warehouse, log=output.line, quiet=not output.debug, lasting=lasting, ahead=ahead
    )
