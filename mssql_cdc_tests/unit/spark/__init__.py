"""Tests of `mssql_cdc.spark` that start no session."""
