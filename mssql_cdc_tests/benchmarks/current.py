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
import pyarrow.compute as pc

from mssql_cdc.lake import current
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_table import new_table
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import Layout, TableHome
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.read import query
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lake.table_commit import Change, create
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.schema import TableId, TableSchema, change_log_schema
from mssql_cdc.spark.session import SparkSettings, start_session
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, tree_cpu
from mssql_cdc_tests.lake_kit import AT, change_log, column, lsn, orders, position_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


class Oracle(TableHome):
    """The same change log with another current table."""

    @property
    def current(self) -> str:
        """URI of the table that MERGE keeps."""
        return f"{self.folder}/merged"


def folds(bench: Bench) -> Iterator[Figure]:
    """Compare both ways."""
    session = start_session(SparkSettings.from_environment(short_lived=False))
    for number, case in enumerate(Case(*one) for one in bench.sizes.folds):
        ours, merged, same = _compare(session, bench.folder / str(number), case, bench.sizes.repeat)
        yield Figure(f"{case.text}: MERGE, CPU of a round", merged, "s")
        yield Figure(f"{case.text}: tasks, CPU of a round", ours, "s")
        yield Figure(f"{case.text}: MERGE against tasks", merged / ours, "x", at_least=5)
        yield Figure(f"{case.text}: tables that differ", 0 if same else 1, "", at_most=0)


def large(bench: Bench) -> Iterator[Figure]:
    """Fill one large table and update it: CPU, and what is stored beside the rows."""
    folder, rows = bench.folder, bench.sizes.large
    session = start_session(SparkSettings.from_environment(short_lived=False))
    random, schema, logs = np.random.default_rng(1), _columns(), CurrentLogs()
    home = _home(folder, 0)
    oracle = Oracle(home.folder, home.app_id)
    state = change_log(home, schema)
    for start in range(0, rows, _PART_ROWS):
        state = _append(state, schema, np.arange(start, min(rows, start + _PART_ROWS)), at=1, op="c")
    some = min(rows, _PART_ROWS)
    merged = _timed(lambda: _fill_by_spark(session, oracle, schema))
    filled = _timed(lambda: _tasks(session, [home], schema, state.batch, logs))
    name = f"1 x {rows:,} rows"
    yield Figure(f"{name}: first rows, CPU per million", filled / rows * 1e6, "s")
    yield Figure(f"{some:,} rows by Spark: first rows, CPU per million", merged / some * 1e6, "s")
    yield Figure("first rows: Spark against tasks, CPU of a row", merged / some / (filled / rows), "x", at_least=2)
    for number, case in enumerate(_LARGE_CASES):
        spent: list[float] = []
        for round_ in range(1 + bench.sizes.repeat):
            count = min(case.count, rows)
            keys = random.choice(rows, count, replace=False)
            keys = keys if case.random else np.arange(rows - count, rows)
            state = _append(state, schema, keys, at=10 * number + round_ + 2, op="u")
            spent.append(_timed(lambda: _tasks(session, [home], schema, state.batch, logs)))  # noqa: B023
        if number == 0:
            yield Figure(f"{name}: first look-up, which builds the key indexes, CPU", spent[0], "s")
            yield Figure(f"{name}: key indexes, bytes a row", _bytes(home, "_index/*.idx") / rows, "B")
        yield Figure(f"{name}, {case.text}: CPU of a round", statistics.median(spent[1:]), "s")
    log = logs.newest(home.current, LOCAL)
    assert log is not None, "the table was filled"
    yield Figure(f"{name}: files in the end", len(log.files), "")
    yield Figure(f"{name}: rows by the log that are missing or doubled", abs(log.rows - rows), "", at_most=0)


@dataclass(frozen=True, slots=True)
class LargeCase:
    """So many changes in each round, of random rows or of the newest."""

    count: int
    random: bool = True

    @property
    def text(self) -> str:
        """How the report names it."""
        return f"{self.count:,} {'random' if self.random else 'recent'} changes"


_LARGE_CASES = (LargeCase(100), LargeCase(10_000), LargeCase(10_000, random=False), LargeCase(200_000))
_PART_ROWS = 1_000_000


def _fill_by_spark(session: SparkSession, home: Oracle, schema: TableSchema) -> None:
    protocol, metadata = new_table(home, schema, "auto")
    log = create(home.current, Change("CREATE TABLE", protocol=protocol, metadata=metadata), facts={})
    app_id = current.progress_id(log.table_id, schema)
    merge(session, home, [schema], log, app_id=app_id, up_to=1, because="the benchmark compares it")


def _bytes(home: TableHome, pattern: str) -> int:
    return sum(path.stat().st_size for path in Path(home.current).glob(pattern))


def _columns() -> TableSchema:
    return orders(
        column("id", "int"),
        *(column(name, "nvarchar", length=50) for name in _TEXTS),
        *(column(name, "bigint") for name in _NUMBERS),
    )


def _compare(session: SparkSession, folder: Path, case: Case, repeat: int) -> tuple[float, float, bool]:
    random = np.random.default_rng(1)
    schema = _columns()
    homes = [_home(folder, number) for number in range(case.tables)]
    states = {home.folder: change_log(home, schema) for home in homes}
    oracles = [Oracle(home.folder, home.app_id) for home in homes]
    logs, spent = CurrentLogs(), dict[str, list[float]](tasks=[], merge=[])
    for round_ in range(2 + repeat):
        for home in homes:
            whole = round_ == 0
            keys = np.arange(case.rows) if whole else random.choice(case.rows, case.changes, replace=False)
            states[home.folder] = _append(states[home.folder], schema, keys, at=round_ + 1, op="c" if whole else "u")
        up_to = states[homes[0].folder].batch
        tasks = _timed(lambda: _tasks(session, homes, schema, up_to, logs))  # noqa: B023 (called at once)
        merges = _timed(lambda: _merges(session, oracles, schema, up_to))  # noqa: B023
        if round_ > 1:  # The first rounds fill the tables and warm up.
            spent["tasks"].append(tasks)
            spent["merge"].append(merges)
    same = all(_sum(home.current) == _sum(oracle.current) for home, oracle in zip(homes, oracles, strict=True))
    return statistics.median(spent["tasks"]), statistics.median(spent["merge"]), same


def _home(folder: Path, number: int) -> TableHome:
    return Layout(str(folder), "bench", "shop").home(TableId("shop", "dbo", f"t{number}"))


def _append(state: TableState, schema: TableSchema, keys: np.ndarray, *, at: int, op: str) -> TableState:
    count, logged = len(keys), change_log_schema(schema)
    ids = pa.array(keys, pa.int32())
    numbers, mixed, tail = (
        ids.cast(pa.string()),
        pa.array(keys % 1000).cast(pa.string()),
        pa.repeat(pa.scalar(f"{at}"), count),
    )
    values = {"id": ids}
    values |= {name: _joined(" ", pa.repeat(pa.scalar(name), count), mixed, tail) for name in _TEXTS}
    values |= {name: pa.array(keys * at + number, pa.int64()) for number, name in enumerate(_NUMBERS)}
    first = position_text(0, lsn(at), 1, lsn(0), 2 if op == "c" else 4)
    parts = first.split("-")
    # Digits are hexadecimal ones, too: the texts sort as the numbers do.
    order = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), len(parts[3]), "0")
    position = _joined(
        "-", pa.repeat(pa.scalar("-".join(parts[:3])), count), order, pa.repeat(pa.scalar(parts[4]), count)
    )
    image = pa.StructArray.from_arrays(
        [values[f.name] for f in logged.field("after").type], fields=list(logged.field("after").type)
    )
    key = pa.StructArray.from_arrays([values["id"]], fields=list(logged.field("key").type))
    known = {
        "_pos": position,
        "_commit_ts": pa.repeat(pa.scalar(AT, pa.timestamp("us", "UTC")), count),
        "_batch": pa.repeat(pa.scalar(state.batch + 1, pa.int64()), count),
        "_schema": pa.repeat(pa.scalar(1, pa.int32()), count),
        "_key": _joined(":", pc.utf8_length(numbers).cast(pa.string()), numbers),
        "op": pa.repeat(pa.scalar(op), count),
        "key": key,
        "after": image,
    }
    arrays = [known.get(field.name, pa.nulls(count, field.type)) for field in logged]
    rows = pa.RecordBatch.from_arrays(arrays, schema=logged)
    return commit(state, write_files([rows], state.target), {"to": lsn(at).text})


def _joined(separator: str, *parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


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
