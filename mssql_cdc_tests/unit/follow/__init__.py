"""Tests of `mssql_cdc.follow`."""
