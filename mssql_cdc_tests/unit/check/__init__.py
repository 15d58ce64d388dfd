"""Tests of `mssql_cdc.check`."""
