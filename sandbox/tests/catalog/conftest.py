"""A fresh server for every test."""

from tests.cdc.conftest import local_world, of_version, world

__all__ = ["local_world", "of_version", "world"]
