"""The lake's side of the storm: the connector's own code on real Delta tables, its tasks run in this process.

Current tables are left out, because only Spark merges: a change log that folds to the source's rows is the proof here.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mssql_cdc.capture.database import Database
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.schema import TableId
from mssql_cdc.spark.tasks import TaskResult
from mssql_cdc_tests.storm.source import StormSource

STEPS = (
    "mssql_cdc.capture.range.commit",
    "mssql_cdc.capture.range.append_offsets",
    "mssql_cdc.capture.snapshot.read.commit",
    "mssql_cdc.capture.snapshot.begin.append_offsets",
    "mssql_cdc.capture.snapshot.finish.append_offsets",
)
"""The writes between which a run may end."""


class Killed(BaseException):
    """The process ends here."""


def open_lake(source: StormSource, folder: Path, **properties: str) -> Database:
    """The database of a connector over the model; a session of Spark is asked for and never used."""
    connector = connector_from_mapping(
        "storm",
        {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": "127.0.0.1",
            "database.user": "sa",
            "database.password": "x",
            "database.names": "shop",
            "topic.prefix": "server1",
            "delta.warehouse": str(folder),
            **properties,
        },
    )
    session: Any = None
    return Database.of(connector, "shop", spark=lambda: session, source=source)


def run_here(_session: object, tasks: Sequence[Any], function: Callable[[Any], Mapping[str, Any]]) -> list[TaskResult]:
    """`spark.tasks.run_tasks` without Spark: each task's value, or its classified error."""
    found: list[TaskResult] = []
    for task in tasks:
        try:
            found.append(TaskResult(function(task), None))
        except MssqlCdcError as error:
            found.append(TaskResult(None, error))
    return found


@contextmanager
def without_spark() -> Iterator[None]:
    """Tasks of ranges and snapshots run in this process meanwhile."""
    with (
        patch("mssql_cdc.capture.range.run_tasks", run_here),
        patch("mssql_cdc.capture.snapshot.read.run_tasks", run_here),
    ):
        yield


@contextmanager
def killed_at(target: str, call: int, *, after: bool) -> Iterator[None]:
    """The n-th call of the function ends the process, before or after it has done its work."""
    module, _, name = target.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    numbers = itertools.count(1)

    def dying(*arguments: Any, **more: Any) -> Any:
        fatal = next(numbers) == call
        if fatal and not after:
            raise Killed
        result = real(*arguments, **more)
        if fatal:
            raise Killed
        return result

    with patch(target, dying):
        yield


def rows_by_the_log(database: Database, name: str, *, keyed: bool) -> Counter[tuple[int, str]]:
    """The rows that the change log of a table amounts to, from its last snapshot on.

    With a key the newest change of a key counts. Without one every change does, which is exact because such a table is
    read under a lock; a change that removes what is not there fails.
    """
    offsets, table = load_offsets(database.layout, database.storage), TableId("shop", "dbo", name)
    snapshot, bound = _last_snapshot(offsets, table.text)
    log = change_log(database, name)
    told = [c for c in log if c["_pos"] >= bound and (c["op"] != "r" or c["_snapshot"] == snapshot)]
    if keyed:
        rows: dict[int, str] = {}
        for change in told:
            if change["before"] is not None:
                rows.pop(change["before"]["id"], None)
            if change["after"] is not None:
                rows[change["after"]["id"]] = change["after"]["name"]
        return Counter(rows.items())
    counts: Counter[tuple[int, str]] = Counter()
    for change in told:
        for image, count in ((change["before"], -1), (change["after"], 1)):
            if image is not None:
                counts[image["id"], image["name"]] += count
    assert not -counts, f"{name}: the log removes rows that it never had: {-counts}"
    return +counts


def change_log(database: Database, name: str) -> list[dict[str, Any]]:
    """The rows of a table's change log in the order of their positions."""
    table = TableId("shop", "dbo", name)
    entry = load_offsets(database.layout, database.storage).entries.get(table.text)
    return _read(database.layout.home(table, folder=entry.folder if entry else None).changes)


def _last_snapshot(offsets: Offsets, table: str) -> tuple[str | None, str]:
    """Number of the table's last finished snapshot, and the position below which nothing counts any more."""
    for row in reversed(offsets.noted):
        facts = row.facts
        if isinstance(facts, SnapshotEnded) and facts.table == table:
            if facts.sweep is None:
                return str(facts.number), ""
            return str(facts.number), snapshot_position_text(row.epoch, Lsn.parse(facts.sweep.low), number=facts.number)
    return None, ""


def _read(uri: str) -> list[dict[str, Any]]:
    try:
        found: Any = DeltaTable(uri).to_pyarrow_table()
    except TableNotFoundError:
        return []
    return sorted(found.to_pylist(), key=lambda change: change["_pos"])
