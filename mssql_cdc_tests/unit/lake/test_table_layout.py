"""Partitioned and clustered current tables: the same rows, laid out as `delta.current.<table>.…` asks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.errors import MssqlCdcError, OvertakenError, SchemaError
from mssql_cdc.lake import current, shares
from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables, Handed
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.partitions import by_partition
from mssql_cdc.lake.pinned import pin_current
from mssql_cdc.lake.read import query
from mssql_cdc.lake.table_layout import unwritable_layout
from mssql_cdc.schema import TableSchema
from mssql_cdc_tests.lake_kit import NAMES, Change, append, change_log, column, excluding, home_in, orders
from mssql_cdc_tests.unit.lake.test_current_readers import by_duckdb, by_polars, by_pyarrow, by_query, by_scan
from mssql_cdc_tests.unit.lake.test_current_tables import _commit, newest, no_spark
from mssql_cdc_tests.unit.lake.test_shares import FORCED

SCHEMA = orders(
    column("id", "int"),
    column("region", "nvarchar", length=50),
    column("day", "date"),
    column("vip", "bit"),
    column("size", "smallint"),
    column("amount", "decimal", precision=20, scale=2),
    column("at", "datetime2", scale=3),
)
PLAIN = DataLayout()
BY_REGION = DataLayout(partition_by=("region",))
LAYOUTS = (PLAIN, BY_REGION, DataLayout(partition_by=("day", "VIP", "size")), DataLayout(cluster_by=("size", "region")))
REGIONS = (None, "", "ünï", "a/b=c%20 d", "a, b@c", "x" * 40)
Rows = dict[int, tuple[Any, ...]]


def apply(
    home: TableHome, up_to: int, layout: DataLayout, vectors: Vectors = "auto", schema: TableSchema = SCHEMA
) -> CurrentResult:
    request = CurrentRequest(home, [schema], up_to, vectors, layout)
    (result,) = CurrentTables(no_spark).apply_all([request])
    if isinstance(result, MssqlCdcError):
        raise result
    return result


def image(key: int, random_: random.Random) -> dict[str, Any]:
    return {
        "id": key,
        "region": random_.choice(REGIONS),
        "day": random_.choice([None, date(1, 1, 1), date(2026, 2, 28)]),
        "vip": random_.choice([None, True, False]),
        "size": random_.choice([None, -3, 7]),
    }


def rows(home: TableHome) -> Rows:
    found: Rows = {}
    for batch in query(home.current, "SELECT id, region, day, vip, size, _exact, _unavailable FROM t"):
        for row in batch.to_pylist():
            assert row["id"] not in found, "a key twice"
            assert row["_unavailable"] is None
            region = dict(row["_exact"] or ()).get("region", row["region"])
            found[row["id"]] = (region, row["day"], row["vip"], row["size"])
    return found


def mutate(random_: random.Random, model: Rows, at: int) -> list[Change]:
    """Changes that turn the model into another one; a row may move to another partition, whose value may be unknown."""
    found: list[Change] = []
    for sequence in range(1, random_.randint(2, 25)):
        row = image(random_.randrange(30), random_)
        key = row["id"]
        if key in model and random_.random() < 0.25:
            del model[key]
            found.append(Change(at, "d", row, sequence=sequence))
            continue
        op, unavailable = "u" if key in model else "c", None
        values = (row["region"], row["day"], row["vip"], row["size"])
        if key in model and random_.random() < 0.3:
            values = (model[key][0], *values[1:])
            row, unavailable = {**row, "region": None}, ["region"]
        model[key] = values
        found.append(Change(at, op, row, row, unavailable=unavailable, sequence=sequence))
    return found


@pytest.mark.long
@FORCED
@given(
    seed=st.integers(0, 2**32),
    layouts=st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=3),
    vectors=st.sampled_from(["auto", "true", "false"]),
    shared=st.booleans(),
)
def test_any_history_in_any_layouts_is_the_model(
    tmp_path_factory: pytest.TempPathFactory, seed: int, layouts: list[DataLayout], vectors: Vectors, *, shared: bool
):
    random_, model = random.Random(seed), Rows()
    home = home_in(tmp_path_factory.mktemp("lake"))
    state, at = change_log(home, SCHEMA), 0
    with pytest.MonkeyPatch.context() as patch:
        if shared:
            patch.setattr(shares, "MOST_ROWS", 4)
            patch.setattr(shares, "LOOK_UP_SECONDS", 1e-9)
            patch.setattr(shares, "LARGE_ROWS", 6)
        for layout in layouts:
            for _ in range(3):
                at += 1
                state = append(state, SCHEMA, *mutate(random_, model, at))
                apply(home, state.batch, layout, vectors)
                assert rows(home) == model
                log = newest(home)
                assert [name.lower() for name in layout.partition_by] == list(log.partition_by)
                assert [(name,) for name in layout.cluster_by] == list(log.cluster_by)
            if random_.random() < 0.5:
                checkpoint(home.current)


@pytest.mark.parametrize("reader", [by_query, by_scan, by_polars, by_duckdb, by_pyarrow])
@pytest.mark.parametrize("vectors", ["auto", "true"])
def test_every_reader_sees_the_values_of_partitions(tmp_path: Path, reader: Callable[..., Any], vectors: Vectors):
    if vectors == "true" and reader is by_pyarrow:
        return  # It does not know deletion vectors, partitioned or not.
    schema = orders(column("id", "int"), column("name", "nvarchar", length=200))
    home, by_name = home_in(tmp_path), DataLayout(partition_by=("name",))
    names = [None, *(name for name in NAMES.values() if len(name) < 128), "x" * 128]
    new = [Change(1, "c", after={"id": n, "name": name}, sequence=n + 1) for n, name in enumerate(names)]
    state = append(change_log(home, schema), schema, *new)
    apply(home, state.batch, by_name, vectors, schema)
    moved = {"id": 0, "name": names[1]}
    state = append(state, schema, Change(2, "u", moved, moved))
    apply(home, state.batch, by_name, vectors, schema)
    table = reader(home)
    found = dict(zip(table.column("id").to_pylist(), table.column("name").to_pylist(), strict=True))
    assert found == {0: names[1], **dict(enumerate(names[1:], start=1))}


def test_partitions_of_other_types_are_what_readers_expect(tmp_path: Path):
    home = home_in(tmp_path)
    full = {"id": 1, "region": "a", "day": date(2026, 2, 3), "vip": True, "size": -3}
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after=full))
    apply(home, state.batch, DataLayout(partition_by=("day", "vip", "size")))
    (file,) = newest(home).files.values()
    assert file.action["partitionValues"] == {"day": "2026-02-03", "vip": "true", "size": "-3"}
    assert "day" not in file.facts["minValues"]
    assert "day" not in pq.read_schema(Path(home.current, file.name)).names
    assert pl.scan_delta(home.current).select("id", "region", "day", "vip", "size").collect().to_dicts() == [full]


def test_an_empty_text_is_no_partition_of_its_own_and_stays_exact(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": ""}))
    apply(home, state.batch, BY_REGION)
    (row,) = (row for batch in query(home.current, "SELECT region, _exact FROM t") for row in batch.to_pylist())
    assert (row["region"], dict(row["_exact"])) == (None, {"region": ""})


def test_a_value_that_no_folder_can_be_named_after_is_an_error(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "日" * 100}))
    with pytest.raises(SchemaError, match="at most 255"):
        apply(home, state.batch, BY_REGION)


def test_small_files_are_absorbed_within_their_partition(tmp_path: Path):
    home, state = home_in(tmp_path), change_log(home_in(tmp_path), SCHEMA)
    for at in range(1, 20):
        row = {"id": at, "region": "ab"[at % 2]}
        state = append(state, SCHEMA, Change(at, "c", after=row))
        apply(home, state.batch, BY_REGION)
    assert len(newest(home).files) <= 8
    assert {file.action["partitionValues"]["region"] for file in newest(home).files.values()} == {"a", "b"}


def test_a_changed_layout_rewrites_the_table_with_its_next_update(tmp_path: Path):
    home = home_in(tmp_path)
    new = [Change(1, "c", after={"id": n, "region": "ab"[n % 2]}, sequence=n + 1) for n in range(6)]
    state = append(change_log(home, SCHEMA), SCHEMA, *new)
    apply(home, state.batch, PLAIN)
    assert apply(home, state.batch, BY_REGION).rows == 0
    assert newest(home).partition_by == ()
    state = append(state, SCHEMA, Change(2, "d", {"id": 5}))
    before = newest(home)
    apply(home, state.batch, BY_REGION)
    log = newest(home)
    assert log.version == before.version + 1
    assert not before.files.keys() & log.files.keys()
    assert sorted((f.action["partitionValues"]["region"], f.rows) for f in log.files.values()) == [("a", 3), ("b", 2)]
    assert "region" not in log.properties["delta.dataSkippingStatsColumns"]
    state = append(state, SCHEMA, Change(3, "c", after={"id": 9}))
    apply(home, state.batch, PLAIN)
    assert newest(home).partition_by == ()
    assert "`region`" in newest(home).properties["delta.dataSkippingStatsColumns"]
    assert len(rows(home)) == 6


def test_a_layout_that_rewrites_a_large_table_is_left_to_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "a"}))
    apply(home, state.batch, PLAIN)
    state = append(state, SCHEMA, Change(2, "c", after={"id": 2, "region": "b"}))
    request, writer = CurrentRequest(home, [SCHEMA], state.batch, "auto", BY_REGION), CurrentTables(no_spark)
    before = newest(home).version
    with monkeypatch.context() as small:
        small.setattr(current, "_LITTLE", 0)
        (handed,) = writer.apply_quick([request])
    assert isinstance(handed, Handed)
    assert (handed.because, handed.merges, newest(home).version) == ("its layout changes", False, before)
    assert writer.finish(handed) == CurrentResult(before + 1, state.batch, 1)
    assert newest(home).partition_by == ("region",)
    assert len(rows(home)) == 2


def test_a_layout_that_another_writer_disturbs_is_tried_again(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "a"}))
    apply(home, state.batch, PLAIN)
    state = append(state, SCHEMA, Change(2, "c", after={"id": 2, "region": "b"}))
    writer = CurrentTables(no_spark)
    plan = writer._plan(CurrentRequest(home, [SCHEMA], state.batch, "auto", BY_REGION))
    assert not isinstance(plan, CurrentResult | Handed)
    (file,) = newest(home).files.values()
    add = file.add()
    add["add"]["path"] = "copied.parquet"
    Path(home.current, "copied.parquet").write_bytes(Path(home.current, file.name).read_bytes())
    _commit(home, [add])
    (outcome,) = writer._apply({0: plan}).values()
    assert isinstance(outcome, OvertakenError)


def test_a_clustered_table_says_so_and_can_be_declared_again_without_rewriting(tmp_path: Path):
    home = home_in(tmp_path)
    new = [Change(1, "c", after={"id": n, "region": "a"}, sequence=n + 1) for n in range(50)]
    state = append(change_log(home, SCHEMA), SCHEMA, *new)
    apply(home, state.batch, DataLayout(cluster_by=("Size",)))
    log = newest(home)
    assert (log.cluster_by, log.partition_by, log.writable()) == ((("size",),), (), None)
    assert set(log.protocol["writerFeatures"]) == {
        "appendOnly",
        "clustering",
        "domainMetadata",
        "invariants",
        "timestampNtz",
    }
    assert log.protocol["minReaderVersion"] == 3  # The timestamp's; clustering asks nothing of readers.
    assert "clustering" not in log.protocol["readerFeatures"]
    for number, layout in enumerate((DataLayout(cluster_by=("region", "id")), PLAIN), start=2):
        state = append(state, SCHEMA, Change(number, "c", after={"id": 100 * number}))
        apply(home, state.batch, layout, "true")
        assert log.files.keys() <= newest(home).files.keys()
        assert newest(home).cluster_by == tuple((name,) for name in layout.cluster_by)


def test_a_table_without_newer_types_that_is_clustered_is_open_to_every_reader(tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after={"id": 1, "name": "a"}))
    apply(home, state.batch, DataLayout(cluster_by=("name",)), schema=schema)
    assert DeltaTable(home.current).protocol().min_reader_version == 1
    assert DeltaTable(home.current).to_pandas()["name"].tolist() == ["a"]


def test_columns_to_cluster_by_always_have_statistics(tmp_path: Path):
    columns = [column("id", "int"), *(column(f"c{number}", "int") for number in range(40))]
    home, schema = home_in(tmp_path), orders(*columns)
    state = append(change_log(home, schema), schema, Change(1, "c", after={"id": 1, "c39": 7}))
    apply(home, state.batch, DataLayout(cluster_by=("c39",)), schema=schema)
    (file,) = newest(home).files.values()
    assert file.facts["minValues"]["c39"] == 7
    # A column without statistics so far: its files are written anew.
    state = append(state, schema, Change(2, "c", after={"id": 2, "c38": 8}))
    apply(home, state.batch, DataLayout(cluster_by=("c38",)), "true", schema)
    assert all("c38" in file.facts["nullCount"] for file in newest(home).files.values())


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (DataLayout(partition_by=("regio",)), "'regio', which is no captured column; there are id, region"),
        (DataLayout(partition_by=("_key",)), "no captured column"),
        (DataLayout(partition_by=("at",)), "expected whole numbers, bit, date or text"),
        (DataLayout(partition_by=("amount",)), "cluster.by takes other types"),
        (DataLayout(cluster_by=("amount",)), "no statistics"),
        (DataLayout(("region",), ("size",)), "partitioned and clustered"),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_layout_that_is_impossible_is_an_error_of_its_table(
    tmp_path: Path, layout: DataLayout, said: str, *, exists: bool
):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    if exists:
        apply(home, state.batch, PLAIN)
        state = append(state, SCHEMA, Change(2, "c", after={"id": 2}))
    with pytest.raises(SchemaError, match=said):
        apply(home, state.batch, layout)


def test_a_table_that_only_spark_writes_refuses_another_layout(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    apply(home, state.batch, PLAIN)
    log = newest(home)
    changed = {**log.metadata, "configuration": {**log.properties, "delta.enableChangeDataFeed": "true"}}
    _commit(home, [{"metaData": changed}])
    state = append(state, SCHEMA, Change(2, "c", after={"id": 2}))
    with pytest.raises(SchemaError, match="change data feed"):
        apply(home, state.batch, BY_REGION)


def test_a_column_that_the_source_no_longer_has_still_partitions_the_table(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "a"}))
    apply(home, state.batch, BY_REGION)
    versions = [SCHEMA, excluding(replace(SCHEMA, version=2), {"region"})]
    state = append(state, versions[1], Change(2, "c", after={"id": 2}))
    (result,) = CurrentTables(no_spark).apply_all([CurrentRequest(home, versions, state.batch, "auto", BY_REGION)])
    assert isinstance(result, CurrentResult)
    assert {key: values[0] for key, values in rows(home).items()} == {1: "a", 2: None}


def test_a_layout_by_a_users_spark_stays_and_is_merged_by_spark_only_where_it_must_be(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    apply(home, state.batch, PLAIN)
    told = {"domain": "delta.clustering", "removed": False}
    for name, because in (("size", None), ("amount", "clustered by amount, which has no statistics")):
        _commit(home, [{"domainMetadata": {**told, "configuration": json.dumps({"clusteringColumns": [[name]]})}}])
        assert unwritable_layout(newest(home)) == (f"the table is {because}" if because else None)
        state = append(state, SCHEMA, Change(state.batch + 1, "c", after={"id": state.batch + 1}))
        (found,) = CurrentTables(no_spark).apply_quick([CurrentRequest(home, [SCHEMA], state.batch)])
        assert isinstance(found, Handed if because else CurrentResult)
        assert newest(home).cluster_by == ((name,),)
    metadata = newest(home).metadata
    _commit(home, [{"metaData": {**metadata, "partitionColumns": ["at"]}}])
    assert "partitioned by at, which is timestamp" in (unwritable_layout(newest(home)) or "")


def test_rows_are_divided_by_all_columns_of_a_partition():
    table = pa.record_batch({"a": ["x", None, "x", "y"], "b": [1, 1, 1, None], "c": [1, 2, 3, 4]})
    found = {values: rows.to_pydict() for values, rows in by_partition(table, ["a", "b"]).items()}
    assert found == {("x", "1"): {"c": [1, 3]}, (None, "1"): {"c": [2]}, ("y", None): {"c": [4]}}
    assert by_partition(table.slice(0, 0), ["a"]) == by_partition(table.slice(0, 0), []) == {}


@pytest.mark.parametrize("layout", [PLAIN, BY_REGION, DataLayout(partition_by=("region", "day"))])
def test_the_check_reads_every_text_as_the_source_has_it(tmp_path: Path, layout: DataLayout):
    home = home_in(tmp_path)
    new = [Change(1, "c", after={"id": n, "region": text}, sequence=n + 1) for n, text in enumerate(REGIONS)]
    exact = {"after": {"region": "utf16:d800", "at": "2026-01-01 00:00:00.0000001"}}
    new.append(Change(1, "c", after={"id": 9, "region": "?"}, sequence=10, exact=exact))
    state = append(change_log(home, SCHEMA), SCHEMA, *new)
    apply(home, state.batch, layout)
    pinned = pin_current(home, SCHEMA, spark=no_spark)
    assert pinned is not None
    found = {row["id"]: row for batch in pinned.read() for row in batch.to_pylist()}
    assert {number: row["region"] for number, row in found.items()} == {**dict(enumerate(REGIONS)), 9: "?"}
    assert {number: dict(row["_exact"]) for number, row in found.items() if row["_exact"]} == {9: exact["after"]}


def regional(home: TableHome, rounds: int = 1) -> int:
    """A table with a row in each region for each round; the last `_batch`."""
    state = change_log(home, SCHEMA)
    for number in range(rounds):
        keys = range(100 * number, 100 * number + len(REGIONS))
        new = [Change(1 + number, "c", after={"id": key, "region": region}, sequence=key + 1)
               for key, region in zip(keys, REGIONS, strict=True)]  # fmt: skip
        state = append(state, SCHEMA, *new)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mssql_cdc.lake.apply_task._ABSORB", 0)
            apply(home, state.batch, BY_REGION)
    return state.batch


def test_files_that_deltalake_removes_are_gone_whatever_their_partition_s_name(tmp_path: Path):
    home = home_in(tmp_path)
    regional(home)
    DeltaTable(home.current).delete("id >= 0")
    assert newest(home).files == {}


def test_deltalake_compacts_files_whatever_their_partition_s_name(tmp_path: Path):
    home = home_in(tmp_path)
    regional(home, 2)
    before = rows(home)
    assert len(newest(home).files) == 2 * (len(REGIONS) - 1), "NULL and the empty text share a partition"
    DeltaTable(home.current).optimize.compact()
    assert rows(home) == before
    assert newest(home).rows == len(before)
    assert len(newest(home).files) == len(REGIONS) - 1


def test_a_path_that_another_writer_encodes_in_another_way_is_the_same_file(tmp_path: Path):
    """Earlier versions wrote `%2C` and `%40`, which deltalake's removes write as `,` and `@`."""
    home = home_in(tmp_path)
    regional(home)
    files = list(newest(home).files.values())
    odd = next(file for file in files if "@" in file.name)
    path = odd.path.replace(",", "%2C").replace("@", "%40")
    encoded = {"add": {**odd.add()["add"], "path": path}}
    _commit(home, [{"remove": {"path": odd.path, "dataChange": True}}])
    _commit(home, [encoded])
    assert len(newest(home).files) == len(files)
    _commit(home, [{"remove": {"path": odd.path, "dataChange": True}}])
    assert len(newest(home).files) == len(files) - 1
