"""What a run that streams in Dagster tells OpenLineage."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.lineage_kit import read_events, states, to_file


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_that_streams_tells_its_tables_and_its_end(streaming: Location, tmp_path: Path):
    file, events = to_file(tmp_path)
    location = streaming.reloaded(
        dagster_max_run_seconds=1,
        openlineage_integration_enabled="true",
        openlineage_integration_config_file_path=file,
    )
    location.tick()
    (request,) = location.requests
    done = location.run(request)
    assert done.success, failures(done)
    found = states(read_events(events))
    tables = sorted(f"{location.shop.catalog}.dbo.{name}" for name in ("first_table", "orders", "people"))
    assert found[:2] == [("START", []), ("RUNNING", [])]
    assert sorted(found[2:-1]) == [("RUNNING", [name]) for name in tables]
    assert (found[-1][0], sorted(found[-1][1])) == ("COMPLETE", tables)
