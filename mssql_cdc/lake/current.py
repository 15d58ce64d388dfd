"""Current tables: kept equal to the source by applying the change log section by section (correctness D).

One Spark job folds the sections of all tables that are due (little work needs no job), and one commit per table makes
the result count. What only Spark can write goes to `lake/merge.py`. Progress is the txn version of the current table
itself: a `_batch` number of the change log. The callers decide when a table may be updated (complete cut, no open
snapshot).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mssql_cdc.config.data_layout import AS_IT_COMES, DataLayout
from mssql_cdc.errors import MssqlCdcError, OvertakenError, SchemaError, StorageError
from mssql_cdc.lake.apply_task import Applied, ApplyTask, apply_task
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_plan import CurrentRequest, Handed, Planned, plan_new, plan_update, work_of
from mssql_cdc.lake.current_structure import change_structure, only_spark, structure_change
from mssql_cdc.lake.current_table import Vectors, with_features
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.progress import applied_batch, progress_id
from mssql_cdc.lake.properties import OWNER
from mssql_cdc.lake.shares import shares
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_commit import Change, commit, create
from mssql_cdc.lake.table_log import VECTORS, TableLog
from mssql_cdc.lake.table_restores import REPLACES
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import parallelism
from mssql_cdc.spark.tasks import TaskResult, own_error, run_here, run_tasks, side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 2
_LITTLE = 4 * 1024 * 1024
"""Up to this many bytes to read, tables are applied in this process: for fifty, a Spark job costs twice as much."""


@dataclass(frozen=True, slots=True)
class CurrentResult:
    """The current table's Delta version and the `_batch` that it has reached.

    `rows` is the number of folded change-log rows; 0 means that there was nothing new to apply. `because` says why
    Spark had to merge them; None: a task applied them. `restored` is the version of a user's RESTORE that this update
    undid.
    """

    delta_version: int
    batch: int
    rows: int
    because: str | None = None
    restored: int | None = None


class CurrentTables:
    """Brings current tables up to date; keeps their logs between calls.

    Args:
        session: starts or returns Spark.
        storage: how to reach the folders.
        logs: what is known about the tables' logs.
        run_id: goes into each commit's userMetadata.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        *,
        storage: Storage = LOCAL,
        logs: CurrentLogs | None = None,
        run_id: str = "",
    ) -> None:
        self._session = session
        self._storage = storage
        self._logs = logs or CurrentLogs()
        self._run_id = run_id

    def apply_all(self, requests: Sequence[CurrentRequest]) -> list[CurrentResult | MssqlCdcError]:
        """Apply the change logs to their current tables; return each table's result or error.

        Creates tables, and gives them new columns and wider types. If the key's definition has changed, a table is
        replaced, in one commit, by what was written under the new definition, which must contain a whole snapshot (rule
        B15).

        FencedError: another run applied the same rows; its result is valid. SchemaError: the table has no key, or
        cannot take the newest structure.
        """
        found = self._in_attempts(requests, quick=False)
        handed = {number: one for number, one in enumerate(found) if isinstance(one, Handed)}
        actions = [partial(self.merge, one) for one in handed.values()]
        merged = dict(zip(handed, side_by_side(self._session(), actions), strict=True)) if handed else {}
        return [merged[number] if isinstance(one, Handed) else one for number, one in enumerate(found)]

    def apply_quick(self, requests: Sequence[CurrentRequest]) -> list[CurrentResult | Handed | MssqlCdcError]:
        """Do the same, but leave slow work to the caller (`finish`).

        Slow work is what only Spark can do (a merge or a change of the structure) and rewriting all files of a table,
        unless it is small.
        """
        return self._in_attempts(requests, quick=True)

    def finish(self, handed: Handed) -> CurrentResult:
        """Do what `apply_quick` left to the caller.

        Raises:
            MssqlCdcError: the table's error.
        """
        if handed.merges:
            return self.merge(handed)
        (result,) = self.apply_all([handed.request])
        if isinstance(result, MssqlCdcError):
            raise result
        return result

    def _in_attempts(
        self, requests: Sequence[CurrentRequest], *, quick: bool
    ) -> list[CurrentResult | Handed | MssqlCdcError]:
        done: dict[int, CurrentResult | Handed | MssqlCdcError] = {}
        left: list[int] = list(range(len(requests)))
        for attempt in range(_ATTEMPTS):
            planned: dict[int, Planned] = {}
            for number in left:
                request = requests[number] if not attempt else replace(requests[number], log=None)
                match self._try(partial(self._plan, request, quick=quick)):
                    case Planned() as plan:
                        planned[number] = plan
                    case CurrentResult() | Handed() | MssqlCdcError() as result:
                        done[number] = result
            left = list[int]()
            for number, outcome in self._apply(planned).items():
                if isinstance(outcome, OvertakenError) and attempt + 1 < _ATTEMPTS:
                    left.append(number)
                else:
                    done[number] = outcome
            if not left:
                break
        return [done[number] for number in range(len(requests))]

    def _try(
        self, action: Callable[[], Planned | Handed | CurrentResult]
    ) -> Planned | Handed | CurrentResult | MssqlCdcError:
        try:
            return action()
        except MssqlCdcError as error:
            return error

    def _plan(self, request: CurrentRequest, *, quick: bool = False) -> Planned | Handed | CurrentResult:
        home, newest = request.home, request.versions[-1]
        if not newest.key_columns:
            raise SchemaError(f"{newest.table_id} has no key: it has a change log and no current table")
        log = self._newest(home) if request.log is None else _own(home, request.log)
        request = replace(request, log=None)  # Later work reads the log again.
        if log is None:
            return plan_new(request, self._logs, self._storage)
        wanted = structure_change(log, request.versions)
        because = only_spark(log, wanted) if wanted else None
        if because and quick:
            return Handed(request, because, merges=False)
        if because:
            log = self._restructured(request, log)
            wanted = structure_change(log, request.versions)
        planned = plan_update(request, log, wanted, self._logs, self._storage)
        if quick and isinstance(planned, Planned) and planned.rewriting and planned.work > _LITTLE:
            return Handed(request, planned.rewriting, merges=False)
        return planned or CurrentResult(log.version, applied_batch(log, newest), 0)

    def _apply(self, planned: dict[int, Planned]) -> dict[int, CurrentResult | MssqlCdcError | Handed]:
        if not planned:
            return {}
        work = sum(plan.work for plan in planned.values())
        cores = 1 if work <= _LITTLE else parallelism(self._session())
        outcomes: dict[int, CurrentResult | MssqlCdcError | Handed] = {}
        shared: list[tuple[int, ApplyTask]] = []
        for number, plan in planned.items():
            try:
                shared += [(number, share) for share in shares(plan.task, cores=cores)]
            except StorageError as error:
                self._logs.forget(plan.request.home.changes)
                outcomes[number] = error
        shared.sort(key=lambda one: -work_of(one[1]))
        # A Spark partition costs more than applying a small table.
        owners, tasks = [number for number, _ in shared], [share for _, share in shared]
        if work <= _LITTLE:
            results = run_here(tasks, apply_task)
        else:
            results = run_tasks(self._session(), tasks, apply_task, most=cores, owners=owners)
        found: dict[int, list[TaskResult]] = {}
        for (number, _), result in zip(shared, results, strict=True):
            found.setdefault(number, []).append(result)
        for number, parts in found.items():
            plan = planned[number]
            error = next((part.error for part in parts if part.error is not None), None)
            if error is not None:
                self._logs.forget(plan.request.home.changes)
                outcomes[number] = error
                continue
            applied = Applied.together([Applied.from_value(part.unwrap()) for part in parts])
            if applied.too_large:
                outcomes[number] = Handed(plan.request, applied.too_large)
                continue
            try:
                outcomes[number] = self._commit(plan, applied)
            except MssqlCdcError as error:
                outcomes[number] = error
        return outcomes

    def _commit(self, plan: Planned, applied: Applied) -> CurrentResult:
        request, log = plan.request, plan.log
        app_id = progress_id(plan.table_id, request.versions[-1])
        facts = self._facts(request, applied.rows)
        if plan.replaces:
            facts[REPLACES] = True
        uri, up_to = request.home.current, request.up_to
        if log is None:
            change = Change(
                "CREATE TABLE AS SELECT",
                applied.adds,
                protocol=plan.protocol,
                metadata=plan.metadata,
                domains=plan.domains,
            )
            made = create(uri, change, app_id=app_id, batch=up_to, facts=facts, storage=self._storage)
            self._logs.keep(made)
            return CurrentResult(made.version, up_to, applied.rows)
        if not applied.rows and not plan.replaces:
            # Rows with a former key are passed over; a new structure comes with rows that have it.
            made = commit(log, Change("MERGE", ()), app_id=app_id, batch=up_to, facts=facts)
            self._logs.keep(made)
            return CurrentResult(made.version, up_to, 0)
        protocol, metadata = plan.protocol, plan.metadata
        if applied.vectors and not log.has_vectors:
            metadata = metadata or dict(log.metadata)
            metadata["configuration"] = {**(metadata["configuration"] or {}), VECTORS: "true"}
            protocol = with_features(protocol or log.protocol, ["deletionVectors"])
        removed = list(log.files.values()) if plan.replaces else [log.files[identity] for identity in applied.removed]
        change = Change(
            "WRITE" if plan.replaces else "MERGE",
            applied.adds,
            removed,
            protocol,
            metadata,
            {"mode": "Overwrite"} if plan.replaces else {},
            only=plan.replaces or plan.task.rewrites,
            domains=plan.domains,
        )
        made = commit(log, change, app_id=app_id, batch=up_to, facts=facts)
        self._logs.keep(made)
        return CurrentResult(made.version, up_to, applied.rows, restored=log.restored)

    def merge(self, handed: Handed) -> CurrentResult:
        """Merge a table with Spark."""
        request = handed.request
        newest, log = request.versions[-1], self._newest(request.home)
        if log is None:
            raise StorageError(f"The Delta table {request.home.current} is gone")
        log = self._restructured(request, log)
        app_id, session = progress_id(log.table_id, newest), self._session()
        with own_error(session, f"Spark's merge into {request.home.current}"):
            result = merge(
                session,
                request.home,
                request.versions,
                log,
                app_id=app_id,
                up_to=request.up_to,
                because=handed.because,
                run_id=self._run_id,
                storage=self._storage,
            )
        return CurrentResult(result.delta_version, request.up_to, result.rows, handed.because, log.restored)

    def _restructured(self, request: CurrentRequest, log: TableLog) -> TableLog:
        """Have Spark give the table the newest structure, and return its log."""
        home, wanted = request.home, structure_change(log, request.versions)
        if not wanted:
            return log
        session = self._session()
        with own_error(session, f"The change of the structure of {home.current}"):
            change_structure(session, home, request.versions[-1], wanted, self._storage)
        return self._newest(home) or log

    def _newest(self, home: TableHome) -> TableLog | None:
        log = self._logs.newest(home.current, self._storage)
        return None if log is None else _own(home, log)

    def _facts(self, request: CurrentRequest, rows: int) -> dict[str, Any]:
        app_id = f"{request.home.app_id}:current"
        return {"v": 1, "app_id": app_id, "batch": request.up_to, "rows": rows, "run_id": self._run_id}


def _own(home: TableHome, log: TableLog) -> TableLog:
    owner = f"{home.app_id}:current"
    if log.properties.get(OWNER) != owner:
        raise StorageError(
            f"The Delta table {home.current} belongs to {log.properties.get(OWNER) or 'no connector'}, not to "
            f"{owner}; give this connector another topic.prefix or delta.warehouse, or move the table away"
        )
    return log


def apply(
    session: SparkSession,
    home: TableHome,
    versions: Sequence[TableSchema],
    *,
    up_to: int,
    run_id: str = "",
    vectors: Vectors = "auto",
    layout: DataLayout = AS_IT_COMES,
    storage: Storage = LOCAL,
) -> CurrentResult:
    """Bring one current table up to date (`CurrentTables.apply_all`).

    Args:
        session: any session of the application.
        home: the table's folders and owner.
        versions: all versions of the table from `_schema_history`, oldest first.
        up_to: the largest `_batch` to apply.
        run_id: goes into the commit's userMetadata.
        vectors: whether the table may, must or must not have deletion vectors.
        layout: how its files are laid out.
        storage: how to reach the folder.

    Raises:
        FencedError: another run applied the same rows at the same time; its result is valid.
        SchemaError: the table has no key, or cannot take the newest structure.
    """
    tables = CurrentTables(lambda: session, storage=storage, run_id=run_id)
    (result,) = tables.apply_all([CurrentRequest(home, versions, up_to, vectors, layout)])
    if isinstance(result, MssqlCdcError):
        raise result
    return result
