"""The fold in tasks gives the same table as Spark's MERGE, its oracle, for any change log (correctness D)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.lake import current
from mssql_cdc.lake.current_table import Vectors, new_table
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.read import query
from mssql_cdc.lake.table_commit import Change as LogChange
from mssql_cdc.lake.table_commit import create
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, excluding, home_in, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COLUMNS = ("name", "note", "amount", "total")

OPERATION = st.sampled_from("cuuudr")
FLAGS = st.frozensets(st.sampled_from(COLUMNS), max_size=2)


@st.composite
def changes(draw: st.DrawFn, *, first: int) -> list[Change]:
    """Changes that need not make sense as a history: any operation on any key, late ones too."""
    found: list[Change] = []
    for number in range(draw(st.integers(1, 14))):
        op, key = draw(OPERATION), draw(st.integers(1, 7))
        at = draw(st.integers(max(1, first - 5), first + number)) if draw(st.integers(0, 4)) == 0 else first + number
        unavailable = draw(FLAGS) if op != "d" else frozenset[str]()
        exact = {name: f"{name}!{number}" for name in draw(FLAGS) - unavailable}
        image = {"id": key, "name": f"n{at}.{number}", "note": draw(st.sampled_from([None, "", f"x{number}"]))}
        image["amount"] = draw(st.one_of(st.none(), st.integers(-5, 5)))
        image["total"] = draw(st.integers(-5, 5))
        for name in unavailable:
            image[name] = None
        found.append(
            Change(
                at,
                op,
                before=image if op in "ud" else None,
                after=image if op != "d" else None,
                unavailable=sorted(unavailable) or None,
                exact={"after": exact} if exact and op != "d" else {},
                sequence=number + 1,
            )
        )
    return found


def all_versions() -> list[TableSchema]:
    """A structure, the same without a column, with another one in addition, and with types that Delta cannot widen."""
    columns = (
        column("id", "int"),
        column("name", "nvarchar", length=50),
        column("note", "nvarchar", length=-1),
        column("amount", "int"),
        column("total", "int", computed=True),
    )
    more = column("more", "int")
    changed = (*columns[:2], column("note", "xml"), column("amount", "nvarchar", length=9), columns[4], more)
    back = (*columns[:2], column("note", "varbinary", length=-1), column("amount", "int"), columns[4], more)
    found: list[TableSchema] = []
    for schema in (
        orders(*columns),
        excluding(orders(*columns, version=2), {"note"}),
        orders(*columns, more, version=3),
        orders(*changed, version=4),
        orders(*back, version=5),
    ):
        found.append(with_delta_columns(schema, found))
    return found


def as_typed(change: Change, schema: TableSchema) -> Change:
    """The change with values of the types that the version's columns have."""

    def typed(image: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if image is None:
            return None
        kinds = {one.name: one.type.name for one in schema.columns}
        changed = {name: _AS[kinds[name]](value) for name, value in image.items() if value is not None}
        return {**dict.fromkeys(image), **changed}

    return replace(change, before=typed(change.before), after=typed(change.after))


_AS: Mapping[str, Callable[[Any], Any]] = {
    "int": int, "nvarchar": str, "xml": str, "varbinary": lambda value: value.encode(),
}  # fmt: skip


@pytest.mark.long
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), sections=st.integers(1, 4), vectors=st.sampled_from(["auto", "true", "false"]))
def test_fold_gives_what_merge_gives_for_any_change_log(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, sections: int, vectors: Vectors
):
    ours = home_in(tmp_path_factory.mktemp("lake"))
    # The same change log, another current table.
    oracle = Twin(ours.folder, ours.app_id)
    versions = all_versions()[:1]
    state, at, ready = change_log(ours, versions[0]), 0, 1
    for section in range(sections):
        found = data.draw(changes(first=at + 10))
        at = max(change.at for change in found)
        if section:
            versions = all_versions()[: data.draw(st.integers(len(versions), 5))]
            # A version is recorded before the change log is ready for it.
            ready = data.draw(st.integers(ready, len(versions)))
            for version in versions[:ready]:
                state = evolve(state, change_log_schema(version))
        written = data.draw(st.sampled_from(versions[:ready])) if section else versions[0]
        state = append(state, written, *(as_typed(change, written) for change in found))
        current.apply(spark, ours, versions, up_to=state.batch, vectors=vectors)
        _merge(spark, oracle, versions, state.batch)
        assert table_rows(ours) == table_rows(oracle)


@pytest.mark.parametrize(
    "later",
    [pytest.param(2, marks=pytest.mark.long), 3, pytest.param(4, marks=pytest.mark.long)],
    ids=["new", "other types", "types that came back"],
)
def test_fold_gives_what_merge_gives_though_the_change_log_is_not_ready_for_the_newest_structure(
    spark: SparkSession, tmp_path: Path, later: int
):
    ours = home_in(tmp_path)
    oracle, versions = Twin(ours.folder, ours.app_id), all_versions()
    rows = [{"id": n, "name": "a", "note": "n", "amount": 1, "total": 2} for n in range(1, 4)]
    state = append(
        change_log(ours, versions[0]), versions[0], *(Change(n, "c", after=row) for n, row in enumerate(rows, 1))
    )
    for home in (ours, oracle):
        current.apply(spark, home, versions[:1], up_to=state.batch)
    new = {"id": 1, "name": "b", "note": None, "amount": 5, "total": None}
    added = {**rows[0], "id": 9}
    state = append(
        state,
        versions[0],
        Change(11, "u", rows[0], new, unavailable=["note", "total"]),
        Change(12, "d", rows[1]),
        Change(13, "c", after=added),
    )
    current.apply(spark, ours, versions[: later + 1], up_to=state.batch)
    _merge(spark, oracle, versions[: later + 1], state.batch)
    found = table_rows(ours)
    assert found == table_rows(oracle)
    assert [(found[key]["name"], "more" in found[key]["_unavailable"]) for key in ("1:1", "1:9")] == [
        ("b", True),
        ("a", True),
    ]


def test_merge_passes_rows_of_a_former_key_though_the_change_log_is_not_ready_for_the_newest_structure(
    spark: SparkSession, tmp_path: Path
):
    home = home_in(tmp_path)
    first = orders()
    state = append(change_log(home, first), first, Change(1, "c", after={"id": 1, "name": "a", "note": "n"}))
    current.apply(spark, home, [first], up_to=state.batch)
    newest = replace(orders(*first.columns, column("more", "int"), keys=("id", "name"), version=2), key_since=2)
    _merge(spark, home, [first, newest], state.batch)
    assert table_rows(home) == {}


class Twin(TableHome):
    """The same change log with another current table."""

    @property
    def current(self) -> str:
        """URI of the oracle's table."""
        return f"{self.folder}/oracle"


def _merge(spark: SparkSession, home: TableHome, versions: list[TableSchema], up_to: int) -> None:
    log = load_log(home.current)
    if log is None:
        protocol, metadata = new_table(home, versions[-1], "true")
        log = create(home.current, LogChange("CREATE TABLE", protocol=protocol, metadata=metadata), facts={})
    wanted = current.structure_change(log, versions)
    if wanted:
        current.change_structure(spark, home, versions[-1], wanted)
        log = load_log(home.current)
        assert log is not None
    app_id = current.progress_id(log.table_id, versions[-1])
    merge(spark, home, versions, log, app_id=app_id, up_to=up_to, because="it is the oracle")


def table_rows(home: TableHome) -> dict[str, dict[str, Any]]:
    """All rows by their keys."""
    found: dict[str, dict[str, Any]] = {}
    for batch in query(home.current, "SELECT * FROM t"):
        for row in batch.to_pylist():
            row["_exact"] = dict(row["_exact"]) if row["_exact"] is not None else None
            assert row["_key"] not in found, "a key twice"
            found[row["_key"]] = row
    return found
