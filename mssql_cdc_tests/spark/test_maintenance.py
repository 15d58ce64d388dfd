"""OPTIMIZE and VACUUM preserve rows, progress and fence."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyarrow.parquet import ParquetFile

from mssql_cdc.errors import ConfigurationError, MssqlCdcError
from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import refresh
from mssql_cdc.lake.maintenance import optimize, tidy, vacuum
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets, offsets_table
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.retention import RETAIN_HOURS
from mssql_cdc.lake.small_tables import SMALL_TABLES, SmallTable
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.lake.storage import storage_warning
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc.run import maintain as run_maintain
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.maintain import Maintained, maintain
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, neutral, orders
from mssql_cdc_tests.spark.model_lake import model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_maintenance_keeps_rows_and_progress(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in (1, 2, 3):
        after = {"id": number, "name": "a", "note": None}
        state = append(state, schema, Change(number, "c", after=after))
    garbage = neutral(schema, Change(9, "c", after={"id": 9}))
    write_files([garbage], FileTarget(home.changes))
    assert optimize(spark, home.changes) == (3, 1)
    vacuum(spark, home.changes, retain_hours=RETAIN_HOURS)
    after_it = refresh(state)
    verify_untouched(after_it, table_id=state.table_id, delta_version=state.delta_version)
    assert (after_it.batch, after_it.to) == (state.batch, state.to)
    assert sorted(read_table(home.changes, columns=["_key"]).column("_key").to_pylist()) == ["1:1", "1:2", "1:3"]


def test_ranges_and_updates_go_on_beside_maintenance(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = ModelSource("orders")
    database = model_database(source, spark, tmp_path)
    for key in range(2):
        source.put("orders", key, "one")
        settled(database, source)
    steps, ended, within, done = 0, threading.Event(), list[int](), list[Maintained]()

    def counting(*arguments: Any) -> tuple[int, int]:
        before = steps
        found = optimize(*arguments)
        within.append(steps - before)
        return found

    def maintain_all() -> None:
        try:
            done.extend(maintain(database, retain_hours=RETAIN_HOURS))
        finally:
            ended.set()

    monkeypatch.setattr(run_maintain, "optimize", counting)
    follower = Follower(database)
    with ThreadPoolExecutor(1) as pool:
        maintained = pool.submit(maintain_all)
        while not ended.wait(0.3):
            source.put("orders", steps % 5, f"step {steps}")
            source.capture()
            follower.step()
            steps += 1
    maintained.result()
    follower.close()
    assert max(within) > 0, "ranges waited for a table's compaction"
    assert {one.name for one in done if one.removed} >= {"_offsets", "shop.dbo.orders changes"}
    settled(database, source)
    same(database, source)


def test_tables_that_cannot_be_maintained_keep_none_of_the_others(spark: SparkSession, tmp_path: Path):
    """The first error ended it, and the tables behind were never compacted."""
    source = ModelSource("orders", "people")
    database = model_database(source, spark, tmp_path)
    write_some(source)
    settled(database, source)
    broken = {
        "_gaps": database.layout.own("gaps"),
        "shop.dbo.orders changes": f"{database.layout.root}/dbo/orders/changes",
    }
    for folder in broken.values():
        log = Path(folder) / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        newest = max(log.glob("*.json"), default=log / f"{0:020}.json")
        newest.write_text('{"commitInfo":', encoding="utf-8")
    done: list[Maintained] = []
    found = maintain(database, retain_hours=RETAIN_HOURS)
    with pytest.raises(MssqlCdcError) as raised:
        done.extend(found)  # What comes before the error stays.
    assert {one.name for one in done if one.error is not None} == broken.keys()
    behind = {"_schema_history", "shop.dbo.orders current", "shop.dbo.people changes", "shop.dbo.people current"}
    assert {one.name for one in done if one.error is None} >= behind
    for name in broken:
        assert f"{name}: " in str(raised.value)
        assert next(one.text for one in done if one.name == name).startswith(f"{name}: failed: ")


@pytest.mark.parametrize(("warehouse", "warnings"), [("s3://lake/w", 1), ("/lake", 0)])
def test_maintenance_says_once_that_capture_has_to_stop_where_spark_does_not_put_commits_if_absent(
    spark: SparkSession, tmp_path: Path, warehouse: str, warnings: int, monkeypatch: pytest.MonkeyPatch
):
    # No commit of Spark's is made in an object store here, so the test names one in the place of the folder.
    monkeypatch.setattr(run_maintain, "storage_warning", lambda _: storage_warning(warehouse))
    said: list[str] = []
    list(maintain(replace(model_database(ModelSource(), spark, tmp_path), log=said.append), retain_hours=RETAIN_HOURS))
    assert len([line for line in said if "stop capture before `mssql-cdc maintain`" in line]) == warnings


def test_a_retention_that_delta_refuses_is_named_before_anything_is_compacted(spark: SparkSession, tmp_path: Path):
    """Each table failed behind its OPTIMIZE, with each engine's own words."""
    source = ModelSource("orders", "people")
    database = model_database(source, spark, tmp_path)
    write_some(source)
    settled(database, source)
    folders = {"_offsets": database.layout.own("offsets"), "changes": f"{database.layout.root}/dbo/orders/changes"}
    before = {name: DeltaTable(uri).version() for name, uri in folders.items()}
    with pytest.raises(ConfigurationError, match=r"24 hours, by default 168.*delta\.deletedFileRetentionDuration"):
        list(maintain(database, retain_hours=24))
    assert {name: DeltaTable(uri).version() for name, uri in folders.items()} == before
    for uri in folders.values():
        DeltaTable(uri).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 24 hours"})
    tidy(folders["_offsets"], retain_hours=24)
    vacuum(spark, folders["changes"], retain_hours=24)


def test_own_tables_keep_no_file_that_no_version_of_the_last_days_needs(tmp_path: Path):
    """Files that were compacted stayed for ever: a checkpoint drops their removal, by which VACUUM finds them."""
    layout, offsets = Layout(str(tmp_path), "server1", "shop"), Offsets()
    table = offsets_table(layout)
    for number in range(60):
        entry = Entry("streaming", to=f"{number:03}")
        offsets = append_offsets(layout, OffsetRow("range", datetime.now(UTC), {"shop.dbo.a": entry}), seen=offsets)
        if number == 39:
            table.compact()
            DeltaTable(table.uri).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
            DeltaTable(table.uri).create_checkpoint()
            DeltaTable(table.uri).alter.set_table_properties(
                {"delta.deletedFileRetentionDuration": "interval 168 hours"}
            )
    removed_long_ago = set(Path(table.uri).glob("*.parquet")) - active(table.uri)
    assert len(removed_long_ago) == 40
    table.compact()
    removed_just_now = set(Path(table.uri).glob("*.parquet")) - active(table.uri) - removed_long_ago
    assert removed_just_now, "a reader may still need them"
    of_a_dead_run, of_a_run_that_goes_on = (Path(table.uri) / name for name in ("dead.parquet", "alive.parquet"))
    of_a_dead_run.write_bytes(b"")
    for file in Path(table.uri).glob("*.parquet"):
        os.utime(file, (0, 0))
    of_a_run_that_goes_on.write_bytes(b"")
    tidy(table.uri, retain_hours=RETAIN_HOURS)
    left = set(Path(table.uri).glob("*.parquet"))
    assert left == active(table.uri) | removed_just_now | {of_a_run_that_goes_on}
    assert [row.number for row in load_offsets(layout).history.rows] == list(range(1, 61))


def active(uri: str) -> set[Path]:
    return {Path(uri) / Path(file).name for file in DeltaTable(uri).file_uris()}


def test_maintenance_leaves_own_tables_in_groups_of_few_rows(tmp_path: Path):
    """A read of a few rows decodes their groups, which were those of the whole table."""
    table = SmallTable(str(tmp_path / "t"), "one", SMALL_TABLES["notifications"])
    state = table.state()
    for number in range(3):
        rows = [{"id": f"{number}-{place}"} for place in range(400)]
        state = table.append(state, rows, {})
    tidy(table.uri, retain_hours=RETAIN_HOURS)
    (file,) = DeltaTable(table.uri).file_uris()
    groups = ParquetFile(file).metadata
    assert groups.num_rows == 1200
    assert max(groups.row_group(place).num_rows for place in range(groups.num_row_groups)) <= 256
