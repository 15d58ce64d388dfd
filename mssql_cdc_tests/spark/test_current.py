"""Current tables: the folded change log on real Delta tables, read by real Spark (correctness B12-B15, D)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import FencedError, OvertakenError, SchemaError
from mssql_cdc.lake import apply_task, current, current_structure, shares
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.examples import examples
from mssql_cdc_tests.lake_kit import Change, append, applied_batch, change_log, column, excluding, home_in, lsn, orders
from mssql_cdc_tests.spark.conftest import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
UNKNOWN = object()


def row(number: int, name: str | None = "a", note: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


def test_current_inserts_updates_and_deletes_over_several_batches(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    state = append(state, schema, *(Change(1, "c", after=row(n), sequence=n) for n in (1, 2, 3)))
    first = current.apply(spark, home, [schema], up_to=state.batch, run_id="r1")
    state = append(
        state,
        schema,
        Change(2, "u", row(1), row(1, "b")),
        Change(3, "d", row(2)),
        Change(4, "c", after=row(4, None, None)),
    )
    second = current.apply(spark, home, [schema], up_to=state.batch, run_id="r2")
    found = rows_of(spark, home.current)
    assert {key: (r["name"], r["note"], r["_unavailable"]) for key, r in found.items()} == {
        "1:1": ("b", "n", None),
        "1:3": ("a", "n", None),
        "1:4": (None, None, None),
    }
    assert (first.batch, second.batch, second.rows) == (1, 2, 3)
    assert applied_batch(home, schema) == 2


def test_current_protocol_requires_only_the_reader_features_in_use(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    current.apply(spark, home, [schema], up_to=state.batch)
    assert DeltaTable(home.current).protocol().min_reader_version == 1
    timed = orders(*schema.columns, column("at", "datetime"))
    wanted: list[tuple[Vectors, set[str]]] = [("auto", {"timestampNtz"}), ("true", {"deletionVectors", "timestampNtz"})]
    for vectors, expected in wanted:
        other = home_in(tmp_path / vectors)
        state = append(change_log(other, timed), timed, Change(1, "c", after=row(1)))
        current.apply(spark, other, [timed], up_to=state.batch, vectors=vectors)
        assert set(DeltaTable(other.current).protocol().reader_features or ()) == expected


def test_current_applying_again_makes_no_commit(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    done = current.apply(spark, home, [schema], up_to=state.batch)
    again = current.apply(spark, home, [schema], up_to=state.batch)
    assert again.delta_version == done.delta_version
    assert again.rows == 0


def test_current_stops_at_the_batch_of_the_cut(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    cut = state.batch
    append(state, schema, Change(2, "c", after=row(2)))
    current.apply(spark, home, [schema], up_to=cut)
    assert set(rows_of(spark, home.current)) == {"1:1"}


def test_current_key_change_moves_the_row(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    current.apply(spark, home, [schema], up_to=state.batch)
    state = append(state, schema, Change(2, "u", row(1), row(7, "moved")))
    current.apply(spark, home, [schema], up_to=state.batch)
    assert {k: r["name"] for k, r in rows_of(spark, home.current).items()} == {"1:7": "moved"}


def test_current_unknown_column_keeps_its_last_known_value(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(
        change_log(home, schema),
        schema,
        Change(1, "c", after=row(1, "a", "long"), exact={"after": {"note": "utf16:d800"}}),
        Change(1, "c", after=row(2, "a", "old"), sequence=2),
    )
    current.apply(spark, home, [schema], up_to=state.batch)
    state = append(
        state,
        schema,
        Change(2, "u", row(1), row(1, "b", None), unavailable=["note"]),
        Change(3, "d", row(2)),
        Change(4, "c", after=row(2, "again", None), unavailable=["note"]),
        Change(5, "u", row(3), row(3, "never seen", None), unavailable=["note"]),
    )
    current.apply(spark, home, [schema], up_to=state.batch)
    found = rows_of(spark, home.current)
    told = {k: (r["name"], r["note"], r["_exact"], r["_unavailable"]) for k, r in found.items()}
    assert told == {
        "1:1": ("b", "long", {"note": "utf16:d800"}, None),
        "1:2": ("again", None, None, ["note"]),
        "1:3": ("never seen", None, None, ["note"]),
    }


def test_current_late_snapshot_rows_do_not_revert_newer_ones(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(9, "c", after=row(1, "new")))
    current.apply(spark, home, [schema], up_to=state.batch)
    state = append(state, schema, Change(5, "r", after=row(1, "old")), Change(5, "r", after=row(2, "r"), sequence=2))
    current.apply(spark, home, [schema], up_to=state.batch)
    assert {k: r["name"] for k, r in rows_of(spark, home.current).items()} == {"1:1": "new", "1:2": "r"}


def test_current_columns_that_are_added_or_widened_have_comments(spark: SparkSession, tmp_path: Path):
    home, old = home_in(tmp_path), orders(column("id", "int"), column("n", "int"))
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1, "n": 1}))
    current.apply(spark, home, [old], up_to=state.batch)
    added = column("price", "int", description="Customer's price \\ net")
    new = orders(column("id", "int"), column("n", "bigint"), added, version=2)
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 2, "n": 2, "price": 3}), spark=lambda: spark)
    current.apply(spark, home, [old, new], up_to=state.batch)
    comments = {
        field.name: field.metadata.get("comment") for field in spark.read.format("delta").load(home.current).schema
    }
    assert comments["price"] == "Customer's price \\ net (SQL Server int)"
    assert comments["n"] == "SQL Server bigint"


def test_current_new_column_is_unknown_in_existing_rows(spark: SparkSession, tmp_path: Path):
    home, old = home_in(tmp_path), orders()
    price = column("price", "decimal", precision=9, scale=2)
    new = orders(*old.columns, price, column("at", "datetime"), version=2)
    state = append(change_log(home, old), old, *(Change(1, "c", after=row(n), sequence=n) for n in (1, 2, 3)))
    current.apply(spark, home, [old], up_to=state.batch)
    state = append(state, old, Change(2, "c", after=row(4)))
    state = evolve(state, change_log_schema(new))
    state = append(state, new, Change(3, "u", row(2), {**row(2), "price": 5}))
    current.apply(spark, home, [old, new], up_to=state.batch)
    found = rows_of(spark, home.current)
    told = {k: (None if r["price"] is None else float(str(r["price"])), r["_unavailable"]) for k, r in found.items()}
    assert told == {
        "1:1": (None, ["price", "at"]),
        "1:2": (5.0, None),
        "1:3": (None, ["price", "at"]),
        "1:4": (None, ["price", "at"]),
    }


@pytest.mark.parametrize("merged", ["in between", "at once"])
def test_current_column_that_was_gone_for_a_while_is_unknown(spark: SparkSession, tmp_path: Path, merged: str):
    """Review, bug 6: what happened to it meanwhile is in no change row; it stayed NULL, as if that were known."""
    home, first = home_in(tmp_path), orders()
    without = excluding(orders(*first.columns, version=2), {"note"})
    third = orders(*first.columns, version=3)
    rows = (Change(1, "c", after=row(n), sequence=n, exact={"after": {"note": "utf16:d800"}}) for n in (1, 2, 3))
    state = append(change_log(home, first), first, *rows)
    current.apply(spark, home, [first], up_to=state.batch)
    state = append(state, without, Change(2, "u", row(2), row(2, "b", "hidden")))
    if merged == "in between":
        current.apply(spark, home, [first, without], up_to=state.batch)
    state = append(state, third, Change(3, "u", row(3), row(3, "c", "known again")))
    for _ in range(2):
        current.apply(spark, home, [first, without, third], up_to=state.batch)
    found = rows_of(spark, home.current)
    told = {k: (r["name"], r["note"], r["_exact"], r["_unavailable"]) for k, r in found.items()}
    assert told == {
        "1:1": ("a", None, None, ["note"]),
        "1:2": ("b", None, None, ["note"]),
        "1:3": ("c", "known again", None, None),
    }


@pytest.mark.long
def test_current_rows_of_a_structure_that_this_run_does_not_know_yet_are_not_merged(
    spark: SparkSession, tmp_path: Path
):
    home, old = home_in(tmp_path), orders()
    new = orders(*old.columns, column("price", "int"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after=row(1)))
    current.apply(spark, home, [old], up_to=state.batch)
    spark.sql(f"ALTER TABLE {spark_identifier(home.current)} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    state = evolve(append(state, old, Change(2, "c", after=row(2))), change_log_schema(new))
    state = append(state, new, Change(3, "c", after={**row(3), "price": 7}))
    with pytest.raises(OvertakenError, match="structure 2"):
        current.apply(spark, home, [old], up_to=state.batch)
    current.apply(spark, home, [old, new], up_to=state.batch)
    assert {key: r["price"] for key, r in rows_of(spark, home.current).items()} == {"1:1": None, "1:2": None, "1:3": 7}


def test_current_widened_column_keeps_its_values(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    old = orders(column("id", "int"), column("n", "int"))
    new = orders(column("id", "int"), column("n", "bigint"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1, "n": 1}))
    current.apply(spark, home, [old], up_to=state.batch)
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 2, "n": 2**40}), spark=lambda: spark)
    assert (state.batch, state.to) == (2, lsn(2).text)
    current.apply(spark, home, [old, new], up_to=state.batch)
    assert {k: r["n"] for k, r in rows_of(spark, home.current).items()} == {"1:1": 1, "1:2": 2**40}
    protocol = DeltaTable(home.current).protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (1, None), "no type widening: few readers know it"


def test_current_widened_column_of_a_large_table_keeps_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(current_structure, "LARGE_ROWS", 1)
    home = home_in(tmp_path)
    old = orders(column("id", "int"), column("n", "int"))
    new = orders(column("id", "int"), column("n", "bigint"), version=2)
    state = append(change_log(home, old), old, *(Change(1, "c", after={"id": n, "n": n}, sequence=n) for n in (1, 2)))
    current.apply(spark, home, [old], up_to=state.batch)
    files = set(DeltaTable(home.current).file_uris())
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 3, "n": 2**40}), spark=lambda: spark)
    monkeypatch.setattr(apply_task, "LARGE_ROWS", 0)
    current.apply(spark, home, [old, new], up_to=state.batch)
    assert {k: r["n"] for k, r in rows_of(spark, home.current).items()} == {"1:1": 1, "1:2": 2, "1:3": 2**40}
    log = load_log(home.current)
    assert log is not None
    assert "typeWidening" in log.protocol["readerFeatures"]
    assert {f"{home.current}/{path}" for path, _ in log.files} > files


def test_current_new_column_with_an_odd_name_gets_a_mapping_of_its_own(spark: SparkSession, tmp_path: Path):
    home, old = home_in(tmp_path), orders(column("the id", "int"), column("n", "int"), keys=["the id"])
    new = orders(*old.columns, column("unit price", "int"), keys=["the id"], version=2)
    state = append(change_log(home, old, spark=lambda: spark), old, Change(1, "c", after={"the id": 1, "n": 1}))
    current.apply(spark, home, [old], up_to=state.batch)
    state = evolve(state, change_log_schema(new), lambda: spark)
    change = Change(2, "c", after={"the id": 2, "n": 2, "unit price": 3})
    state = append(state, new, change, spark=lambda: spark)
    before = DeltaTable(home.current).version()
    current.apply(spark, home, [old, new], up_to=state.batch)
    assert DeltaTable(home.current).version() == before + 1, "Spark would need several commits"
    log = load_log(home.current)
    assert log is not None
    assert log.properties["delta.columnMapping.maxColumnId"] == str(len(json.loads(log.schema_json)["fields"]))
    assert {k: r["unit price"] for k, r in rows_of(spark, home.current).items()} == {"1:1": None, "1:2": 3}


def test_current_odd_and_reserved_names_are_stored(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    names = ["the id", "_key", "a,b;c", "x.y=z", "it's", "größe"]
    schema = orders(*(column(name, "nvarchar", length=20) for name in names), keys=["the id"])
    state = append(
        change_log(home, schema, spark=lambda: spark), schema, Change(1, "c", after=dict.fromkeys(names, "v"))
    )
    current.apply(spark, home, [schema], up_to=state.batch)
    after = dict.fromkeys(names, "w") | {"the id": "v"}
    state = append(state, schema, Change(2, "u", dict.fromkeys(names, "v"), {**after, "it's": None}, ["it's"]))
    current.apply(spark, home, [schema], up_to=state.batch)
    (found,) = rows_of(spark, home.current).values()
    assert [found[n] for n in ("the id", "_key_", "a,b;c", "x.y=z", "it's", "größe")] == [*"vwwwvw"]


def test_current_new_key_definition_replaces_the_rows_in_one_commit(spark: SparkSession, tmp_path: Path):
    """Review, bugs 5, 14 and 18: the table was emptied first; a key that came back kept the rows of before."""
    home, old = home_in(tmp_path), orders()
    new = orders(keys=("name",), version=2, key_since=2)
    again = orders(version=3, key_since=3)
    state = append(change_log(home, old), old, *(Change(1, "c", after=row(n, f"x{n}"), sequence=n) for n in (1, 2)))
    current.apply(spark, home, [old], up_to=state.batch)
    for versions in ([old, new], [old, new, again]):
        before = DeltaTable(home.current).version()
        state = evolve(state, change_log_schema(versions[-1]))
        at = len(versions)
        state = append(state, versions[-1], Change(at, "r", after=row(at, f"x{at}")))
        current.apply(spark, home, versions, up_to=state.batch)
        assert set(rows_of(spark, home.current)) == {"2:x2" if at == 2 else "1:3"}
        done = [entry["operation"] for entry in DeltaTable(home.current).history()][: -before - 1]
        assert done == ["WRITE"]


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("applied", [False, True])
def test_current_rows_of_a_former_key_alone_are_passed_once(
    spark: SparkSession, tmp_path: Path, *, applied: bool, by_spark: bool
):
    """The storm, seed 9530004: such a table was never up to date, and each step merged it in vain."""
    home, old = home_in(tmp_path), orders()
    versions = [old, orders(version=2, key_since=2)]
    state = change_log(home, old)
    current.apply(spark, home, versions, up_to=state.batch)  # An empty table.
    if by_spark:
        table = spark_identifier(home.current)
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    if applied:
        state = append(state, versions[-1], Change(1, "r", after=row(1)))
        current.apply(spark, home, versions, up_to=state.batch)
    state = append(state, old, Change(2, "d", row(2)))
    first = current.apply(spark, home, versions, up_to=state.batch)
    assert applied_batch(home, versions[-1]) == first.batch == state.batch
    again = current.apply(spark, home, versions, up_to=state.batch)
    assert (again.delta_version, again.batch) == (first.delta_version, first.batch)
    assert set(rows_of(spark, home.current)) == ({"1:1"} if applied else set())


def test_current_without_key_is_rejected(spark: SparkSession, tmp_path: Path):
    schema = orders(keys=())
    with pytest.raises(SchemaError, match="no key"):
        current.apply(spark, home_in(tmp_path), [schema], up_to=1)


def test_current_merge_that_another_run_has_already_made_is_fenced(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    current.apply(spark, home, [schema], up_to=state.batch)
    state = append(state, schema, Change(2, "c", after=row(2)))
    run_here = current.run_here
    raced: list[bool] = []

    def other_run_is_faster(*arguments: Any, **more: Any) -> Any:
        found = run_here(*arguments, **more)
        if not raced:
            raced.append(True)
            current.apply(spark, home, [schema], up_to=state.batch, run_id="other")
        return found

    monkeypatch.setattr(current, "run_here", other_run_is_faster)
    with pytest.raises(FencedError):
        current.apply(spark, home, [schema], up_to=state.batch, run_id="mine")
    assert set(rows_of(spark, home.current)) == {"1:1", "1:2"}


def test_current_leaves_no_transaction_behind_in_any_session(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    current.apply(spark, home, [schema], up_to=state.batch)
    plain = str(tmp_path / "plain")
    for _ in range(2):
        spark.range(1).write.format("delta").mode("append").save(plain)
    assert DeltaTable(plain).version() == 1
    assert all("userMetadata" not in entry for entry in DeltaTable(plain).history())


Step = tuple[str, int, int, bool]
steps = st.lists(
    st.tuples(st.sampled_from("cudkr"), st.integers(1, 6), st.integers(1, 6), st.booleans()), min_size=1, max_size=40
)


@settings(
    max_examples=examples(5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(drawn=steps, cuts=st.lists(st.integers(1, 40), max_size=2, unique=True))
def test_current_equals_a_dictionary_for_any_events_in_any_splits(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: list[Step], cuts: list[int]
):
    home, schema = home_in(tmp_path_factory.mktemp("lake")), orders()
    changes, model = _play(drawn)
    state = change_log(home, schema)
    edges = [0, *sorted(cut for cut in cuts if cut < len(changes)), len(changes)]
    for start, end in pairwise(edges):
        if start == end:
            continue
        state = append(state, schema, *changes[start:end])
        current.apply(spark, home, [schema], up_to=state.batch)
    if not changes:
        return
    found = {
        r["id"]: (r["name"], UNKNOWN if r["_unavailable"] else r["note"]) for r in rows_of(spark, home.current).values()
    }
    assert found == model


def _play(drawn: list[Step]) -> tuple[list[Change], dict[int, tuple[str, Any]]]:
    """The changes that SQL Server could have captured for these steps, and the final state."""
    model: dict[int, tuple[str, Any]] = {}
    changes: list[Change] = []
    for number, (op, key, other, unknown) in enumerate(drawn, start=1):
        name, note = f"n{number}", f"t{number}"
        hidden = ["note"] if unknown else None
        after = row(key, name, None if unknown else note)
        before = row(key, "?", None)
        if op in "cr" and key not in model:
            model[key] = (name, UNKNOWN if unknown else note)
            changes.append(Change(number, op, after=after, unavailable=hidden))
        elif op == "u" and key in model:
            model[key] = (name, model[key][1] if unknown else note)
            changes.append(Change(number, "u", before, after, unavailable=hidden))
        elif op == "d" and key in model:
            del model[key]
            changes.append(Change(number, "d", before, unavailable=hidden))
        elif op == "k" and key in model and other not in model:
            del model[key]
            model[other] = (name, UNKNOWN if unknown else note)
            changes.append(Change(number, "u", before, {**after, "id": other}, unavailable=hidden))
    return changes, model


def test_fold_is_independent_of_commits_without_rows(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = commit(change_log(home, schema), [], {"to": "x"})
    state = append(state, schema, Change(1, "c", after=row(1)))
    state = commit(state, [], {"to": "y"})
    assert current.apply(spark, home, [schema], up_to=state.batch).batch == 3
    assert set(rows_of(spark, home.current)) == {"1:1"}


def test_current_table_with_a_feature_of_sparks_is_merged_and_says_why(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    assert current.apply(spark, home, [schema], up_to=state.batch).because is None
    table = spark_identifier(home.current)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    state = append(state, schema, Change(2, "u", row(1), row(1, "b")))
    merged = current.apply(spark, home, [schema], up_to=state.batch)
    assert merged.because == "the table has a change data feed"
    facts = json.loads(DeltaTable(home.current).history(1)[0]["userMetadata"])
    assert (facts["merged_by_spark"], facts["batch"], facts["rows"]) == (merged.because, 2, 1)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    state = append(state, schema, Change(3, "c", after=row(2)))
    assert current.apply(spark, home, [schema], up_to=state.batch).because is None
    assert {k: r["name"] for k, r in rows_of(spark, home.current).items()} == {"1:1": "b", "1:2": "a"}


def test_current_first_rows_of_a_large_table_are_written_in_shares(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, schema = home_in(tmp_path), orders()
    first = [Change(1, "c", after=row(n), sequence=n) for n in range(1, 21)]
    state = append(change_log(home, schema), schema, *first)
    monkeypatch.setattr(shares, "MOST_ROWS", 5)
    monkeypatch.setattr(current, "_LITTLE", 0)
    assert current.apply(spark, home, [schema], up_to=state.batch).because is None
    assert set(rows_of(spark, home.current)) == {f"{len(str(n))}:{n}" for n in range(1, 21)}
    assert len(spark.read.format("delta").load(home.current).inputFiles()) == 4


def test_current_more_changes_of_a_filled_table_than_tasks_can_hold_are_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, *(Change(1, "c", after=row(n), sequence=n) for n in (1, 2)))
    monkeypatch.setattr(shares, "MOST_SECTION_ROWS", 1)
    assert current.apply(spark, home, [schema], up_to=state.batch).because is None
    state = append(state, schema, Change(2, "d", row(1)), Change(2, "c", after=row(3), sequence=2))
    because = current.apply(spark, home, [schema], up_to=state.batch).because
    assert because == "2 changes of a table that has rows"
    assert set(rows_of(spark, home.current)) == {"1:2", "1:3"}


def test_current_tables_of_a_large_step_are_folded_in_one_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    homes, schema = [home_in(tmp_path / str(number)) for number in range(3)], orders()
    for home in homes:
        append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    monkeypatch.setattr(current, "_LITTLE", 0)
    tables = current.CurrentTables(lambda: spark)
    results = tables.apply_all([current.CurrentRequest(home, [schema], 1) for home in homes])
    assert [result.rows for result in results if isinstance(result, current.CurrentResult)] == [1, 1, 1]
    assert all(set(rows_of(spark, home.current)) == {"1:1"} for home in homes)
