"""Tests of `mssql_cdc.demo`."""
