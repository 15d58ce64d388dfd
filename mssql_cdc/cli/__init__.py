"""`mssql-cdc …`: the connector without Dagster's daemon and UI.

This package handles arguments, output and exit codes; the packages below implement the commands. Commands import them
inside their functions, so that `--help` responds immediately.
"""

from mssql_cdc.cli.program import main, program

__all__ = ["main", "program"]
