"""Rows of a repair that died before it merged them: a run does it, but not ahead of what waits for a complete cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.capture.current_tables import behind_cut, waiting_repairs
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT
from mssql_cdc.capture.survey import survey
from mssql_cdc.check.refresh import refresh
from mssql_cdc.errors import NotCaughtUpError
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.log import commit, load_state
from mssql_cdc.run.follower import Follower
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import current, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark

ORDERS = TableId("shop", "dbo", "orders")


def repaired(database: Database, source: ModelSource, key: int) -> None:
    """A repair commits the source's row of one key at the end of the table's stream, and dies."""
    home = survey(database).tables[ORDERS].home
    state = load_state(home.changes, owner=home.app_id, writer=SNAPSHOT)
    assert state is not None
    newest = f"SELECT * FROM t WHERE after.id = {key} ORDER BY _pos DESC LIMIT 1"
    found = QueryBuilder().register("t", DeltaTable(home.changes)).execute(newest).read_all()
    (row,) = pa.table(found).to_pylist()
    row |= {"op": "r", "before": None, "_batch": state.batch + 1, "_snapshot": "repair:9"}
    row |= {"after": {**row["after"], "name": source.tables["orders"].rows[key]}, "_pos": row["_pos"][:-1] + "9"}
    rows = pa.RecordBatch.from_pylist([row], arrow_of(state.schema_json))
    commit(state, write_files([rows], state.target), {"kind": "repair", "number": 9})


def missed(source: ModelSource) -> None:
    """A change that CDC never delivers."""
    source.tables["orders"].rows[1] = "missed by CDC"


def test_a_run_merges_the_rows_of_a_repair_that_has_died(database, source):
    write_some(source)
    settled(database, source)
    missed(source)
    repaired(database, source, 1)
    settled(database, source)
    same(database, source)
    seen = survey(database)
    assert (seen.facts.behind, waiting_repairs(database, seen.tables.values(), seen.offsets, seen.history)) == ((), [])


def test_a_current_table_that_is_up_to_date_is_found_without_another_look_at_its_history(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    missed(source)
    repaired(database, source, 1)
    settled(database, source)
    survey(database)

    def looked(*_: object) -> frozenset[str]:
        raise AssertionError

    monkeypatch.setattr("mssql_cdc.capture.current_tables.kinds_between", looked)
    assert survey(database).facts.behind == ()


@pytest.mark.parametrize("repaired_first", [False, True])
def test_rows_of_a_repair_wait_with_those_of_a_range_that_no_complete_cut_has(database, source, repaired_first):
    """Rule C18: a range that failed in another table is no cut, so nothing of it may be in a current table."""
    write_some(source)
    settled(database, source)
    before = current(database, "orders")
    missed(source)
    if repaired_first:
        repaired(database, source, 1)
    for name in ("orders", "people"):
        source.put(name, 2, "beyond the cut")
    source.capture()
    source.faults["people"] = "the disk is full"
    Follower(database, merge=False).step()
    if not repaired_first:
        repaired(database, source, 1)
    seen = survey(database)
    assert not seen.offsets.ends_with_cut
    assert behind_cut(database, seen.tables.values(), seen.offsets, seen.history) == {}
    found = refresh(database)
    assert current(database, "orders") == before
    assert [(table, type(error)) for table, error in found.errors.items()] == [(ORDERS, NotCaughtUpError)]

    source.faults.clear()
    settled(database, source)
    same(database, source)
    assert refresh(database).errors == {}
