"""Statistics tell that there is nothing to sweep, so that no Spark session has to start for it (C19)."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.steps import Swept
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark


class SparkStartsError(Exception):
    """A session is started."""


def swept(database: Database) -> list[str]:
    notes = load_offsets(database.layout, database.storage).noted
    return [row.facts.table for row in notes if isinstance(row.facts, Swept)]


def starts() -> NoReturn:
    raise SparkStartsError


@pytest.mark.parametrize("gone", [False, True])
def test_a_snapshot_that_has_read_every_row_is_swept_without_spark(
    database: Database,
    source: ModelSource,
    gone: bool,  # noqa: FBT001 (parametrized)
):
    write_some(source)
    settled(database, source)
    if gone:  # A row that left while capture was off.
        del source.tables["orders"].rows[min(source.tables["orders"].rows)]
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test", kind="incremental")
    alone = replace(database.apart(), spark=starts)
    if gone:
        with pytest.raises(SparkStartsError):
            settled(alone, source)
        settled(database.apart(), source)
    else:
        settled(alone, source)
    assert swept(database) == ["shop.dbo.orders"]
    assert [op for op, _, _ in changes(database, "orders")].count("d") == gone
    same(database, source)
