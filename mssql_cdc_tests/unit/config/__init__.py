"""Tests of `mssql_cdc.config`."""
