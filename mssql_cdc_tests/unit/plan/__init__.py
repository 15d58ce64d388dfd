"""Tests of `mssql_cdc.plan`."""
