"""Tests of `mssql_cdc.run`."""
