"""A fresh server for every test."""

from mssql_cdc_tests.sandbox.cdc.conftest import local_world, world

__all__ = ["local_world", "world"]
