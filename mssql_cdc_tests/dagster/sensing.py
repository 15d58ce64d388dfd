"""Helpers of the sensor tests."""

from __future__ import annotations

import dagster as dg

from mssql_cdc.defs.runs import ATTEMPT_TAG
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import Location


def ask(location: Location) -> dg.RunRequest:
    """The only run that the sensor requests now."""
    location.shop.scan()
    result = location.tick()
    assert result.skip_message is None, result.skip_message
    (request,) = location.requests
    return request


def attempt(request: dg.RunRequest) -> int:
    """How often this was requested, including this time."""
    return int(request.tags.get(ATTEMPT_TAG, "1"))


def entry(location: Location, name: str) -> Entry:
    database = location.database()
    return load_offsets(database.layout, database.storage).entries[TableId(location.shop.catalog, "dbo", name).text]
