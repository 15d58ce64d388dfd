"""A table that the source no longer shows, or that cannot be captured as it is, is red until that is mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import DagsterEvent, DagsterEventType
from deltalake import DeltaTable

from mssql_cdc.defs.specs import CHECK
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.dagster.watching import HOUR, watched
from mssql_cdc_tests.sandbox_source.kit import open_shop

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
HIDDEN = "the login can no longer see it: GRANT SELECT ON [dbo].[orders] TO"
REVOKE, GRANT = "REVOKE SELECT ON dbo.orders FROM reader", "GRANT SELECT ON dbo.orders TO reader"


def is_red(location: Location, name: str, problem: str) -> bool:
    """Whether the table's check is an error that names the problem and how to mend it."""
    passed, severity, text = location.verdict(name)
    return not passed and severity == "ERROR" and problem in text and "mend what the problem names" in text


def after_a_minute(location: Location) -> None:
    """Let the next tick look at everything, also if nothing was captured."""
    assert location.cursor is not None
    location.cursor = json.dumps(json.loads(location.cursor) | {"looked": None})


def rows(location: Location, name: str) -> int:
    return DeltaTable(location.database().layout.root + f"/dbo/{name}/changes").to_pyarrow_dataset().count_rows()


def test_a_hidden_table_is_red_while_a_run_streams_and_its_windows_stay_missing(streaming, spark):
    watch = watched(streaming.as_reader(), spark)
    location = watch.location
    watch.settle()
    watch.book.turn()
    watch.windows("orders")
    assert location.checks("orders")[0] is True
    location.change_rights(REVOKE)
    location.shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.shop.scan()
    watch.settle()
    assert is_red(location, "orders", HIDDEN)
    assert location.checks("people")[0] is True
    watch.ahead = 2 * HOUR
    watch.settle()
    watch.book.turn()
    assert watch.windows("orders") == []
    assert location.logged("people")["mssql_cdc/inserts"] == 0
    location.change_rights(GRANT)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.shop.scan()
    watch.settle()
    watch.book.turn()
    assert location.checks("orders")[0] is True
    assert rows(location, "orders") == 1


def test_a_hidden_table_that_is_materialized_by_hand_is_a_failure_that_names_the_remedy(streaming):
    location = streaming.as_reader()
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.shop.scan()
    location.change_rights(REVOKE)
    before = len(location.materializations(location.key("orders")))
    done = location.materialize(location.key("orders"), location.key("people"), partition=location.window)
    assert not done.success
    assert HIDDEN in failures(done)[0]
    assert is_red(location, "orders", HIDDEN)
    assert len(location.materializations(location.key("orders"))) == before
    assert location.logged("people")["mssql_cdc/inserts"] == 1
    location.change_rights(GRANT)
    done = location.materialize(location.key("orders"), partition=location.window)
    assert done.success, failures(done)
    assert location.checks("orders")[0] is True
    assert location.logged("orders")["mssql_cdc/inserts"] == 1


def test_a_snapshot_of_a_hidden_table_names_the_remedy_and_the_other_tables_are_read(streaming):
    location = streaming.as_reader()
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.settle()
    location.change_rights(REVOKE)
    several = {
        "dagster/asset_partition_range_start": "dbo.orders",
        "dagster/asset_partition_range_end": "dbo.people",
        "mssql_cdc/snapshot_all": "true",
    }
    done = location.materialize(location.snapshots, tags=several)
    assert not done.success
    assert HIDDEN in failures(done)[0]
    assert is_red(location, "orders", HIDDEN)
    assert location.logged("people")["mssql_cdc/reads"] == 1
    location.change_rights(GRANT)
    done = location.materialize(location.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    assert location.checks("orders")[0] is True


def look_around(location: Location) -> str:
    """Tick as once a minute, when the whole database is surveyed; why the tick skips."""
    after_a_minute(location)
    return str(location.tick().skip_message)


@pytest.mark.parametrize("tables", [["orders"], ["orders", "people", "first_table"]], ids=["one", "all"])
def test_the_sensor_reports_hidden_tables_although_no_run_is_due(streaming, tables: list[str]):
    location = streaming.as_reader()
    location.settle()
    location.change_rights(*(REVOKE.replace("orders", name) for name in tables))
    said = look_around(location)
    assert HIDDEN in said
    for name in tables:
        assert is_red(location, name, HIDDEN.replace("orders", name))
    evaluated = len(location.evaluations("orders"))
    look_around(location)
    assert len(location.evaluations("orders")) == evaluated, "the same is reported again"
    location.change_rights(*(GRANT.replace("orders", name) for name in tables))
    assert HIDDEN not in look_around(location)
    for name in tables:
        assert location.checks(name)[0] is True


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        pytest.param(
            "EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'",
            "CDC is no longer enabled on it; enable it",
            marks=pytest.mark.long,
        ),
        ("DROP TABLE dbo.orders", "it was dropped, or the login cannot see it"),
    ],
    ids=["CDC disabled", "dropped"],
)
def test_the_sensor_reports_a_table_that_is_not_captured_any_more(streaming, statement: str, problem: str):
    location = streaming
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.settle()
    assert location.checks("orders")[0] is True
    location.shop.run(statement)
    after_a_minute(location)
    location.tick()
    passed, severity, text = location.verdict("orders")
    assert (passed, severity) == (False, "ERROR")
    assert problem in text
    location.shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.settle()
    assert location.checks("people")[0] is True
    assert location.checks("orders")[0] is False


def test_a_check_that_a_run_has_only_planned_keeps_no_table_from_being_reported(streaming):
    location = streaming.as_reader()
    location.settle()
    run = location.instance.add_run(dg.DagsterRun(job_name=location.job.name, status=dg.DagsterRunStatus.FAILURE))
    planned = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value,
        job_name=location.job.name,
        event_specific_data=AssetCheckEvaluationPlanned(asset_key=location.key("orders"), check_name=CHECK),
    )
    location.instance.report_dagster_event(planned, run.run_id)
    location.change_rights(REVOKE)
    assert HIDDEN in look_around(location)
    assert is_red(location, "orders", HIDDEN)


def test_a_run_of_the_sensor_reports_a_hidden_table(streaming):
    location = streaming.as_reader()
    location.settle()
    location.change_rights(REVOKE)
    location.shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.settle()
    assert is_red(location, "orders", HIDDEN)
    assert location.checks("people")[0] is True
    location.change_rights(GRANT)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.settle()
    assert location.checks("orders")[0] is True


def test_neither_execute_nor_an_acknowledgment_makes_a_hidden_table_green(streaming):
    location = streaming.as_reader()
    location.settle()
    location.change_rights(REVOKE)
    check = dg.AssetCheckKey(location.key("orders"), "captured_faithfully")
    job = location.repository.get_implicit_global_asset_job_def()
    chosen = job.get_subset(asset_selection=set(), asset_check_selection={check})
    assert chosen.execute_in_process(instance=location.instance, raise_on_error=False).success
    assert is_red(location, "orders", HIDDEN)
    config = {"ops": {f"signals__{location.names.stem}": {"config": {"tables": [], "action": "acknowledge_gaps"}}}}
    done = location.materialize(location.names.extra_key("signals"), run_config=config)
    assert done.success, failures(done)
    assert is_red(location, "orders", HIDDEN)
    assert location.checks("people")[0] is True
    location.change_rights(GRANT)
    assert chosen.execute_in_process(instance=location.instance, raise_on_error=False).success
    assert location.checks("orders")[0] is True


def test_a_table_that_was_hidden_before_it_was_ever_read_is_red(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    location = locate(snapshot_mode="no_data").as_reader()
    location.change_rights(REVOKE)
    location.settle()
    assert is_red(location, "orders", "the source does not show it")
    assert "GRANT SELECT ON [dbo].[orders]" in location.verdict("orders")[2]
    location.change_rights(GRANT)
    after_a_minute(location)
    location.settle()
    assert location.checks("orders")[0] is True


def test_a_table_with_a_masked_column_is_red_until_the_login_may_unmask_it(streaming):
    """Audit of issue 10, 1: its snapshots took masks for values, and everything was green."""
    location = streaming.as_reader()
    location.settle()
    location.shop.run("ALTER TABLE dbo.orders ALTER COLUMN name ADD MASKED WITH (FUNCTION = 'default()')")
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.settle()
    assert is_red(location, "orders", "the login sees masks in the place of values (name: dynamic data masking)")
    assert "GRANT UNMASK ON [dbo].[orders] TO" in location.verdict("orders")[2]
    assert location.checks("people")[0] is True
    done = location.materialize(location.snapshots, partition="dbo.orders")
    assert not done.success
    assert "the login sees masks" in failures(done)[0]
    location.change_rights("GRANT UNMASK ON dbo.orders TO reader")
    done = location.materialize(location.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    assert location.checks("orders")[0] is True
    assert location.logged("orders")["mssql_cdc/reads"] == 1


@pytest.fixture
def case_sensitive(
    server: dict[str, Any], instance: dg.DagsterInstance, tmp_path: Any
) -> Iterator[Callable[..., Location]]:
    with ExitStack() as stack:
        shop = stack.enter_context(open_shop(server, collation="Latin1_General_CS_AS"))
        yield lambda **more: Location.of(shop, tmp_path, instance, **more)


def test_columns_that_differ_by_case_make_their_table_red_until_one_is_excluded(case_sensitive):
    location = case_sensitive(snapshot_mode="no_data")
    location.shop.create("cases", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    location = case_sensitive(snapshot_mode="no_data")
    location.shop.run("DROP TABLE dbo.cases")
    location.shop.create("cases", "id int NOT NULL PRIMARY KEY, name nvarchar(20), Name nvarchar(20)")
    location.settle()
    assert is_red(location, "cases", "dbo.cases has columns like 'Name' that differ only by case")
    assert location.checks("first_table")[0] is True
    location = location.reloaded(column_exclude_list="dbo[.]cases[.](?-i:Name)")
    after_a_minute(location)
    location.settle()
    assert location.checks("cases")[0] is True


def test_a_folder_of_another_connector_makes_its_table_red_until_it_is_removed(streaming):
    location = streaming
    home = location.database().layout.home(TableId(location.shop.catalog, "dbo", "orders"))
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.settle()
    table = DeltaTable(home.changes)
    table.alter.set_table_properties({"mssql_cdc.owner": "another"}, raise_if_not_exists=False)
    location.shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.settle()
    assert is_red(location, "orders", "belongs to another")
    assert location.checks("people")[0] is True
    owner = location.database().layout.home(TableId(location.shop.catalog, "dbo", "orders")).app_id
    DeltaTable(home.changes).alter.set_table_properties({"mssql_cdc.owner": owner}, raise_if_not_exists=False)
    location.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    location.settle()
    assert location.checks("orders")[0] is True
    assert load_offsets(location.database().layout).entries[f"{location.shop.catalog}.dbo.orders"].status == "streaming"
