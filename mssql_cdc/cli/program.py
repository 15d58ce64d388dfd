"""The program: its commands, its process, and how an error becomes lines and an exit code."""

from __future__ import annotations

import atexit
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from mssql_cdc import __version__
from mssql_cdc.cli.capture import run
from mssql_cdc.cli.check_config import check_config
from mssql_cdc.cli.inspection import check, discover
from mssql_cdc.cli.maintenance import acknowledge, maintain, prepare
from mssql_cdc.cli.options import epilog
from mssql_cdc.cli.output import Output
from mssql_cdc.cli.process import leave
from mssql_cdc.cli.records import records
from mssql_cdc.cli.snapshot import snapshot
from mssql_cdc.cli.spark_server import spark_server
from mssql_cdc.cli.status import status
from mssql_cdc.cli.take_over import offsets, schema_history, take_over
from mssql_cdc.errors import ConfigurationError, MssqlCdcError
from mssql_cdc.run.interrupts import Interrupts, noted_interrupts

NAME = "mssql-cdc"


@click.group(
    name=NAME,
    commands=(
        check_config,
        discover,
        run,
        status,
        check,
        records,
        take_over,
        offsets,
        schema_history,
        snapshot,
        acknowledge,
        maintain,
        prepare,
        spark_server,
    ),
    context_settings={"show_default": True, "max_content_width": 100, "help_option_names": ["-h", "--help"]},
    epilog=epilog(
        "mssql-cdc discover --config connectors/shop.json",
        "mssql-cdc run --config connectors/shop.json --until-caught-up",
        "mssql-cdc check --config connectors/shop.json",
    ),
)
@click.version_option(__version__, prog_name=NAME)
def program() -> None:
    """Change data capture from SQL Server into Delta Lake."""


def entry() -> NoReturn:
    """Run the command of `sys.argv` as this process, and end with its exit code.

    Handlers of `atexit` run first, including those that remove files with secrets: this one is the first to be
    registered, so that it is the last to be called.
    """
    codes: list[int] = []
    atexit.register(lambda: leave(codes[0]) if codes else None)
    codes.append(main())
    sys.exit(codes[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (from `sys.argv` without `arguments`) and return its exit code."""
    with noted_interrupts() as interrupts:
        return _run(arguments, Output(), interrupts)


def _run(arguments: Sequence[str] | None, output: Output, interrupts: Interrupts) -> int:
    try:
        return program.main(arguments, prog_name=NAME, standalone_mode=False, obj=output) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(output, interrupts)
    except MssqlCdcError as error:
        if interrupts.noted:
            return _interrupted(output, interrupts)
        return _failed(output, error, error.exit_code)
    except OSError as error:
        return _failed(output, error, 2)
    except Exception as error:  # noqa: BLE001 - the last resort: one clear line, and the trace with --debug
        return _failed(output, error, 1)


def _interrupted(output: Output, interrupts: Interrupts) -> int:
    """Say what ended the command, and return the code that a shell gives for that signal."""
    number = interrupts.noted or signal.SIGINT
    output.error("interrupted" if number is signal.SIGINT else f"ended by {number.name}")
    return 128 + number


def _failed(output: Output, error: Exception, code: int) -> int:
    """Report what went wrong on one line, or on one line per problem of a configuration."""
    if output.debug:
        output.trace(error)
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    separator = "\n  " if isinstance(error, ConfigurationError) else " "
    name = "" if isinstance(error, MssqlCdcError) else f"{type(error).__name__}: "
    output.error(f"{name}{separator.join(lines) or type(error).__name__}")
    return code
