"""The sensor against the stand-in server: its requests, and its reaction to failed, lost or forgotten runs."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyodbc
import pytest

from mssql_cdc.defs.runs import RANGE_TAG, SNAPSHOT_TAG
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.dagster.kit import failures, metadata, shown
from mssql_cdc_tests.dagster.sensing import ask, attempt, entry

pytestmark = [pytest.mark.spark]


@pytest.mark.feature("SNP-02")
def test_a_new_database_is_snapshotted_and_then_streamed(shop, locate, spark):
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    location = locate()
    first = ask(location)
    assert first.tags[SNAPSHOT_TAG].startswith("snapshot-")
    assert attempt(first) == 1
    assert location.run(first).success
    taken = location.materializations(location.snapshots)
    assert {event.partition for event in taken} == {"dbo.first_table", "dbo.orders"}
    (event,) = (event for event in taken if event.partition == "dbo.orders")
    assert metadata(event)["dagster/partition_row_count"] == 2
    assert metadata(event)["mssql_cdc/snapshot"] == first.tags[SNAPSHOT_TAG]
    (event,) = location.materializations(location.key("orders"))
    assert (event.partition, metadata(event)["mssql_cdc/reads"]) == (location.window, 2)

    shop.run("UPDATE dbo.orders SET name = N'zwei' WHERE id = 2", "DELETE dbo.orders WHERE id = 1")
    second = ask(location)
    assert (second.partition_key, second.run_key) == (location.window, None)
    done = location.run(second)
    assert done.success, failures(done)
    event = location.materializations(location.key("orders"))[0]
    found = metadata(event)
    assert event.partition == location.window
    assert found["dagster/partition_row_count"] == 4
    assert (found["mssql_cdc/inserts"], found["mssql_cdc/updates"], found["mssql_cdc/deletes"]) == (0, 1, 1)
    assert found["mssql_cdc/from_lsn"] < found["mssql_cdc/to_lsn"]
    assert found["mssql_cdc/capture_instance"] == "dbo_orders"
    assert {"mssql_cdc/commit_time_min", "mssql_cdc/commit_time_max", "mssql_cdc/delta_version"} <= found.keys()
    assert isinstance(found["mssql_cdc/lag_seconds"], float)
    assert found["mssql_cdc/complete"] is False
    assert location.checks("orders")[0] is True
    current = metadata(location.materializations(location.current("orders"))[0])
    assert current["dagster/row_count"] == 1
    assert current["mssql_cdc/merged_rows"] >= 2
    location.settle()
    quiet = json.loads(location.cursor)
    assert quiet["cursor"]["merged"] is not None
    assert "no changes" in location.tick().skip_message
    assert json.loads(location.cursor) == quiet
    assert location.materializations(location.setup.heartbeat_key)
    assert shop.connection.password.read() not in shown(location.instance) + location.cursor


def test_a_range_is_not_requested_again_while_it_runs(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    request = ask(streaming)
    started = streaming.launch(request)
    assert started.run_id[:8] in streaming.tick().skip_message


@pytest.mark.feature("PRE-03", "STR-14")
@pytest.mark.parametrize(
    ("stopped", "says"),
    [
        ("EXEC sandbox.agent_stop", "SQL Server Agent is not running: start it"),
        ("EXEC sandbox.capture_pause", "SQL Server Agent is running: check its capture job"),
    ],
    ids=["Agent", "job"],
)
def test_a_capture_that_stands_still_is_a_red_tick(streaming, stopped, says):
    assert "no changes" in streaming.tick().skip_message
    streaming.shop.run(stopped, "EXEC sandbox.advance_clock @seconds = 300")
    for _ in range(2):  # a thorough look, then a quiet one
        with pytest.raises(dg.Failure, match=rf"no changes.*capture has not scanned since .*; {says}"):
            streaming.tick()
    streaming.shop.run("EXEC sandbox.agent_start")
    streaming.shop.scan()
    assert "no changes" in streaming.tick().skip_message


def test_a_red_tick_forgets_nothing_that_has_an_interval(streaming):
    """A failed tick keeps no cursor: the statement of the heartbeat ran at every tick."""
    streaming.shop.run("CREATE TABLE dbo.beats (at datetime2 NOT NULL)")
    query = "INSERT INTO dbo.beats VALUES (SYSUTCDATETIME())"
    location = streaming.reloaded(heartbeat_interval_ms=3_600_000, heartbeat_action_query=query)
    location.started = 1.0
    location.shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    for _ in range(3):
        with pytest.raises(dg.Failure, match="capture has not scanned since"):
            location.tick()
    location.shop.run("EXEC sandbox.agent_start")
    location.shop.scan()
    assert "no changes" in location.tick().skip_message
    with control(location.shop.connection, location.shop.catalog) as found:
        assert found.value("SELECT COUNT(*) FROM dbo.beats", doing="counting heartbeats") == 1


@pytest.mark.feature("STR-14")
def test_a_scan_that_makes_no_progress_between_two_ticks_is_a_red_tick(streaming):
    """Each tick had a source of its own, so that none saw the scan twice."""
    try:
        streaming.shop.run("EXEC sandbox.capture_hang")
        assert "no changes" in streaming.tick().skip_message
        streaming.shop.run("EXEC sandbox.advance_clock @seconds = 1000")
        with pytest.raises(dg.Failure, match=r"has made no progress for 16 minutes"):
            streaming.tick()
    finally:
        streaming.shop.run("EXEC sandbox.capture_resume")
        streaming.shop.set_clock(datetime.now(UTC))


def test_a_manually_launched_run_delays_the_next_range(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.shop.scan()
    run = dg.DagsterRun(
        job_name="__ASSET_JOB",
        asset_selection={streaming.key("orders")},
        status=dg.DagsterRunStatus.STARTED,
        tags={"dagster/partition": streaming.window},
    )
    streaming.instance.add_run(run)
    assert run.run_id[:8] in streaming.tick().skip_message


def test_runs_of_another_project_delay_nothing(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.instance.add_run(
        dg.DagsterRun(
            job_name="__ASSET_JOB",
            asset_selection={dg.AssetKey(["somebody", "else"])},
            status=dg.DagsterRunStatus.STARTED,
        )
    )
    assert attempt(ask(streaming)) == 1


def test_a_failing_table_is_retried_alone_then_set_to_failed_and_manually_recovered(streaming, spark):
    location, shop = streaming, streaming.shop
    location = location.reloaded(dagster_max_attempts=2)
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    shop.run("EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_people_CT', @number = 208, @times = 1000")
    first = ask(location)
    done = location.run(first)
    assert not done.success
    assert "dbo.people" in failures(done)[0]
    assert location.logged("orders")["mssql_cdc/inserts"] == 1
    assert "mssql_cdc/inserts" not in location.logged("people") or location.logged("people")["mssql_cdc/inserts"] == 0
    assert (location.checks("orders")[0], location.checks("people")[0]) == (True, False)

    location.tick_past_the_wait()
    (second,) = location.requests
    assert (second.tags[RANGE_TAG], attempt(second)) == (first.tags[RANGE_TAG], 2)
    assert location.key("people") in second.asset_selection
    assert location.key("orders") not in second.asset_selection
    assert not location.run(second).success
    assert shop.connection.password.read() not in shown(location.instance)

    shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    third = ask(location)
    assert entry(location, "people").status == "failed"
    assert location.checks("people")[0] is False
    assert location.key("people") not in third.asset_selection
    assert location.run(third).success
    offsets = load_offsets(location.database().layout)
    assert offsets.history.rows[-1].complete
    assert offsets.history.rows[-1].failed == (f"{shop.catalog}.dbo.people",)

    shop.run("EXEC sandbox.clear_faults")
    assert location.materialize(location.key("people"), partition=third.partition_key).success
    assert entry(location, "people").status == "streaming"
    assert location.checks("people")[0] is True
    assert metadata(location.materializations(location.key("people"))[0])["mssql_cdc/inserts"] == 1


def test_a_lost_cursor_loses_only_the_attempt_count(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    first = ask(streaming)
    streaming.launch(first, dg.DagsterRunStatus.FAILURE)
    streaming.cursor = None
    again = ask(streaming)
    assert (again.tags[RANGE_TAG], again.run_key, attempt(again)) == (first.tags[RANGE_TAG], None, 1)


def test_a_canceled_run_is_requested_again(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    first = ask(streaming)
    streaming.launch(first, dg.DagsterRunStatus.CANCELED)
    streaming.tick_past_the_wait()
    assert [(one.tags[RANGE_TAG], attempt(one)) for one in streaming.requests] == [(first.tags[RANGE_TAG], 2)]


def test_a_snapshot_that_failed_before_it_started_keeps_its_id(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate()
    first = ask(location)
    location.launch(first, dg.DagsterRunStatus.FAILURE)
    second = ask(location)
    assert (second.tags[SNAPSHOT_TAG], attempt(second)) == (first.tags[SNAPSHOT_TAG], 2)


def test_the_retry_of_a_failed_snapshot_is_delayed(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate(retriable_restart_connector_wait_ms=600_000)
    location.launch(ask(location), dg.DagsterRunStatus.FAILURE)
    assert location.tick().run_requests == []


def test_the_sensor_waits_for_a_source_that_is_down_and_shows_no_password(shop, locate, tmp_path):
    location = locate().reloaded(database_port=1, driver_loginTimeout=1)
    message = location.tick().skip_message
    assert "SourceUnavailableError" in message
    assert location.connector.connection.password.read() not in message


def test_a_wrong_password_fails_the_tick_and_is_not_shown(shop, locate):
    location = locate().reloaded(database_password="wrong-and-secret")
    with pytest.raises(dg.Failure, match="Login failed") as raised:
        location.tick()
    assert "wrong-and-secret" not in str(raised.value)


def test_a_refused_login_is_not_repeated_by_every_tick(shop, locate, monkeypatch):
    """The server counts attempts, and locks the account that capture itself uses."""
    logins, really_connect = [], pyodbc.connect
    monkeypatch.setattr(pyodbc, "connect", lambda *given, **more: logins.append(1) or really_connect(*given, **more))
    location = locate().reloaded(database_password="wrong-and-secret")
    logins.clear()
    with pytest.raises(dg.Failure, match="Login failed"):
        location.tick()
    for _ in range(3):
        with pytest.raises(dg.Failure, match=r"Login failed.* the next one is in"):
            location.tick()
    assert len(logins) == 2  # One to the database, one to `master` to tell what was refused.
    location.started = datetime.now(UTC).timestamp() + 1
    with pytest.raises(dg.Failure, match="Login failed"):
        location.tick()
    assert len(logins) == 4


def test_lost_offsets_are_a_red_tick_until_they_are_back(streaming, tmp_path):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    assert streaming.run(ask(streaming)).success
    offsets = streaming.database().layout.own("offsets")
    shutil.move(offsets, tmp_path / "backup")
    for _ in range(2):
        with pytest.raises(dg.Failure, match=r"_offsets is gone, and the change logs of .*dbo\.orders"):
            streaming.tick()
    shutil.move(tmp_path / "backup", offsets)
    assert "no changes" in streaming.tick().skip_message


def test_the_pools_exist_before_the_first_run(streaming):
    storage = streaming.instance.event_log_storage
    assert storage.get_concurrency_info(streaming.names.pool).slot_count == 3
    assert storage.get_concurrency_info(streaming.names.snapshot_pool).slot_count == 1


def test_a_limit_of_the_pool_that_an_operator_has_lowered_stays(streaming):
    """Such as 0, to hold runs back."""
    storage, pool = streaming.instance.event_log_storage, streaming.names.pool
    storage.set_concurrency_slots(pool, 0)
    streaming.tick()
    assert storage.get_concurrency_info(pool).slot_count == 0


def test_snapshots_have_one_slot_although_the_instance_has_made_their_pool(streaming):
    """A snapshot that was launched by hand before the first tick makes the pool with the default of the instance."""
    storage, pool = streaming.instance.event_log_storage, streaming.names.snapshot_pool
    storage.delete_concurrency_limit(pool)
    storage.initialize_concurrency_limit_to_default(pool)
    streaming.tick()
    assert storage.get_concurrency_info(pool).slot_count == 1
    storage.set_concurrency_slots(pool, 2)
    streaming.tick()
    assert storage.get_concurrency_info(pool).slot_count == 2, "an operator's limit stays"


def test_a_run_requested_by_the_sensor_has_few_tags(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    own = {name for name in {**streaming.job.tags, **ask(streaming).tags} if name.startswith("mssql_cdc/")}
    assert own == {"mssql_cdc/connector", "mssql_cdc/range"}
    assert streaming.job.tags["dagster/max_retries"] == "0"


def test_a_range_selects_every_table_that_streams(streaming):
    """Also one without a change: a cut has all of them, and a run reads what is selected."""
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    request = ask(streaming)
    assert {streaming.key("orders"), streaming.key("people")} <= {*(request.asset_selection or ())}
    assert streaming.setup.heartbeat_key in request.asset_selection
    assert streaming.setup.transactions_key not in request.asset_selection


@pytest.mark.feature("HB-03")
def test_the_heartbeat_statement_runs_when_its_interval_has_passed(streaming):
    shop = streaming.shop
    shop.run("CREATE TABLE dbo.beats (at datetime2)")
    query = "INSERT INTO dbo.beats VALUES (SYSUTCDATETIME())"
    location = streaming.reloaded(heartbeat_interval_ms=3_600_000, heartbeat_action_query=query)
    location.tick()
    location.tick()
    with control(shop.connection, shop.catalog) as opened:
        assert opened.value("SELECT COUNT(*) FROM dbo.beats", doing="counting") == 1


@pytest.mark.feature("SNP-01")
def test_always_requests_a_snapshot_when_the_sensor_is_turned_on_and_not_at_every_tick(streaming, spark):
    location = streaming.reloaded(snapshot_mode="always")
    location.started = 1_000.0
    request = ask(location)
    assert request.tags[SNAPSHOT_TAG].startswith("snapshot-")
    assert location.run(request).success
    location.settle()
    assert location.tick().skip_message
    location.started = 2_000.0
    assert ask(location).tags[SNAPSHOT_TAG].startswith("snapshot-")


def test_a_clock_that_was_far_ahead_puts_off_no_whole_look(streaming):
    """Until it came to where the last one was noted, ticks only asked whether anything was captured."""
    assert streaming.tick().skip_message
    memory = json.loads(streaming.cursor)
    ahead = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    streaming.cursor = json.dumps({**memory, "looked": ahead})
    assert streaming.tick().skip_message
    assert json.loads(streaming.cursor)["looked"][:10] != ahead[:10]
