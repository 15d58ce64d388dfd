"""A fresh server for every test."""

from mssql_cdc_tests.sandbox.cdc.conftest import world

__all__ = ["world"]
