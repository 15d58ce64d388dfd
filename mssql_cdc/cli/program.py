"""The program: which commands there are, and what an error is in exit codes and lines."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from mssql_cdc.cli.capture import check_parser, discover_parser, records_parser, run_parser
from mssql_cdc.cli.care import acknowledge_parser, maintain_parser
from mssql_cdc.cli.shared import EXIT_CODES, say
from mssql_cdc.errors import ConfigurationError, MssqlCdcError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    options = build_parser().parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        say("interrupted")
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
    for add in (
        run_parser,
        records_parser,
        check_parser,
        discover_parser,
        acknowledge_parser,
        maintain_parser,
    ):
        add(commands)
    return parser


def _failed(error: BaseException, code: int, *, debug: bool) -> int:
    """Say what went wrong: one line, but a line each where a configuration has several problems."""
    if debug:
        traceback.print_exception(error)
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    separator = "\n  " if isinstance(error, ConfigurationError) else " "
    name = "" if isinstance(error, MssqlCdcError) else f"{type(error).__name__}: "
    say(f"mssql-cdc: {name}{separator.join(lines) or type(error).__name__}")
    return code


def entry() -> None:
    """The console script."""
    sys.exit(main())
