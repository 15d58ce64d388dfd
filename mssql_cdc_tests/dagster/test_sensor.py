"""The sensor against the stand-in server: what it asks for, and what it does when runs fail, are lost or forgotten."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.dagster.kit import failures, metadata

pytestmark = [pytest.mark.spark]


def test_a_new_database_is_snapshotted_and_then_streamed(shop, locate, spark):
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    shop.scan()
    location = locate()
    result = location.tick()
    (request,) = result.run_requests
    assert request.partition_key.startswith("snapshot-")
    assert request.run_key == f"{request.partition_key}#1"
    done = location.run(request)
    assert done.success, failures(done)
    (event,) = location.materializations(location.key("orders"))
    assert event.partition == request.partition_key
    assert metadata(event)["dagster/partition_row_count"] == 2
