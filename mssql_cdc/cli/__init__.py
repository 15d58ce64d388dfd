"""`mssql-cdc …`: the connector without Dagster's daemon and UI.

Only arguments, progress and exit codes belong here; what a command does stands in the room that it names. Heavy
imports happen inside the commands, so that `--help` answers at once.
"""

from mssql_cdc.cli.program import build_parser, entry, main

__all__ = ["build_parser", "entry", "main"]
