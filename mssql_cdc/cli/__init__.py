"""`mssql-cdc …`: the connector without Dagster's daemon and UI.

Arguments, output and exit codes belong here; what a command does is implemented in the packages below. Commands import
those inside their functions, so that `--help` answers at once.
"""

from mssql_cdc.cli.program import main, program

__all__ = ["main", "program"]
