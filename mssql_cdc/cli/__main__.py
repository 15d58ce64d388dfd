"""`python -m mssql_cdc.cli`."""

from mssql_cdc.cli.process import entry

entry()
