"""Tests of `mssql_cdc.serve`."""
