"""What `mssql-cdc run` and `records --follow` tell OpenLineage of a database."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.followed import followed
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.lineage_kit import configured, endpoint, read_events, states, to_file

pytestmark = pytest.mark.slow

NONE: list[str] = []


@pytest.mark.feature("OL-02")
def test_a_run_tells_its_tables_with_their_columns_and_a_failed_one_its_error(place: Place):
    file, events = to_file(place.folder)
    place.configure(openlineage_integration_enabled="true", openlineage_integration_config_file_path=file)
    place.create_orders()
    table = f"{place.database}.dbo.orders"
    found = read_events(events)
    assert states(found) == [("START", NONE), ("RUNNING", NONE), ("RUNNING", [table]), ("COMPLETE", [table])]
    assert found[2]["inputs"][0]["namespace"] == f"sqlserver://{place.server.host}:{place.server.port}"
    fields = found[2]["inputs"][0]["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [("id", "int"), ("name", "nvarchar(50)")]
    assert [one["name"] for one in found[2]["outputs"]] == [place.uri("orders", "changes"), place.uri("orders")]
    place.sql("EXEC sys.sp_cdc_disable_db")
    assert place.catch_up() != 0
    last = read_events(events)[-1]
    assert last["eventType"] == "FAIL"
    assert place.database in last["run"]["facets"]["errorMessage"]["message"]


@pytest.mark.feature("OL-02")
def test_a_followed_connector_tells_its_end_when_it_is_told_to_end(place: Place):
    with endpoint() as told:
        place.configure(
            openlineage_integration_enabled="true",
            openlineage_integration_config_file_path=configured(place.folder, f"type: http\n  url: {told.url}"),
        )
        place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
        place.sql("INSERT INTO dbo.items VALUES (1, N'one')")
        place.settle()
        with followed(place, "--task-id", "7") as found:
            found.changes(1)
            assert found.end() == 0
    table = f"{place.database}.dbo.items"
    assert states(told.events) == [("START", NONE), ("RUNNING", NONE), ("RUNNING", [table]), ("COMPLETE", [table])]
    assert {one["job"]["name"] for one in told.events} == {"shop.7"}
    assert [one["name"] for one in told.events[2]["outputs"]] == [
        str(place.folder / "state" / "lake" / "shop" / place.database / "dbo" / "items" / "changes")
    ]
