"""Numbers of snapshots: each is taken once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot.begin import take_number
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.storm.lake import happening_at
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake

TABLE = TableId(DATABASE, "dbo", "a")


def test_a_number_is_taken_although_another_run_takes_one_meanwhile(tmp_path: Path):
    connector = Lake(tmp_path).connector
    mine, other = (Database.of(connector, DATABASE, spark=lambda: pytest.fail("Spark was started")) for _ in range(2))
    taken = [take_number(mine, "repair", TABLE, lsn(1))]

    def meanwhile() -> None:
        taken.append(take_number(other, "incremental", TABLE, lsn(1)))

    with happening_at("mssql_cdc.lake.small_tables.commit", 1, meanwhile):
        taken.append(take_number(mine, "repair", TABLE, lsn(1)))
    assert taken == [1, 2, 3]
