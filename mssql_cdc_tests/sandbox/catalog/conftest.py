"""A fresh server for every test."""

from mssql_cdc_tests.sandbox.cdc.conftest import local_world, of_version, world

__all__ = ["local_world", "of_version", "world"]
