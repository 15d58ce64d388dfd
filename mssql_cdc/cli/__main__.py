"""`python -m mssql_cdc.cli`."""

from mssql_cdc.cli.program import entry

entry()
