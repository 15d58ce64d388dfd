"""Every reader sees the same rows: of current tables with deletion vectors and without, and of logs (docs/lake.md)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import query, read_table
from mssql_cdc.lake.table_log import load_log
from mssql_cdc_tests.examples import examples
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders
from mssql_cdc_tests.unit.lake.test_current_tables import Model, mutate

SCHEMA = orders()
Rows = list[tuple[int, str]]


def filled(home: TableHome, vectors: Vectors, *, checkpointed: bool = False) -> Rows:
    """A table of several files, some with a deletion vector; its rows."""
    state, model = change_log(home, SCHEMA), dict[int, str]()
    steps = [(range(4000), "a"), (range(4000, 5000), "b"), (range(0, 4000, 8), "c"), (range(4000, 4003), "d")]
    for at, (keys, name) in enumerate(steps, start=1):
        found: list[Change] = []
        for number, key in enumerate(keys, start=1):
            row = {"id": key, "name": name, "note": None}
            found.append(Change(at, "u" if key in model else "c", row, row, sequence=number))
            model[key] = name
        state = append(state, SCHEMA, *found)
        apply_without_spark(home, state.batch, vectors)
    for key in (1, 4999):
        del model[key]
    state = append(state, SCHEMA, *(Change(9, "d", {"id": key}, sequence=key) for key in (1, 4999)))
    apply_without_spark(home, state.batch, vectors)
    if checkpointed:
        checkpoint(home.current)
    return sorted(model.items())


def apply_without_spark(home: TableHome, up_to: int, vectors: Vectors) -> None:
    (result,) = CurrentTables(lambda: pytest.fail("Spark was started")).apply_all(
        [CurrentRequest(home, [SCHEMA], up_to, vectors)]
    )
    assert isinstance(result, CurrentResult)
    assert result.because is None


def by_query(home: TableHome) -> Any:
    return pa.Table.from_batches(list(query(home.current, "SELECT id, name FROM t")))


def by_scan(home: TableHome) -> Any:
    return pa.table(DeltaTable(home.current).scan(columns=["id", "name"]))


def by_polars(home: TableHome) -> Any:
    return pl.scan_delta(home.current).select("id", "name").collect().to_arrow()


def by_duckdb(home: TableHome) -> Any:
    extension = next(Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension"))
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{extension}'")
        return connection.sql(f"SELECT id, name FROM delta_scan('{home.current}')").arrow().read_all()


def by_reading_with_polars(home: TableHome) -> Any:
    return pl.read_delta(home.current).select("id", "name").to_arrow()


def by_pyarrow(home: TableHome) -> Any:
    return DeltaTable(home.current).to_pyarrow_dataset().to_table(["id", "name"])


def told(table: Any) -> Rows:
    return sorted(zip(table.column("id").to_pylist(), table.column("name").to_pylist(), strict=True))


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("reader", [by_query, by_scan, by_polars, by_reading_with_polars, by_duckdb])
def test_readers_that_know_vectors_see_the_rows(tmp_path: Path, reader: Any, *, checkpointed: bool):
    home = home_in(tmp_path)
    expected = filled(home, "true", checkpointed=checkpointed)
    log = load_log(home.current)
    assert log is not None
    # Spark's VACUUM fails on vectors in the commit itself.
    assert [file.vector.kind for file in log.files.values() if file.vector] == ["u", "u"]
    assert told(reader(home)) == expected


@pytest.mark.parametrize("reader", [by_query, by_scan, by_polars, by_reading_with_polars, by_duckdb, by_pyarrow])
def test_every_reader_sees_the_rows_of_a_table_without_vectors(tmp_path: Path, reader: Any):
    home = home_in(tmp_path)
    expected = filled(home, "auto")
    assert DeltaTable(home.current).protocol().min_reader_version == 1
    assert told(reader(home)) == expected
    assert DeltaTable(home.current).count() == len(expected)
    assert len(DeltaTable(home.current).to_pandas()) == len(expected)


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 2**32), modes=st.lists(st.sampled_from(["auto", "true"]), min_size=1, max_size=5))
def test_every_reader_sees_the_rows_of_any_history(
    tmp_path_factory: pytest.TempPathFactory, seed: int, modes: list[Vectors]
):
    """The updates have vectors as soon as one of the modes has."""
    random_, model = random.Random(seed), Model()
    home = home_in(tmp_path_factory.mktemp("lake"))
    state = change_log(home, SCHEMA)
    for at, vectors in enumerate(modes, start=1):
        state = append(state, SCHEMA, *mutate(random_, model, at, random_.randint(1, 40)))
        apply_without_spark(home, state.batch, vectors)
    expected = sorted((key, name) for key, (name, _) in model.items())
    for reader in (by_query, by_scan, by_polars, by_duckdb, *([] if "true" in modes else [by_pyarrow])):
        assert told(reader(home)) == expected, reader.__name__


def by_pandas_of_a_log(uri: str) -> Any:
    found = DeltaTable(uri).to_pandas(filters=[("op", "in", ["c", "u", "d"])])
    return pa.RecordBatch.from_pylist(found.to_dict("records"))


def by_duckdb_over_pyarrow(uri: str) -> Any:
    changes = DeltaTable(uri).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("changes", changes)
        return connection.sql("SELECT _pos, op, _key, after FROM changes WHERE op <> 'r'").arrow().read_all()


@pytest.mark.parametrize(
    "reader",
    [
        lambda uri: pa.Table.from_batches(list(query(uri, "SELECT _pos, op, _key, after FROM t"))),
        lambda uri: pa.table(DeltaTable(uri).scan(columns=["_pos", "op", "_key", "after"])),
        lambda uri: pl.scan_delta(uri).select("_pos", "op", "_key", "after").collect().to_arrow(),
        lambda uri: pl.read_delta(uri).select("_pos", "op", "_key", "after").to_arrow(),
        by_pandas_of_a_log,
        by_duckdb_over_pyarrow,
    ],
    ids=["query", "scan", "polars scan", "polars read", "pandas", "duckdb over pyarrow"],
)
def test_every_reader_sees_the_rows_of_a_change_log(tmp_path: Path, reader: Any):
    home = home_in(tmp_path)
    filled(home, "auto")
    names = ["_pos", "op", "_key", "after"]
    rows = reader(home.changes).select(names).to_pylist()
    known = read_table(home.changes, columns=names).to_pylist()
    assert len(known) == 4000 + 1000 + 500 + 3 + 2
    assert sorted(rows, key=itemgetter("_pos")) == sorted(known, key=itemgetter("_pos"))
    assert DeltaTable(home.changes).count() == len(known)


def test_readers_that_do_not_know_vectors_refuse(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "true")
    with pytest.raises(DeltaProtocolError):
        by_pyarrow(home)


def test_deltalakes_count_is_still_wrong_on_vectors(tmp_path: Path):
    """The day this fails, `docs/lake.md` may take its warning back."""
    home = home_in(tmp_path)
    expected = filled(home, "true")
    assert DeltaTable(home.current).count() > len(expected)


def test_a_table_that_must_have_no_vectors_gets_none_whatever_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mssql_cdc.lake.apply_task.SMALL_ROWS", 0)
    filled(home_in(tmp_path / "auto"), "auto")
    home = home_in(tmp_path / "false")
    expected = filled(home, "false")
    tables = [load_log(one.current) for one in (home_in(tmp_path / "auto"), home)]
    assert [any(file.vector for file in log.files.values()) for log in tables if log is not None] == [True, False]
    assert told(by_pyarrow(home)) == expected


def test_every_version_stays_readable(tmp_path: Path):
    home = home_in(tmp_path)
    expected = filled(home, "true")
    newest = DeltaTable(home.current).version()
    counts = [len(pl.scan_delta(home.current, version=number).collect()) for number in range(newest + 1)]
    assert counts[0] == 4000
    assert counts[-1] == len(expected)
    assert all(count in (4000, 5000, len(expected)) for count in counts)


def test_the_history_names_the_writer_and_its_facts(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "auto")
    entries = DeltaTable(home.current).history()
    assert [entry["operation"] for entry in entries] == [*itertools.repeat("MERGE", 4), "CREATE TABLE AS SELECT"]
    assert all(entry["engineInfo"].startswith("mssql_cdc/") and "userMetadata" in entry for entry in entries)


def test_a_table_tells_its_name_and_what_it_is(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "auto")
    metadata = DeltaTable(home.current).metadata()
    assert metadata.name == "dbo.orders"
    assert "shop.dbo.orders" in (metadata.description or "")


def test_a_column_tells_its_type_at_the_source(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "auto")
    comments = {field.name: field.metadata.get("comment") for field in DeltaTable(home.current).schema().fields}
    assert comments["id"] == "SQL Server int"
    assert comments["name"] == "SQL Server nvarchar(50)"
    assert all(comments.values())


def test_the_sources_descriptions_are_those_of_the_table_and_its_columns(tmp_path: Path):
    home, plain = home_in(tmp_path), orders()
    columns = [replace(one, description="What's said, ünï" if one.name == "note" else None) for one in plain.columns]
    schema = replace(plain, columns=tuple(columns), description="What customers ordered.")
    state = append(change_log(home, schema), schema, Change(1, "c", after={"id": 1}))
    CurrentTables(lambda: pytest.fail("Spark was started")).apply_all([CurrentRequest(home, [schema], state.batch)])
    metadata = DeltaTable(home.current).metadata()
    assert (metadata.description or "").startswith("What customers ordered. The current rows of")
    comments = {field.name: field.metadata.get("comment") for field in DeltaTable(home.current).schema().fields}
    assert comments["note"] == "What's said, ünï (SQL Server nvarchar(max))"
    assert comments["id"] == "SQL Server int"


def test_files_have_statistics_of_the_sources_columns_and_of_ours(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "auto")
    actions = pa.table(DeltaTable(home.current).get_add_actions(flatten=True))
    for name in ("id", "name", "note", "_key", "_pos", "_batch"):
        assert actions.column(f"null_count.{name}").null_count == 0
    assert min(actions.column("min.id").to_pylist()) == 0
    assert max(actions.column("max.id").to_pylist()) == 4998


def test_files_have_statistics_of_the_first_32_columns_of_the_source(tmp_path: Path):
    """Statistics of all columns of a wide table would make its log larger than its rows."""
    home = home_in(tmp_path)
    schema = orders(column("id", "int"), *(column(f"c{number}", "int") for number in range(40)))
    values = {"id": 1, **{f"c{number}": number for number in range(40)}}
    state = append(change_log(home, schema), schema, Change(1, "c", after=values))
    CurrentTables(lambda: pytest.fail("Spark was started")).apply_all([CurrentRequest(home, [schema], state.batch)])
    names = pa.table(DeltaTable(home.current).get_add_actions(flatten=True)).schema.names
    wanted = ["id", *(f"c{number}" for number in range(31)), "_key", "_pos", "_batch"]
    assert [name.removeprefix("min.") for name in names if name.startswith("min.")] == wanted


def test_a_table_keeps_the_log_of_a_week(tmp_path: Path):
    home = home_in(tmp_path)
    filled(home, "auto")
    assert DeltaTable(home.current).metadata().configuration["delta.logRetentionDuration"] == "interval 7 days"
