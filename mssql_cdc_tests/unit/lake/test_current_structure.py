"""A current table gets new columns with the next rows, in one commit and without Spark (correctness D24)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.data_layout import AS_IT_COMES, DataLayout
from mssql_cdc.errors import MssqlCdcError, OvertakenError
from mssql_cdc.lake import current, shares
from mssql_cdc.lake.apply_task import ApplyTask
from mssql_cdc.lake.current import CurrentResult, CurrentTables
from mssql_cdc.lake.current_plan import CurrentRequest, Handed
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.properties import STATS
from mssql_cdc.lake.read import query
from mssql_cdc.lake.table_log import TableLog, load_log
from mssql_cdc.lake.unknown_columns import UnknownColumns
from mssql_cdc.schema import Column, TableSchema, change_log_schema
from mssql_cdc.schema.arrow import current_names
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, excluding, home_in, orders
from mssql_cdc_tests.unit.lake.test_current_tables import _commit

FIRST = orders()
PRICED = orders(*FIRST.columns, column("price", "int", description="Net price"), column("at", "datetime"), version=2)
ROWS = 20


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


def apply(
    home: TableHome, versions: Sequence[TableSchema], up_to: int, layout: DataLayout = AS_IT_COMES
) -> CurrentResult:
    (result,) = CurrentTables(no_spark).apply_all([CurrentRequest(home, versions, up_to, layout=layout)])
    if isinstance(result, MssqlCdcError):
        raise result
    return result


def filled(home: TableHome) -> TableState:
    """The table with rows of its first structure; the change log is ready for the second one."""
    created = (Change(1, "c", after={"id": n, "name": "a", "note": "n"}, sequence=n + 1) for n in range(ROWS))
    state = append(change_log(home, FIRST), FIRST, *created)
    apply(home, [FIRST], state.batch)
    return evolve(state, change_log_schema(PRICED))


def priced(state: TableState, *keys: int) -> TableState:
    old = {"name": "a", "note": "n"}
    changes = (
        Change(3, "u", {"id": n, **old}, {"id": n, **old, "price": 7}, sequence=place)
        for place, n in enumerate(keys, start=1)
    )
    return append(state, PRICED, *changes)


def told(home: TableHome) -> dict[int, tuple[Any, Any]]:
    batches = query(home.current, "SELECT id, price, _unavailable FROM t")
    return {row["id"]: (row["price"], row["_unavailable"]) for batch in batches for row in batch.to_pylist()}


def newest(home: TableHome) -> TableLog:
    log = load_log(home.current)
    assert log is not None
    return log


UNKNOWN = (None, ["price", "at"])


def test_a_new_column_and_the_rows_that_have_it_come_in_one_commit(tmp_path: Path):
    home = home_in(tmp_path)
    state = priced(filled(home), 3)
    before = newest(home)
    result = apply(home, [FIRST, PRICED], state.batch)
    assert (result.rows, result.delta_version) == (1, before.version + 1)
    assert told(home) == dict.fromkeys(range(ROWS), UNKNOWN) | {3: (7, None)}
    fields = {field.name: field.metadata.get("comment") for field in DeltaTable(home.current).schema().fields}
    assert fields["price"] == "Net price (SQL Server int)"


def test_a_new_column_asks_readers_for_no_feature_but_that_of_its_type(tmp_path: Path):
    home = home_in(tmp_path)
    state = priced(filled(home), 3)
    assert newest(home).protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    apply(home, [FIRST, PRICED], state.batch)
    assert newest(home).protocol["readerFeatures"] == ["timestampNtz"]
    assert DeltaTable(home.current).to_pyarrow_dataset().count_rows() == ROWS


def test_a_structure_without_rows_comes_with_the_next_rows(tmp_path: Path):
    home = home_in(tmp_path)
    state = filled(home)
    before = newest(home).version
    assert apply(home, [FIRST, PRICED], state.batch).rows == 0
    assert newest(home).version == before
    apply(home, [FIRST, PRICED], priced(state, 0).batch)
    assert told(home) == dict.fromkeys(range(ROWS), UNKNOWN) | {0: (7, None)}


@pytest.mark.parametrize(
    "later",
    [
        column("price", "int"),  # new
        column("note", "int"),  # continues in another Delta column
    ],
    ids=["new", "continued"],
)
def test_rows_of_before_are_merged_though_the_change_log_is_not_ready_for_the_newest_structure(
    tmp_path: Path, later: Column
):
    """A version is recorded before the change log gets its columns; a run may end in between, or another one look."""
    home = home_in(tmp_path)
    created = (Change(1, "c", after={"id": n, "name": "a", "note": "n"}, sequence=n + 1) for n in range(ROWS))
    state = append(change_log(home, FIRST), FIRST, *created)
    apply(home, [FIRST], state.batch)
    same = [one for one in FIRST.columns if one.name != later.name]
    versions = [FIRST, with_delta_columns(replace(orders(*same, later, version=2), key_since=1), [FIRST])]
    old, new = {"id": 1, "name": "a", "note": "n"}, {"id": 1, "name": "b", "note": None}
    state = append(
        state,
        FIRST,
        Change(2, "u", old, new, unavailable=["note"]),
        Change(2, "c", after={"id": ROWS, "name": "c", "note": "n"}, sequence=2),
    )
    apply(home, versions, state.batch)
    target = current_names(versions[-1])[later.name]
    found = {row["id"]: row for batch in query(home.current, "SELECT * FROM t") for row in batch.to_pylist()}
    assert [found[number]["name"] for number in (0, 1, ROWS)] == ["a", "b", "c"]
    assert {row["note"] for row in found.values()} == {"n"}
    assert {row[target] for row in found.values()} == {None}
    assert {tuple(row["_unavailable"]) for row in found.values()} == {(later.name,)}


def test_shares_of_a_large_table_mark_the_rows_that_they_write_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = home_in(tmp_path)
    state = filled(home)
    more = (Change(2, "c", after={"id": n, "name": "b"}, sequence=n) for n in range(ROWS, 2 * ROWS))
    state = append(state, FIRST, *more)
    with monkeypatch.context() as few:
        few.setattr("mssql_cdc.lake.apply_task.LARGE_ROWS", 1)
        few.setattr("mssql_cdc.lake.apply_task._ABSORB", 0)
        apply(home, [FIRST], state.batch)
    assert len(newest(home).files) == 2
    monkeypatch.setattr(shares, "MOST_ROWS", 4)
    monkeypatch.setattr(shares, "LOOK_UP_SECONDS", 1e-9)
    divided: list[int] = []

    def counted(task: ApplyTask, *, cores: int) -> list[ApplyTask]:
        found = shares.shares(task, cores=max(cores, 2))
        divided.append(len(found))
        return found

    monkeypatch.setattr(current, "shares", counted)
    state = priced(state, *range(5, 35, 3))
    apply(home, [FIRST, PRICED], state.batch)
    assert divided[0] > 1
    assert told(home) == dict.fromkeys(range(2 * ROWS), UNKNOWN) | dict.fromkeys(range(5, 35, 3), (7, None))


def test_a_value_from_before_a_column_was_gone_is_not_taken_for_an_unavailable_one(tmp_path: Path):
    home = home_in(tmp_path)
    state = filled(home)
    without = excluding(replace(FIRST, version=2), {"note"})
    third = replace(FIRST, version=3)
    state = append(state, third, Change(3, "u", {"id": 4, "name": "a"}, {"id": 4, "name": "b"}, ["note"]))
    apply(home, [FIRST, without, third], state.batch)
    batches = query(home.current, "SELECT name, note, _unavailable FROM t WHERE id IN (4, 5) ORDER BY id")
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"name": "b", "note": None, "_unavailable": ["note"]},
        {"name": "a", "note": None, "_unavailable": ["note"]},
    ]


def test_rows_of_a_structure_that_this_run_does_not_know_yet_are_left_to_its_next_look(tmp_path: Path):
    """They were taken for rows of an earlier key, and left out for ever."""
    home = home_in(tmp_path)
    state = priced(append(filled(home), FIRST, Change(2, "d", {"id": 0, "name": "a"})), 3)
    before = newest(home)
    (result,) = CurrentTables(no_spark).apply_all([CurrentRequest(home, [FIRST], state.batch)])
    assert isinstance(result, OvertakenError)
    assert "structure 2" in str(result)
    assert newest(home).version == before.version
    apply(home, [FIRST, PRICED], state.batch)
    assert told(home)[3] == (7, None)


def test_a_writer_that_changes_the_table_meanwhile_makes_the_change_of_the_structure_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = home_in(tmp_path)
    state = append(filled(home), FIRST, Change(2, "d", {"id": 0, "name": "a"}))
    between, run_here, before = state.batch, current.run_here, newest(home)
    state = priced(state, 3)

    def meanwhile(*arguments: Any) -> Any:
        found = run_here(*arguments)
        if newest(home).version == before.version:
            monkeypatch.setattr(current, "run_here", run_here)
            apply(home, [FIRST], between)
        return found

    monkeypatch.setattr(current, "run_here", meanwhile)
    assert apply(home, [FIRST, PRICED], state.batch).rows == 1
    assert told(home) == dict.fromkeys(range(1, ROWS), UNKNOWN) | {3: (7, None)}


def test_what_takes_long_is_left_to_the_caller_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = home_in(tmp_path)
    state = priced(filled(home), 3)
    request = CurrentRequest(home, [FIRST, PRICED], state.batch)
    monkeypatch.setattr(current, "_LITTLE", 0)
    assert CurrentTables(no_spark).apply_quick([request]) == [Handed(request, "its structure changes", merges=False)]


def test_a_name_that_needs_column_mapping_is_sparks_unless_the_table_has_it(tmp_path: Path):
    home = home_in(tmp_path)
    state = filled(home)
    odd = orders(*FIRST.columns, column("unit price", "int"), version=2)
    state = append(state, FIRST, Change(2, "d", {"id": 0, "name": "a"}))
    request = CurrentRequest(home, [FIRST, odd], state.batch)
    because = "the name of a new column needs column mapping"
    assert CurrentTables(no_spark).apply_quick([request]) == [Handed(request, because, merges=False)]


# -- Decimals with more digits than every reader takes from statistics ------------------------------

NARROW = orders(
    column("id", "int"), column("n", "bigint"), column("m", "decimal", precision=10, scale=2), column("s", "smallmoney")
)
WIDE = orders(
    column("id", "int"),
    column("n", "decimal", precision=20, scale=0),
    column("m", "decimal", precision=20, scale=2),
    column("s", "money"),
    version=2,
)
EXACT = {"n": Decimal(2**53 + 1), "m": Decimal("12345678901234564.99"), "s": Decimal("922337203685477.5300")}
"""Each lies above the nearest double."""
BY_N = DataLayout(cluster_by=("n",))


def narrow(home: TableHome, layout: DataLayout = AS_IT_COMES) -> TableState:
    """The table with a row of the narrow types; the change log takes the wide ones, as if Spark had widened it."""
    small = {"n": 5, "m": Decimal("1.00"), "s": Decimal("0.5")}
    state = append(change_log(home, WIDE), NARROW, Change(1, "c", after={"id": 1, **small}))
    apply(home, [NARROW], state.batch, layout)
    return state


def widened(home: TableHome, layout: DataLayout = AS_IT_COMES) -> TableState:
    state = append(narrow(home, layout), WIDE, Change(3, "c", after={"id": 2, **EXACT}))
    apply(home, [NARROW, WIDE], state.batch, layout)
    return state


def found_by_value(home: TableHome) -> dict[str, tuple[int, int]]:
    """How many rows two readers find by the exact value of each column."""
    dataset = DeltaTable(home.current).to_pyarrow_dataset()
    counts: dict[str, tuple[int, int]] = {}
    for name, value in EXACT.items():
        kind = dataset.schema.field(name).type
        sql = f"SELECT id FROM t WHERE {name} = CAST('{value}' AS DECIMAL({kind.precision}, {kind.scale}))"
        rows = sum(batch.num_rows for batch in query(home.current, sql))
        counts[name] = (rows, dataset.to_table(filter=ds.field(name) == pa.scalar(value, kind)).num_rows)
    return counts


ONCE = dict.fromkeys(EXACT, (1, 1))


def test_a_row_is_found_by_the_exact_value_of_a_column_that_got_more_digits(tmp_path: Path):
    home = home_in(tmp_path)
    widened(home)
    assert found_by_value(home) == ONCE
    assert newest(home).properties[STATS] == "`id`,`_key`,`_pos`,`_batch`"


def test_a_row_is_found_by_the_exact_value_of_a_column_that_the_table_is_clustered_by(tmp_path: Path):
    home = home_in(tmp_path)
    widened(home, BY_N)
    assert found_by_value(home) == ONCE
    assert newest(home).properties[STATS] == "`n`,`id`,`_key`,`_pos`,`_batch`"


def listing_wide_columns(home: TableHome, *, rounded: bool) -> TableState:
    """A table as earlier versions left it: wide decimals are listed, their bounds perhaps rounded."""
    state = widened(home)
    log = newest(home)
    (file,) = log.files.values()
    listed = {**log.metadata, "configuration": {**log.properties, STATS: "`id`,`n`,`m`,`s`,`_key`,`_pos`,`_batch`"}}
    facts = file.facts
    for name, value in EXACT.items():
        bounds = (float(value), float(value)) if rounded else (5, 6)
        facts["minValues"][name], facts["maxValues"][name] = bounds
    add = file.add()["add"] | {"stats": json.dumps(facts)}
    _commit(home, [{"metaData": listed}, {"add": add}])
    return state


@pytest.mark.parametrize("rounded", [True, False])
def test_the_next_update_of_a_table_with_rounded_bounds_writes_its_files_again(tmp_path: Path, *, rounded: bool):
    home = home_in(tmp_path)
    state = listing_wide_columns(home, rounded=rounded)
    if rounded:
        assert found_by_value(home) != ONCE
    before = set(newest(home).files)
    state = append(state, WIDE, Change(4, "c", after={"id": 7}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mssql_cdc.lake.apply_task._ABSORB", 0)
        apply(home, [NARROW, WIDE], state.batch)
    log = newest(home)
    assert log.properties[STATS] == "`id`,`_key`,`_pos`,`_batch`"
    assert before.isdisjoint(log.files) == rounded
    if rounded:
        assert found_by_value(home) == ONCE


NAMES = st.sampled_from(["a", "b", "c", "größe"])
LISTS = st.none() | st.lists(NAMES, unique=True, max_size=3)
SCHEMA = pa.schema(
    [
        ("_exact", pa.map_(pa.string(), pa.string())),
        ("_unavailable", pa.list_(pa.field("element", pa.string()))),
        ("a", pa.int32()),
        ("b", pa.string()),
    ]
)


@given(
    lists=st.lists(st.tuples(LISTS, st.dictionaries(NAMES, st.text(), max_size=2)), max_size=8),
    names=st.lists(NAMES, unique=True),
    cut=st.integers(0, 3),
    columns=st.sets(st.sampled_from(SCHEMA.names), min_size=1),
)
def test_marked_rows_name_every_unknown_column_once(
    lists: list[tuple[list[str] | None, dict[str, str]]], names: list[str], cut: int, columns: set[str]
):
    rows = [{"_exact": exact or None, "_unavailable": known, "a": 1, "b": "x"} for known, exact in lists]
    table = pa.Table.from_pylist(rows, schema=SCHEMA).slice(cut).select(sorted(columns))
    emptied = tuple(name for name in names if name in {"a", "b"})
    marked = UnknownColumns(tuple(names), emptied).marked(table)
    expected: dict[str, Callable[[dict[str, Any]], Any]] = {
        "_unavailable": lambda row: list(dict.fromkeys([*(row["_unavailable"] or ()), *names])) if names
        else row["_unavailable"],
        "_exact": lambda row: [
            one for one in (row["_exact"] or {}).items() if not (emptied and one[0] in names)
        ] or None,
        "a": lambda row: None if "a" in emptied else row["a"],
        "b": lambda row: None if "b" in emptied else row["b"],
    }  # fmt: skip
    assert marked.schema == table.schema
    assert marked.to_pylist() == [{name: expected[name](row) for name in sorted(columns)} for row in rows[cut:]]
