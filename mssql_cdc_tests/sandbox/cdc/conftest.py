"""A fresh server for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mssql_cdc_tests.sandbox.cdc.client import World


@pytest.fixture
def world() -> Iterator[World]:
    """A server with an empty database."""
    made = World()
    yield made
    made.close()
