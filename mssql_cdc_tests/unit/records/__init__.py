"""Tests of `mssql_cdc.records`."""
