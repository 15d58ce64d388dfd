"""`python -m mssql_cdc.cli`."""

from mssql_cdc.cli import entry

entry()
