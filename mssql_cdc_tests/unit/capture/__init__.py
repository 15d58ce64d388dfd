"""Tests of `mssql_cdc.capture`."""
