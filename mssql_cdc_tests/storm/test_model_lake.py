"""The model of the lake answers as `deltalake` does: the same operations, played on both, have the same outcomes."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import Any

from deltalake.exceptions import DeltaError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import Layout, TableHome
from mssql_cdc.lake.log import TableState, commit, create_table, facts_of, load_state, refresh
from mssql_cdc.lake.properties import CHANGE_LOG_PROPERTIES, CHANGE_LOG_STATS
from mssql_cdc.lake.read import BatchSlice, exists, read_table, scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.tamper import last_streamed_position, verify_untouched
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, column, home_in, orders
from mssql_cdc_tests.storm.model_lake import ModelLake

HANDLES = st.sampled_from(["one", "two"])
COLUMNS = ("extra", "more")
OPERATIONS = st.one_of(
    st.tuples(st.just("create")),
    st.tuples(st.just("load"), HANDLES, st.sampled_from(["", "snapshot"])),
    st.tuples(st.just("append"), HANDLES, st.integers(1, 3)),
    st.tuples(st.just("append"), HANDLES, st.integers(1, 3)),
    st.tuples(st.just("advance"), HANDLES),
    st.tuples(st.just("refresh"), HANDLES),
    st.tuples(st.just("evolve"), HANDLES, st.sampled_from(COLUMNS)),
    st.tuples(st.just("untouched"), HANDLES, st.integers(0, 5)),
    st.tuples(st.just("read"), st.integers(0, 3), st.integers(0, 6)),
    st.tuples(st.just("gap")),
    st.tuples(st.just("compact")),
)


class Player:
    """Plays operations on the lake that is open, and tells what came of each."""

    def __init__(self, folder: str) -> None:
        self.home: TableHome = home_in(folder)
        self.small = small_table(Layout(folder, "server1", "shop"), "gaps")
        self.schema = orders()
        self.states: dict[str, TableState | None] = {"one": None, "two": None}
        self.position = 0

    def play(self, operation: tuple[Any, ...]) -> object:
        """The outcome: a value without identities, or the kind of the error."""
        name, *arguments = operation
        try:
            return getattr(self, name)(*arguments)
        except (MssqlCdcError, DeltaError) as error:
            return type(error).__name__

    def create(self) -> object:
        create_table(
            self.home.changes,
            change_log_schema(self.schema),
            owner=self.home.app_id,
            properties=CHANGE_LOG_PROPERTIES,
            stats_columns=CHANGE_LOG_STATS,
        )
        return exists(self.home.changes)

    def load(self, handle: str, writer: str) -> object:
        self.states[handle] = load_state(self.home.changes, owner=self.home.app_id, writer=writer)
        return _told(self.states[handle])

    def append(self, handle: str, rows: int) -> object:
        state = self.states[handle]
        if state is None:
            return None
        self.position += 10
        changes = [Change(self.position + n, "c", None, {"id": n}) for n in range(rows)]
        self.states[handle] = append(state, self._schema(state), *changes)
        return _told(self.states[handle])

    def advance(self, handle: str) -> object:
        state = self.states[handle]
        if state is not None:
            self.states[handle] = commit(state, [], {"to": f"{self.position}"})
        return _told(self.states[handle])

    def refresh(self, handle: str) -> object:
        state = self.states[handle]
        self.states[handle] = refresh(state) if state is not None else None
        return _told(self.states[handle])

    def evolve(self, handle: str, name: str) -> object:
        state = self.states[handle]
        if state is None:
            return None
        schema = self._schema(state)
        known = {one.name for one in schema.columns}
        if name not in known:
            schema = replace(schema, columns=(*schema.columns, column(name, "int")))
        self.states[handle] = evolve(state, change_log_schema(schema))
        return _told(self.states[handle])

    def untouched(self, handle: str, version: int) -> object:
        state = self.states[handle]
        if state is None:
            return None
        verify_untouched(state, table_id=state.table_id, delta_version=version)
        return last_streamed_position(state)

    def read(self, after: int, up_to: int) -> object:
        if not exists(self.home.changes):
            return None
        window = BatchSlice(after, up_to)
        some = [row for batch in scan(self.home.changes, batches=window, columns=["_pos"]) for row in batch.to_pylist()]
        whole = read_table(self.home.changes)
        return some, whole.schema, whole.to_pylist()

    def gap(self) -> object:
        row = {"table_id": "t", "epoch": 0, "from": "f", "status": "open"}
        after = self.small.append(self.small.state(), [row], {"kind": "gaps"})
        return after.batch, self.small.rows()

    def compact(self) -> object:
        if not self.small.rows():
            return None
        self.small.compact()
        return _told(self.small.state()), self.small.rows()

    def _schema(self, state: TableState) -> TableSchema:
        """The table's structure as this state knows it."""
        added = [column(name, "int") for name in COLUMNS if f'"{name}"' in state.schema_json]
        return replace(self.schema, columns=(*self.schema.columns, *added))


def _told(state: TableState | None) -> object:
    if state is None:
        return None
    own = {name: value for name, value in (state.own or {}).items() if name != "mark"}
    history = [
        (entry["version"], entry["operation"], (facts_of(entry) or {}).get("batch"))
        for entry in state.opened().history()
    ]
    schema, properties = json.loads(state.schema_json), sorted(state.properties.items())
    told = (state.delta_version, state.batch, state.own_batch, own, schema, properties)
    return told, history


@settings(max_examples=60, phases=[Phase.generate], deadline=None, derandomize=True)
@given(st.lists(OPERATIONS, min_size=4, max_size=16))
def test_model_of_the_lake_answers_as_deltalake_does(operations: list[tuple[Any, ...]]):
    wanted = [("create",), ("load", "one", ""), ("load", "two", "snapshot"), *operations]
    with tempfile.TemporaryDirectory() as folder:
        real = Player(folder)
        expected = [real.play(operation) for operation in wanted]
        with ModelLake().opened():
            model = Player(folder + "-model")
            for operation, outcome in zip(wanted, expected, strict=True):
                found = model.play(operation)
                assert _plain(found, folder) == _plain(outcome, folder), operation


def _plain(found: object, folder: str) -> str:
    return repr(found).replace(folder + "-model", folder)
