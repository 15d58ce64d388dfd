"""The asset `records`: the output is fed by the run that captures, and only its own check suffers when it fails."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from mssql_cdc.defs.build import build_definitions
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.dagster.kit import Location, connector, failures, metadata, table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "records.jsonl"


@pytest.fixture
def writing(streaming: Location, target: Path) -> Location:
    """Two streaming tables whose records go to a file; nothing has been read yet."""
    target.parent.mkdir()
    return streaming.reloaded(delta_records_output=str(target))


def keys(target: Path) -> list[Any]:
    """The tables and keys of the records of rows in a file."""
    found = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    return [(one["topic"].rsplit(".")[-1], one["key"]["id"]) for one in found if "id" in one["key"]]


def reported(location: Location) -> list[dict[str, Any]]:
    return [metadata(event) for event in location.materializations(location.setup.records_key)]


def checks(location: Location) -> list[tuple[bool, Any]]:
    """The outcomes of the output's check and what they say, newest first."""
    key = dg.AssetCheckKey(location.setup.records_key, "written")
    records = location.instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
    events = [record.event.dagster_event for record in records if record.event]
    found = [one.event_specific_data for one in events if one]
    return [
        (one.passed, one.metadata["mssql_cdc/problem"].value if "mssql_cdc/problem" in one.metadata else None)
        for one in found
        if isinstance(one, dg.AssetCheckEvaluation)
    ]


def test_run_that_captures_writes_the_records_of_its_cuts(writing: Location, target: Path) -> None:
    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (7, N'Ann')")
    results = writing.settle()
    assert keys(target) == [("orders", 1), ("people", 7)]
    assert checks(writing)[0] == (True, None)
    (newest, *_) = reported(writing)
    lines = target.read_text(encoding="utf-8").splitlines()
    assert newest["dagster/row_count"] == len(lines)
    assert newest["mssql_cdc/records"] == len(lines)
    assert newest["mssql_cdc/commit_lsn"] == json.loads(lines[-1])["sourceOffset"]["commit_lsn"]
    assert newest["mssql_cdc/lag_seconds"] == 0
    assert results
    writing.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    writing.settle()
    assert keys(target) == [("orders", 1), ("people", 7), ("orders", 2)]
    (newest, *_) = reported(writing)
    assert (newest["dagster/row_count"], newest["mssql_cdc/records"]) == (len(lines) + 1, 1)


def test_output_that_fails_turns_only_its_own_check_red_and_is_caught_up_later(writing: Location, target: Path) -> None:
    target.mkdir()
    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    results = writing.settle()
    assert all(one.success for one in results)
    assert writing.checks("orders")[0]
    assert writing.logged("orders")["mssql_cdc/inserts"] == 1
    passed, problem = checks(writing)[0]
    assert not passed
    assert "IsADirectoryError" in problem
    assert not reported(writing)
    target.rmdir()
    writing.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    writing.settle()
    assert keys(target) == [("orders", 1), ("orders", 2)]
    assert checks(writing)[0] == (True, None)


def test_materializing_the_asset_alone_catches_its_output_up(streaming: Location, target: Path) -> None:
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    location = streaming.reloaded(delta_records_output=str(target))
    failed = location.materialize(location.setup.records_key)
    assert not failed.success
    assert "FileNotFoundError" in failures(failed)[0]
    assert checks(location)[0][0] is False
    target.parent.mkdir()
    done = location.materialize(location.setup.records_key)
    assert done.success, failures(done)
    assert keys(target) == [("orders", 1)]
    assert checks(location)[0] == (True, None)
    (newest,) = reported(location)
    assert newest["mssql_cdc/records"] == newest["dagster/row_count"] == len(target.read_text().splitlines())
    assert len(location.materializations(location.key("orders"))) == len(
        streaming.materializations(streaming.key("orders"))
    )


def test_a_window_that_is_materialized_with_the_output_fails_if_that_cannot_be_written(
    writing: Location, target: Path
) -> None:
    """The thread that wrote it was the only one to know: the run succeeded."""
    target.mkdir()
    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (7, N'Ann')")
    writing.shop.scan()
    selected = [*(writing.key(one.table_id.name) for one in writing.tables), writing.setup.records_key]
    failed = writing.materialize(*selected, partition=writing.window)
    assert not failed.success
    (said,) = failures(failed)
    assert "The output of records cannot be written: IsADirectoryError" in said
    assert writing.logged("orders")["mssql_cdc/inserts"] == 1, "the windows are read and reported all the same"
    assert [one for one, _ in checks(writing)] == [False]
    target.rmdir()
    done = writing.materialize(*selected, partition=writing.window)
    assert done.success, failures(done)
    assert keys(target) == [("orders", 1), ("people", 7)]
    assert checks(writing)[0] == (True, None)


def test_a_window_that_is_materialized_without_the_output_leaves_that_to_others(
    writing: Location, target: Path
) -> None:
    target.mkdir()
    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    writing.shop.scan()
    done = writing.materialize(writing.key("orders"), partition=writing.window)
    assert done.success, failures(done)
    assert checks(writing) == []


def test_output_that_another_run_writes_to_is_no_failure(writing: Location, target: Path) -> None:
    from mssql_cdc.records.file_output import open_file

    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    with open_file(str(target)):
        results = writing.settle()
    assert all(one.success for one in results)
    assert all(passed for passed, _ in checks(writing))
    assert not target.read_text(encoding="utf-8")
    done = writing.materialize(writing.setup.records_key)
    assert done.success, failures(done)
    assert keys(target) == [("orders", 1)]


def test_output_that_another_run_writes_to_is_waited_for_by_an_operators_run(writing: Location, target: Path) -> None:
    from mssql_cdc.records.file_output import open_file

    writing.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    writing.shop.scan()
    with ExitStack() as other:
        other.enter_context(open_file(str(target)))
        end = Timer(2, other.close)
        end.start()
        selected = [*(writing.key(one.table_id.name) for one in writing.tables), writing.setup.records_key]
        done = writing.materialize(*selected, partition=writing.window)
        end.join()
    assert done.success, failures(done)
    assert keys(target) == [("orders", 1)]


def test_records_that_cannot_be_rendered_are_said_by_the_check(streaming: Location, tmp_path: Path) -> None:
    location = streaming.reloaded(delta_records_output=str(tmp_path / "records.jsonl"), transforms="unwrap")
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    assert all(one.success for one in location.settle())
    passed, problem = checks(location)[0]
    assert not passed
    assert "transforms" in problem


def test_output_can_be_a_delta_table_of_each_database(streaming: Location, tmp_path: Path) -> None:
    location = streaming.reloaded(delta_records_output=f"delta:{tmp_path}/records/{{database}}")
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.settle()
    found = DeltaTable(f"{tmp_path}/records/{location.shop.catalog}").to_pyarrow_table()
    assert [one for one in found.column("topic").to_pylist() if one.endswith("orders")]
    assert reported(location)[0]["dagster/row_count"] == found.num_rows


def test_connector_without_an_output_has_no_such_asset() -> None:
    made = build_definitions(connector(), tables=[table("orders")])
    assert not [spec for spec in made.resolve_all_asset_specs() if spec.key.path[-1] == "records"]
    made = build_definitions(connector(delta_records_output="out/records.jsonl"), tables=[table("orders")])
    (spec,) = [spec for spec in made.resolve_all_asset_specs() if spec.key.path[-1] == "records"]
    assert Path(spec.metadata["mssql_cdc/output"]).is_absolute()
    assert [dep.asset_key.path[-1] for dep in spec.deps] == ["orders"]


@pytest.mark.parametrize(
    ("output", "databases", "expected"),
    [("-", "shop", "expected a file or delta:"), ("out.jsonl", "shop,other", "put {database} into it")],
)
def test_output_that_cannot_be_used_is_refused(output: str, databases: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=r"delta\.records\.output") as caught:
        connector(database=databases, delta_records_output=output)
    assert expected in str(caught.value)
