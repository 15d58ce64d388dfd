"""Tests of `mssql_cdc`; the folders mirror the package."""
