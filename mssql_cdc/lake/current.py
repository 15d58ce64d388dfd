"""Current tables: kept equal to the source by applying the change log section by section (correctness D).

One Spark job folds the sections of all tables that are due (a little work needs no job), one commit each makes them
count. What only Spark can write goes to `lake/merge.py`. Progress is the txn version of the current table itself, in
`_batch` numbers of the change log. The callers decide when a table may be updated (complete cut, no open snapshot).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from mssql_cdc.errors import MssqlCdcError, OvertakenError, SchemaError, StorageError
from mssql_cdc.lake.apply_task import MOST_BYTES, MOST_ROWS, Applied, ApplyTask, apply_task
from mssql_cdc.lake.current_structure import change_structure, structure_change
from mssql_cdc.lake.current_table import Vectors, new_table, with_features
from mssql_cdc.lake.files import DataFile, FileTarget
from mssql_cdc.lake.fold import same_key
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.properties import OWNER, STATS, STRUCTURE
from mssql_cdc.lake.read import BatchSlice, Window, window, written_window
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_commit import Change, commit, create, current_log
from mssql_cdc.lake.table_log import VECTORS, TableLog
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import parallelism
from mssql_cdc.spark.tasks import run_here, run_tasks, side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 2
_MOST_APPENDS = 64
_LITTLE = 4 * 1024 * 1024
"""With so many bytes to read, tables are applied in this process: for fifty of them a Spark job costs twice as much."""


@dataclass(frozen=True, slots=True)
class CurrentResult:
    """The current table's Delta version and the `_batch` that it has reached.

    `rows` is the number of folded change-log rows; 0 means that there was nothing new to apply. `because` says why
    Spark had to merge them; None: they were applied by a task.
    """

    delta_version: int
    batch: int
    rows: int
    because: str | None = None


@dataclass(frozen=True, slots=True)
class CurrentRequest:
    """One table to bring forward.

    `versions` are all versions of the table from `_schema_history`, oldest first; `up_to` is the largest `_batch` of
    its change log to apply (the number at the last complete cut).
    """

    home: TableHome
    versions: Sequence[TableSchema]
    up_to: int
    vectors: Vectors = "auto"


@dataclass(slots=True)
class CurrentLogs:
    """What was last seen of the current tables' logs, and what this process has appended to the change logs since.

    So only what is new has to be read.
    """

    _known: dict[str, TableLog] = field(default_factory=dict[str, TableLog])
    _appended: dict[str, list[_Append]] = field(default_factory=dict[str, list["_Append"]])

    def newest(self, uri: str, storage: Storage) -> TableLog | None:
        """The newest version of a table; None when there is none."""
        found = current_log(uri, self._known.get(uri), storage)
        if found is not None:
            self.keep(found)
        return found

    def keep(self, log: TableLog) -> None:
        """Remember a version."""
        self._known[log.uri] = log

    def appended(self, state: TableState, files: Sequence[DataFile]) -> None:
        """Remember the files of a change log's newest commit.

        Args:
            state: The state after the commit.
            files: What it added.
        """
        known = self._appended.setdefault(state.uri, [])
        if known and known[-1].batch != state.batch - 1:
            known.clear()
        known.append(_Append(state.batch, tuple(files), state.schema_json))
        del known[:-_MOST_APPENDS]

    def section(self, uri: str, batches: BatchSlice, storage: Storage) -> Window:
        """The section of a change log, from memory if this process has appended all of it.

        Args:
            uri: The folder of the change log.
            batches: The section.
            storage: How to reach the folder.
        """
        known = self._appended.get(uri, [])
        if not known or known[0].batch > batches.after + 1 or known[-1].batch < batches.up_to:
            return window(uri, batches, storage)
        inside = [one for one in known if batches.after < one.batch <= batches.up_to]
        files = [file for one in inside for file in one.files]
        return written_window(uri, known[-1].schema_json, batches, files, storage)

    def forget(self, uri: str) -> None:
        """Forget what was appended to a change log: its files may have been compacted and removed since."""
        self._appended.pop(uri, None)


@dataclass(frozen=True, slots=True)
class _Append:
    batch: int
    files: tuple[DataFile, ...]
    schema_json: str


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table whose section is to be applied by a task; `log` is None for a table that does not exist yet."""

    request: CurrentRequest
    task: ApplyTask
    log: TableLog | None
    protocol: dict[str, Any] | None
    metadata: dict[str, Any] | None
    replaces: bool

    @property
    def table_id(self) -> str:
        return self.metadata["id"] if self.metadata else self.log.table_id if self.log else ""

    @property
    def work(self) -> int:
        return self.task.window.size + sum(file.size for file in self.task.live) // 8


@dataclass(frozen=True, slots=True)
class Handed:
    """A table that only Spark can write, and the reason."""

    request: CurrentRequest
    because: str


class CurrentTables:
    """Brings current tables forward; keeps their logs between calls.

    Args:
        session: starts or returns Spark.
        storage: how to reach the folders.
        logs: what is known of the tables.
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

        Creates tables, and gives them new columns and wider types. When the key's definition has changed a table is
        replaced, in one commit, by what was written under the new definition. That must hold a whole snapshot (rule
        B15).

        FencedError: another run applied the same rows; its result is valid. SchemaError: the table has no key, or
        cannot take the newest structure.
        """
        found = self.apply_without_merge(requests)
        handed = {number: one for number, one in enumerate(found) if isinstance(one, Handed)}
        actions = [partial(self.merge, one) for one in handed.values()]
        merged = dict(zip(handed, side_by_side(self._session(), actions), strict=True)) if handed else {}
        return [merged[number] if isinstance(one, Handed) else one for number, one in enumerate(found)]

    def apply_without_merge(self, requests: Sequence[CurrentRequest]) -> list[CurrentResult | Handed | MssqlCdcError]:
        """The same, but leave the tables that only Spark can write to the caller (`merge`)."""
        done: dict[int, CurrentResult | Handed | MssqlCdcError] = {}
        left: list[int] = list(range(len(requests)))
        for attempt in range(_ATTEMPTS):
            planned: dict[int, _Planned] = {}
            for number in left:
                match self._try(partial(self._plan, requests[number])):
                    case _Planned() as plan:
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
        self, action: Callable[[], _Planned | Handed | CurrentResult]
    ) -> _Planned | Handed | CurrentResult | MssqlCdcError:
        try:
            return action()
        except MssqlCdcError as error:
            return error

    def _plan(self, request: CurrentRequest) -> _Planned | Handed | CurrentResult:
        home, newest = request.home, request.versions[-1]
        if not newest.key_columns:
            raise SchemaError(f"{newest.table_id} has no key: it has a change log and no current table")
        log = self._newest(home)
        if log is None:
            return self._plan_new(request)
        wanted = structure_change(log, request.versions)
        if wanted:
            change_structure(self._session(), home, newest, wanted, self._storage)
            log = self._newest(home) or log
        applied = applied_batch(log, newest)
        if applied >= request.up_to:
            return CurrentResult(log.version, applied, 0)
        because = log.writable()
        if because:
            return Handed(request, because)
        section = self._logs.section(home.changes, BatchSlice(applied, request.up_to), self._storage)
        replaces = not applied and bool(log.files)
        if not section.paths and not replaces:
            return CurrentResult(log.version, applied, 0)
        if section.most_rows > MOST_ROWS or section.size > MOST_BYTES:
            return Handed(request, f"{section.most_rows} rows at once")
        target = _target(home, log.schema_json, log.properties, self._storage)
        vectors = True if log.has_vectors else False if request.vectors == "false" else None
        live = () if replaces else tuple(log.files.values())
        task = ApplyTask(section, target, tuple(same_key(request.versions)), live, vectors)
        metadata = None
        if log.properties.get(STRUCTURE) != str(newest.version):
            configuration = {**log.properties, STRUCTURE: str(newest.version)}
            metadata = {**log.metadata, "configuration": configuration}
        return _Planned(request, task, log, None, metadata, replaces)

    def _plan_new(self, request: CurrentRequest) -> _Planned | Handed:
        home, newest = request.home, request.versions[-1]
        protocol, metadata = new_table(home, newest, request.vectors)
        section = self._logs.section(home.changes, BatchSlice(0, request.up_to), self._storage)
        if section.most_rows > MOST_ROWS or section.size > MOST_BYTES:
            change = Change("CREATE TABLE", protocol=protocol, metadata=metadata)
            facts = self._facts(request, 0)
            self._logs.keep(create(home.current, change, facts=facts, storage=self._storage))
            return Handed(request, f"{section.most_rows} rows at once")
        target = _target(home, metadata["schemaString"], metadata["configuration"], self._storage)
        task = ApplyTask(section, target, tuple(same_key(request.versions)))
        return _Planned(request, task, None, protocol, metadata, replaces=False)

    def _apply(self, planned: dict[int, _Planned]) -> dict[int, CurrentResult | MssqlCdcError | Handed]:
        if not planned:
            return {}
        order = sorted(planned, key=lambda number: -planned[number].work)
        tasks = [planned[number].task for number in order]
        if sum(plan.work for plan in planned.values()) <= _LITTLE:
            found = run_here(tasks, apply_task)
        else:
            session = self._session()
            # A partition costs Spark more than a small table.
            found = run_tasks(session, tasks, apply_task, most=parallelism(session))
        outcomes: dict[int, CurrentResult | MssqlCdcError | Handed] = {}
        for number, result in zip(order, found, strict=True):
            plan = planned[number]
            if result.error is not None:
                self._logs.forget(plan.request.home.changes)
                outcomes[number] = result.error
                continue
            applied = Applied.from_value(result.unwrap())
            if applied.too_large:
                outcomes[number] = Handed(plan.request, applied.too_large)
                continue
            try:
                outcomes[number] = self._commit(plan, applied)
            except MssqlCdcError as error:
                outcomes[number] = error
        return outcomes

    def _commit(self, plan: _Planned, applied: Applied) -> CurrentResult:
        request, log = plan.request, plan.log
        app_id = progress_id(plan.table_id, request.versions[-1])
        facts = self._facts(request, applied.rows)
        uri, up_to = request.home.current, request.up_to
        if log is None:
            change = Change("CREATE TABLE AS SELECT", applied.adds, protocol=plan.protocol, metadata=plan.metadata)
            made = create(uri, change, app_id=app_id, batch=up_to, facts=facts, storage=self._storage)
            self._logs.keep(made)
            return CurrentResult(made.version, up_to, applied.rows)
        if not applied.rows and not plan.replaces:
            return CurrentResult(log.version, log.txn(app_id), 0)
        protocol, metadata = None, plan.metadata
        if applied.vectors and not log.has_vectors:
            metadata = metadata or dict(log.metadata)
            metadata["configuration"] = {**(metadata["configuration"] or {}), VECTORS: "true"}
            protocol = with_features(log.protocol, ["deletionVectors"])
        removed = list(log.files.values()) if plan.replaces else [log.files[identity] for identity in applied.removed]
        change = Change(
            "WRITE" if plan.replaces else "MERGE",
            applied.adds,
            removed,
            protocol,
            metadata,
            {"mode": "Overwrite"} if plan.replaces else {},
            only=plan.replaces,
        )
        made = commit(log, change, app_id=app_id, batch=up_to, facts=facts)
        self._logs.keep(made)
        return CurrentResult(made.version, up_to, applied.rows)

    def merge(self, handed: Handed) -> CurrentResult:
        """Merge a table with Spark."""
        request = handed.request
        newest, log = request.versions[-1], self._newest(request.home)
        if log is None:
            raise StorageError(f"The Delta table {request.home.current} is gone")
        app_id = progress_id(log.table_id, newest)
        result = merge(
            self._session(),
            request.home,
            request.versions,
            log,
            app_id=app_id,
            up_to=request.up_to,
            because=handed.because,
            run_id=self._run_id,
            storage=self._storage,
        )
        return CurrentResult(result.delta_version, request.up_to, result.rows, handed.because)

    def _newest(self, home: TableHome) -> TableLog | None:
        log = self._logs.newest(home.current, self._storage)
        owner = f"{home.app_id}:current"
        if log is not None and log.properties.get(OWNER) != owner:
            raise StorageError(
                f"The Delta table {home.current} belongs to {log.properties.get(OWNER) or 'no connector'}, not to "
                f"{owner}; give this connector another topic.prefix or delta.warehouse, or move the table away"
            )
        return log

    def _facts(self, request: CurrentRequest, rows: int) -> dict[str, Any]:
        app_id = f"{request.home.app_id}:current"
        return {"v": 1, "app_id": app_id, "batch": request.up_to, "rows": rows, "run_id": self._run_id}


def apply(
    session: SparkSession,
    home: TableHome,
    versions: Sequence[TableSchema],
    *,
    up_to: int,
    run_id: str = "",
    vectors: Vectors = "auto",
    storage: Storage = LOCAL,
) -> CurrentResult:
    """Bring one current table forward (`CurrentTables.apply_all`).

    Args:
        session: any session of the application.
        home: the table's folders and owner.
        versions: all versions of the table from `_schema_history`, oldest first.
        up_to: the largest `_batch` to apply.
        run_id: goes into the commit's userMetadata.
        vectors: whether the table may, must or must not have deletion vectors.
        storage: how to reach the folder.

    Raises:
        FencedError: another run applied the same rows at the same time; its result is valid.
        SchemaError: the table has no key, or cannot take the newest structure.
    """
    tables = CurrentTables(lambda: session, storage=storage, run_id=run_id)
    (result,) = tables.apply_all([CurrentRequest(home, versions, up_to, vectors)])
    if isinstance(result, MssqlCdcError):
        raise result
    return result


def applied_batch(log: TableLog, newest: TableSchema) -> int:
    """The `_batch` that a current table has reached; it begins anew with another key."""
    return log.txn(progress_id(log.table_id, newest))


def progress(table: DeltaTable, newest: TableSchema) -> int:
    """Return the `_batch` that an open current table has reached; it begins anew with another key."""
    return table.transaction_version(progress_id(table.metadata().id, newest)) or 0


def progress_id(table_id: object, newest: TableSchema) -> str:
    """The name of a current table's progress among its txns."""
    return f"{table_id}:{newest.key_id}"


def _target(home: TableHome, schema_json: str, properties: Any, storage: Storage) -> FileTarget:
    columns = tuple(name.strip(" `") for name in properties.get(STATS, "").split(",") if name)
    return FileTarget(home.current, schema_json, columns, storage)
