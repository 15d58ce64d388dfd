"""A connector's definitions in Dagster before the first run, and the assembly of code locations."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mssql_cdc import definitions as location
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.defs.metadata import current_columns, current_lineage
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc_tests.dagster.kit import PASSWORD, connector, table
from mssql_cdc_tests.lake_kit import column, orders


@pytest.fixture
def shop() -> dg.Definitions:
    tables = [table("orders", "name", "note"), table("log", keyless=True), table("orders_current")]
    return build_definitions(connector(), tables=tables)


def spec(found: dg.Definitions, *path: str) -> dg.AssetSpec:
    (one,) = (one for one in found.resolve_all_asset_specs() if one.key == dg.AssetKey(list(path)))
    return one


def names(found: dg.Definitions) -> set[str]:
    return {"/".join(one.key.path) for one in found.resolve_all_asset_specs()}


def test_a_table_has_a_source_a_change_log_and_a_current_table(shop):
    assert names(shop) == {
        "sqlserver/server1/shop/dbo/orders",
        "sqlserver/server1/shop/dbo/log",
        "sqlserver/server1/shop/dbo/orders_current",
        "server1/shop/dbo/orders",
        "server1/shop/dbo/orders_current_",
        "server1/shop/dbo/orders_current",
        "server1/shop/dbo/orders_current_current",
        "server1/shop/dbo/log",
        "server1/shop/heartbeat",
        "server1/shop/schema_history",
        "server1/shop/notifications",
        "server1/shop/signals",
        "server1/shop/snapshots",
    }


def test_a_database_has_a_streaming_job_a_maintenance_job_a_sensor_and_a_check_per_table(shop):
    assert [job.name for job in shop.jobs or ()] == [
        "server1__shop__stream",
        "server1__shop__snapshot",
        "server1__shop__maintain",
    ]
    assert [(one.name, one.default_status.value) for one in shop.schedules or ()] == [
        ("server1__shop__maintain__nightly", "STOPPED")
    ]
    assert [sensor.name for sensor in shop.sensors or ()] == ["server1__shop__sensor"]
    graph = shop.resolve_asset_graph()
    assert {key.asset_key.path[-1] for key in graph.asset_check_keys} == {"orders", "log", "orders_current"}


def test_change_logs_are_partitioned_together_and_current_tables_are_not(shop):
    log, other = spec(shop, "server1", "shop", "dbo", "orders"), spec(shop, "server1", "shop", "dbo", "log")
    windows = log.partitions_def
    assert isinstance(windows, dg.TimeWindowPartitionsDefinition)
    assert windows == other.partitions_def
    assert (windows.cron_schedule, windows.timezone, windows.end_offset) == ("0 * * * *", "UTC", 1)
    assert spec(shop, "server1", "shop", "dbo", "orders_current_").partitions_def is None


def test_groups_kinds_and_table_names_distinguish_the_layers(shop):
    source = spec(shop, "sqlserver", "server1", "shop", "dbo", "orders")
    log = spec(shop, "server1", "shop", "dbo", "orders")
    current = spec(shop, "server1", "shop", "dbo", "orders_current_")
    assert [one.group_name for one in (source, log, current)] == ["source_shop", "server1_shop", "server1_shop_current"]
    assert source.kinds == {"sqlserver"}
    assert "deltalake" in log.kinds
    assert len({one.metadata["dagster/table_name"] for one in (source, log, current)}) == 3


def test_snapshots_are_partitioned_by_table_in_a_group_of_their_own(shop):
    snapshots = spec(shop, "server1", "shop", "snapshots")
    assert snapshots.partitions_def == dg.StaticPartitionsDefinition(["dbo.log", "dbo.orders", "dbo.orders_current"])
    assert snapshots.group_name == spec(shop, "server1", "shop", "signals").group_name == "server1_operations"
    (edge,) = (dep for dep in spec(shop, "server1", "shop", "dbo", "orders").deps if dep.asset_key == snapshots.key)
    assert isinstance(edge.partition_mapping, dg.AllPartitionMapping)


def test_daily_assets_of_users_map_onto_the_windows(shop):
    daily = dg.DailyPartitionsDefinition("2026-11-22", timezone="UTC")

    @dg.asset(partitions_def=daily, deps=[dg.AssetKey(["server1", "shop", "dbo", "orders"])])
    def report() -> None: ...

    dg.Definitions.validate_loadable(dg.Definitions.merge(shop, dg.Definitions(assets=[report])))


def test_transactions_are_an_asset_only_when_they_are_written(shop):
    assert "server1/shop/transactions" not in names(shop)
    on = build_definitions(connector(provide_transaction_metadata=True), tables=[table("orders"), table("people")])
    made = spec(on, "server1", "shop", "transactions")
    assert {dep.asset_key.path[-1] for dep in made.deps} == {"orders", "people"}
    assert made.partitions_def is None, "a window without a transaction would be missing"
    assert (made.group_name, made.freshness_policy) == ("server1_shop", None)


def test_the_heartbeat_is_due_only_where_runs_are_continuous(shop):
    heartbeat = spec(shop, "server1", "shop", "heartbeat")
    assert (heartbeat.group_name, heartbeat.partitions_def) == ("server1_operations", None)
    single = build_definitions(connector(dagster_max_run_seconds=0), tables=[table("orders")])
    assert spec(single, "server1", "shop", "heartbeat").freshness_policy is None


def test_current_tables_and_the_heartbeat_have_freshness_policies(shop):
    current = spec(shop, "server1", "shop", "dbo", "orders_current_").freshness_policy
    heartbeat = spec(shop, "server1", "shop", "heartbeat").freshness_policy
    assert current == dg.FreshnessPolicy.time_window(timedelta(minutes=135), timedelta(minutes=75))
    assert heartbeat == dg.FreshnessPolicy.time_window(timedelta(minutes=5), timedelta(minutes=2))


def test_many_tables_are_grouped_by_schema_without_edges_from_snapshots():
    many = [table(f"t{number}") for number in range(50)] + [table("orders", schema="sales")]
    found = build_definitions(connector(), tables=many)
    log = spec(found, "server1", "shop", "sales", "orders")
    assert log.group_name == "server1_shop_sales"
    assert [dep.asset_key.path[0] for dep in log.deps] == ["sqlserver"]


@pytest.mark.parametrize(("window", "cron"), [("15 minutes", "*/15 * * * *"), ("day", "0 0 * * *")])
def test_the_length_of_windows_is_configured(window: str, cron: str):
    found = build_definitions(connector(dagster_window=window, dagster_window_days=3), tables=[table("orders")])
    windows = spec(found, "server1", "shop", "dbo", "orders").partitions_def
    assert isinstance(windows, dg.TimeWindowPartitionsDefinition)
    assert windows.cron_schedule == cron
    assert timedelta(days=3) <= datetime.now(UTC) - windows.start < timedelta(days=4)


def test_lineage_leads_from_source_columns_to_the_current_table(shop):
    log = spec(shop, "server1", "shop", "dbo", "orders").metadata["dagster/column_lineage"].deps_by_column
    assert {dep.column_name for dep in log["after"]} == {"id", "name", "note"}
    assert {dep.column_name for dep in log["key"]} == {"id"}
    current = spec(shop, "server1", "shop", "dbo", "orders_current_").metadata["dagster/column_lineage"]
    assert set(current.deps_by_column) >= {"id", "name", "note"}


def test_column_schemas_show_what_is_stored_and_what_was_declared(shop):
    columns = spec(shop, "server1", "shop", "dbo", "orders_current_").metadata["dagster/column_schema"].columns
    found = {column.name: column for column in columns}
    assert found["name"].description == "nvarchar(50)"
    assert not found["id"].constraints.nullable
    assert "_pos" in found


def test_columns_that_held_values_of_a_former_type_say_so():
    first = orders()
    newest = with_delta_columns(orders(first.columns[0], column("name", "int"), first.columns[2]), [first])
    found = {column.name: column.description for column in current_columns(newest).columns}
    assert (found["name"], found["name_2"]) == ("former type of name", "int")
    lineage = current_lineage(newest, DatabaseNames("server1", "shop")).deps_by_column
    assert {"name", "name_2"} <= set(lineage)


def test_a_click_on_signals_opens_the_launchpad(shop):
    (signals,) = (one for one in shop.assets or () if isinstance(one, dg.AssetsDefinition) and "signals" in one.op.name)
    assert signals.op.config_schema.as_field().is_required


def test_dagster_stores_no_password(shop):
    with_secret = build_definitions(
        connector(spark_hadoop_fs_s3a_secret_key=PASSWORD, delta_storage_aws_secret_access_key=PASSWORD),
        tables=[table("orders")],
    )
    output = f"theirs:https://bob:{PASSWORD}@host/records"
    with_output = build_definitions(connector(delta_records_output=output), tables=[table("orders")])
    for found in (shop, with_secret, with_output):
        repository = found.get_repository_def()
        (resource,) = repository.get_top_level_resources().values()
        stored = [repr(repository.asset_graph.assets_defs), repr(resource.__dict__), str(resource.config_schema)]
        stored += [repr(one.metadata) for one in found.resolve_all_asset_specs()]
        assert all(PASSWORD not in text for text in stored)


def test_two_connectors_of_one_database_load_side_by_side():
    parts = [
        build_definitions(connector(name, spark_executor_cores=n), tables=[table("orders")])
        for n, name in enumerate(("one", "other"), 1)
    ]
    merged = dg.Definitions.merge(*parts)
    dg.Definitions.validate_loadable(merged)
    assert {"one/shop/dbo/orders", "other/shop/dbo/orders"} <= names(merged)


def test_another_project_embeds_a_connector_with_its_own_executor():
    @dg.asset(deps=[dg.AssetKey(["server1", "shop", "dbo", "orders_current"])])
    def report() -> None: ...

    own = dg.Definitions(assets=[report], executor=dg.multiprocess_executor)
    merged = dg.Definitions.merge(own, build_definitions(connector(), tables=[table("orders")]))
    dg.Definitions.validate_loadable(merged)
    assert "report" in names(merged)


def test_a_connector_with_two_databases_has_separate_definitions_for_each():
    found = build_definitions(connector(database="shop,crm"), tables=[table("orders"), table("people", database="crm")])
    dg.Definitions.validate_loadable(found)
    assert {"server1/shop/dbo/orders", "server1/crm/dbo/people"} <= names(found)
    assert len(list(found.sensors or ())) == 2


# -- The code location ---------------------------------------------------------------------------------------------


def write_connector(folder: Path, name: str, *tables: Any) -> Path:
    path = folder / f"{name}.json"
    properties = {
        "database.hostname": "127.0.0.1",
        "database.port": "1",
        "database.user": "sa",
        "database.password": "${env:NOT_SET_ANYWHERE}",
        "database.names": "shop",
        "topic.prefix": name,
        "delta.warehouse": str(folder / "lake"),
    }
    path.write_text(json.dumps(properties))
    if tables:
        listed = {"v": 1, "databases": {"shop": [json.loads(one.to_json()) for one in tables]}}
        (folder / f"{name}.tables.json").write_text(json.dumps(listed))
    return path


@pytest.mark.parametrize("folder", ["", "missing"])
def test_a_location_without_connectors_is_empty(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path / folder))
    assert names(location.defs()) == set()


def test_a_connector_without_a_table_list_is_shown_with_the_command_that_creates_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path))
    path = write_connector(tmp_path, "one")
    write_connector(tmp_path, "two", table("orders"))
    found = location.defs()
    dg.Definitions.validate_loadable(found)
    assert f"mssql-cdc discover --config {path}" in str(spec(found, "not_loaded", "one").description)
    assert "two/shop/dbo/orders" in names(found)


def test_a_broken_connector_is_shown_with_its_error_beside_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path))
    (tmp_path / "broken.json").write_text('{"topic.prefix": ')
    write_connector(tmp_path, "crowded", table("orders"), table("people"))
    crowded = json.loads((tmp_path / "crowded.json").read_text())
    limits = {"guardrail.collections.max": "1", "guardrail.collections.limit.action": "fail"}
    (tmp_path / "crowded.json").write_text(json.dumps(crowded | limits))
    write_connector(tmp_path, "two", table("orders"))
    found = location.defs()
    dg.Definitions.validate_loadable(found)
    assert "invalid JSON at line 1" in str(spec(found, "not_loaded", "broken").description)
    assert "2 tables configured for capture" in str(spec(found, "not_loaded", "crowded").description)
    assert "two/shop/dbo/orders" in names(found)


@pytest.mark.parametrize("odd", ["folder", "no mapping", "no zone", "twice"])
def test_an_odd_table_list_does_not_take_the_others_down(tmp_path, monkeypatch, odd: str):
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path))
    write_connector(tmp_path, "two", table("orders"))
    listed = write_connector(tmp_path, "one", table("orders")).with_name("one.tables.json")
    content = json.loads(listed.read_text())
    match odd:
        case "folder":
            listed.unlink()
            listed.mkdir()
        case "no mapping":
            listed.write_text(json.dumps({**content, "databases": []}))
        case "no zone":
            listed.write_text(json.dumps({**content, "since": "2026-11-24T00:00:00"}))
        case _:
            listed.write_text(json.dumps({**content, "databases": {"shop": content["databases"]["shop"] * 2}}))
    found = location.defs()
    dg.Definitions.validate_loadable(found)
    assert "is not loaded" in str(spec(found, "not_loaded", "one").description)
    assert "two/shop/dbo/orders" in names(found)


def test_connectors_in_a_folder_load_without_a_database_and_without_their_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path))
    write_connector(tmp_path, "one", table("orders"), table("people"))
    write_connector(tmp_path, "two", table("orders"))
    found = location.defs()
    dg.Definitions.validate_loadable(found)
    assert {"one/shop/dbo/people", "two/shop/dbo/orders"} <= names(found)
    assert len(list(found.sensors or ())) == 2


@pytest.mark.parametrize("written", [True, False])
def test_windows_begin_when_the_tables_were_first_listed(tmp_path, monkeypatch, written: bool):  # noqa: FBT001
    """An older list does not say when; then it is the time of the file."""
    monkeypatch.setenv("MSSQL_CDC_CONNECTORS", str(tmp_path))
    path = write_connector(tmp_path, "one", table("orders"))
    since = datetime.now(UTC) - timedelta(days=2)
    listed = path.with_name("one.tables.json")
    if written:
        listed.write_text(json.dumps({**json.loads(listed.read_text()), "since": since.isoformat()}))
    else:
        os.utime(listed, (since.timestamp(), since.timestamp()))
    windows = spec(location.defs(), "one", "shop", "dbo", "orders").partitions_def
    assert isinstance(windows, dg.TimeWindowPartitionsDefinition)
    assert windows.start == since.replace(minute=0, second=0, microsecond=0)


@pytest.mark.parametrize(("value", "status"), [("running", "RUNNING"), ("", "STOPPED")])
def test_sensors_start_automatically_only_if_configured(monkeypatch, value, status):
    monkeypatch.setenv("MSSQL_CDC_SENSORS", value)
    (sensor,) = tuple(build_definitions(connector(), tables=[table("orders")]).sensors or ())
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.default_status.name == status


@pytest.mark.feature("GRD-02")
def test_a_location_with_more_tables_than_allowed_does_not_load():
    settings = {"guardrail_collections_max": 1, "guardrail_collections_limit_action": "fail"}
    with pytest.raises(ConfigurationError, match="2 tables configured for capture"):
        build_definitions(connector(**settings), tables=[table("orders"), table("people")])


@pytest.mark.parametrize(
    "key",
    ["schema_history", "notifications", "heartbeat", "snapshots", "signals", "dbo/orders", "dbo/orders_current"],
)
def test_settings_without_effect_are_named_on_every_asset_of_the_lake(key: str):
    found = build_definitions(connector(tasks_max="3", producer_acks="all"), tables=[table("orders")])
    said = "2 Kafka and Java settings have no meaning here: tasks.max, producer.acks"
    path = ("server1", "shop", *key.split("/"))
    assert spec(found, *path).metadata["mssql_cdc/notices"].text == said
    assert "mssql_cdc/notices" not in spec(shop_without_notices(), *path).metadata


def shop_without_notices() -> dg.Definitions:
    return build_definitions(connector(), tables=[table("orders")])


@pytest.mark.parametrize(("interval", "seconds"), [({}, 5), ({"poll_interval_ms": "1500"}, 2)])
def test_the_sensor_ticks_as_often_as_the_polling_interval_says(interval: dict[str, Any], seconds: int):
    (sensor,) = list(build_definitions(connector(**interval), tables=[table("orders")]).sensors or ())
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.minimum_interval_seconds == seconds
