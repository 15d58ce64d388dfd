"""Current tables: the fold in tasks against Spark's MERGE, on the same change logs in the same run.

What counts is the CPU of the whole process tree and its ratio: the machine has other things to do.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mssql_cdc.lake import current
from mssql_cdc.lake.current import CurrentLogs, CurrentRequest, CurrentResult, CurrentTables
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import Layout, TableHome
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.read import query
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.lsn import position_text
from mssql_cdc.schema import TableId, TableSchema, change_log_schema
from mssql_cdc.spark.session import SparkSettings, start_session
from mssql_cdc_tests.benchmarks.measure import Figure, tree_cpu
from mssql_cdc_tests.lake_kit import AT, change_log, column, lsn, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 3
_TEXTS = [f"text{number}" for number in range(6)]
_NUMBERS = [f"number{number}" for number in range(5)]


@dataclass(frozen=True, slots=True)
class Case:
    """Tables of so many rows, of which so many random ones change in each round."""

    tables: int
    rows: int
    changes: int

    @property
    def text(self) -> str:
        """How the report names it."""
        return f"{self.tables} x {self.rows:,} rows, {self.changes:,} random changes each"


CASES = (Case(4, 10_000, 100), Case(1, 1_000_000, 10_000))


class Oracle(TableHome):
    """The same change log with another current table."""

    @property
    def current(self) -> str:
        """URI of the table that MERGE keeps."""
        return f"{self.folder}/merged"


def folds(folder: Path) -> Iterator[Figure]:
    """Compare both ways."""
    session = start_session(SparkSettings.from_environment(short_lived=False))
    for number, case in enumerate(CASES):
        ours, merged, same = _compare(session, folder / str(number), case)
        yield Figure(f"{case.text}: MERGE, CPU of a round", merged, "s")
        yield Figure(f"{case.text}: tasks, CPU of a round", ours, "s")
        yield Figure(f"{case.text}: MERGE against tasks", merged / ours, "x", at_least=5)
        yield Figure(f"{case.text}: tables that differ", 0 if same else 1, "", at_most=0)


def _compare(session: SparkSession, folder: Path, case: Case) -> tuple[float, float, bool]:
    random = np.random.default_rng(1)
    schema = orders(
        column("id", "int"),
        *(column(name, "nvarchar", length=50) for name in _TEXTS),
        *(column(name, "bigint") for name in _NUMBERS),
    )
    homes = [_home(folder, number) for number in range(case.tables)]
    states = {home.folder: change_log(home, schema) for home in homes}
    oracles = [Oracle(home.folder, home.app_id) for home in homes]
    logs, spent = CurrentLogs(), dict[str, list[float]](tasks=[], merge=[])
    for round_ in range(1 + ROUNDS):
        for home in homes:
            whole = round_ == 0
            keys = np.arange(case.rows) if whole else random.choice(case.rows, case.changes, replace=False)
            states[home.folder] = _append(states[home.folder], schema, keys, at=round_ + 1, op="c" if whole else "u")
        up_to = states[homes[0].folder].batch
        tasks = _timed(lambda: _tasks(session, homes, schema, up_to, logs))  # noqa: B023 (called at once)
        merges = _timed(lambda: _merges(session, oracles, schema, up_to))  # noqa: B023
        if round_ > 1:  # The first round warms up.
            spent["tasks"].append(tasks)
            spent["merge"].append(merges)
    same = all(_sum(home.current) == _sum(oracle.current) for home, oracle in zip(homes, oracles, strict=True))
    return statistics.median(spent["tasks"]), statistics.median(spent["merge"]), same


def _home(folder: Path, number: int) -> TableHome:
    return Layout(str(folder), "bench", "shop").home(TableId("shop", "dbo", f"t{number}"))


def _append(state: TableState, schema: TableSchema, keys: np.ndarray, *, at: int, op: str) -> TableState:
    count, logged = len(keys), change_log_schema(schema)
    values = {"id": pa.array(keys, pa.int32())}
    values |= {name: pa.array([f"{name} {key % 1000} {at}" for key in keys.tolist()]) for name in _TEXTS}
    values |= {name: pa.array(keys * at + number, pa.int64()) for number, name in enumerate(_NUMBERS)}
    image = pa.StructArray.from_arrays(
        [values[f.name] for f in logged.field("after").type], fields=list(logged.field("after").type)
    )
    key = pa.StructArray.from_arrays([values["id"]], fields=list(logged.field("key").type))
    known = {
        "_pos": pa.array([position_text(0, lsn(at), 1, lsn(n + 1), 2 if op == "c" else 4) for n in range(count)]),
        "_commit_ts": pa.array([AT] * count, pa.timestamp("us", "UTC")),
        "_batch": pa.array([state.batch + 1] * count, pa.int64()),
        "_schema": pa.array([1] * count, pa.int32()),
        "_key": pa.array([f"{len(str(key))}:{key}" for key in keys.tolist()]),
        "op": pa.array([op] * count),
        "key": key,
        "after": image,
    }
    arrays = [known.get(field.name, pa.nulls(count, field.type)) for field in logged]
    rows = pa.RecordBatch.from_arrays(arrays, schema=logged)
    return commit(state, write_files([rows], state.target), {"to": lsn(at).text})


def _tasks(session: SparkSession, homes: list[TableHome], schema: TableSchema, up_to: int, logs: CurrentLogs) -> None:
    tables = CurrentTables(lambda: session, logs=logs)
    for result in tables.apply_all([CurrentRequest(home, [schema], up_to) for home in homes]):
        if not isinstance(result, CurrentResult) or result.because:
            raise RuntimeError(f"not applied by a task: {result}")


def _merges(session: SparkSession, homes: list[Oracle], schema: TableSchema, up_to: int) -> None:
    for home in homes:
        log = load_log(home.current)
        if log is None:
            current.apply(session, home, [schema], up_to=up_to, vectors="true")
            continue
        app_id = current.progress_id(log.table_id, schema)
        merge(session, home, [schema], log, app_id=app_id, up_to=up_to, because="the benchmark compares it")


def _sum(uri: str) -> tuple[object, ...]:
    text = "SELECT count(*), count(distinct _key), sum(id), sum(number1), sum(char_length(text1)), max(_pos) FROM t"
    return tuple(column[0].as_py() for batch in query(uri, text) for column in batch.columns)


def _timed(action: Callable[[], None]) -> float:
    before = tree_cpu(os.getpid())
    action()
    time.sleep(0.2)  # Workers and the JVM account for their time with a delay.
    return tree_cpu(os.getpid()) - before
