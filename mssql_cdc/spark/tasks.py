"""Runs a list of tasks as one Spark job, and actions that an interrupt ends.

Tasks call a module-level function: this module knows neither tables nor sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from mssql_cdc.errors import MssqlCdcError, TaskError, WorkerError, error_named, placed
from mssql_cdc.spark import remote
from mssql_cdc.spark.job_errors import cause_of, ended_by_task, is_of_spark
from mssql_cdc.spark.session import cancel_jobs, parallelism

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
_WAIT_SECONDS = 0.2
_MOST_TOGETHER = 4
_PARTITIONS_PER_CORE = 4
_RESULT = "task long, value string, error string, message string"


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of one task: its value, or its classified error."""

    value: Mapping[str, Any] | None
    error: MssqlCdcError | None

    def unwrap(self) -> Mapping[str, Any]:
        """Return the value, or raise the task's error."""
        if self.error is not None:
            raise self.error
        return self.value or {}


def run_tasks(
    session: SparkSession,
    tasks: Sequence[T],
    function: Callable[[T], Mapping[str, Any]],
    *,
    most: int | None = None,
    owners: Sequence[Hashable] | None = None,
) -> list[TaskResult]:
    """Run `function` on every task, as one job, and return the results in the order of the tasks.

    A partition costs Spark about 60 ms of two cores, as much as reading a hundred rows of a table (50 empty tasks took
    3.0 s in 50 partitions), so small tasks share a few; neighbors, which often belong to one large table, do not.

    A task never fails the job: an exception is returned as its result, so that one broken table cannot fail the
    range. `function` and tasks must be picklable and contain no secrets; its result must be JSON-serializable. A task
    may run more than once (retries, speculation); only what it returns counts.

    What no task can report, such as that its worker was killed, fails the job, which shows neither whose task it was
    nor what the others have done. With `owners`, each owner's tasks then run in a job of their own.

    Args:
        session: where to run.
        tasks: what `function` is called with.
        function: the work of one task.
        most: how many tasks may run at the same time; None: as many as Spark has cores.
        owners: the owner of each task, such as its table.

    Raises:
        WorkerError: one of the tasks brought down the job, and there are no owners.
        TaskError: the job itself failed or was canceled.
        SourceUnavailableError: the Spark Connect server does not answer.
    """
    if not tasks:
        return []
    try:
        return _job(session, tasks, function, most)
    except WorkerError as error:
        if owners is None:
            raise
        if len(tasks) == 1:
            return [_own(error)]
    return _apart(session, tasks, function, owners)


def _apart(
    session: SparkSession, tasks: Sequence[T], function: Callable[[T], Mapping[str, Any]], owners: Sequence[Hashable]
) -> list[TaskResult]:
    """Run each owner's tasks in a job of its own, one after another: tasks that need much memory may have it alone."""
    results: dict[int, TaskResult] = {}
    for owner in dict.fromkeys(owners):
        places = [place for place, one in enumerate(owners) if one == owner]
        try:
            found = _job(session, [tasks[place] for place in places], function, 1)
        except WorkerError as error:
            found = [_own(error)] * len(places)
        results |= zip(places, found, strict=True)
    return [results[place] for place in range(len(tasks))]


def _own(error: WorkerError) -> TaskResult:
    advice = "a worker that was killed may need more memory than was left"
    return TaskResult(None, WorkerError(f"{error}. All of its tasks were this table's; {advice}"))


def _job(
    session: SparkSession, tasks: Sequence[T], function: Callable[[T], Mapping[str, Any]], most: int | None
) -> list[TaskResult]:
    listed = list(tasks)
    slots = partitions(len(listed), parallelism(session), most)
    order = sorted(range(len(listed)), key=lambda number: (number % slots, number))

    def run_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            places: list[int] = batch.column(0).to_pylist()
            numbers = [order[place] for place in places]
            rows = [_row(number, listed[number], function) for number in numbers]
            yield pa.RecordBatch.from_pylist(rows, schema=_arrow_result())

    try:
        frame = session.range(0, len(listed), 1, slots).mapInArrow(run_partition, _RESULT)
        rows = interruptible(session, frame.collect)
    except MssqlCdcError:
        raise
    except Exception as error:
        if remote.is_remote(session) and not remote.answers(session):
            raise remote.gone(error) from error
        kind = WorkerError if ended_by_task(error) else TaskError
        raise kind(f"The Spark job over {len(listed)} tasks failed: {described(error)}") from error
    by_number = {row["task"]: row for row in rows}
    return [_result(by_number[number].asDict()) for number in range(len(listed))]


def run_here(
    tasks: Sequence[T], function: Callable[[T], Mapping[str, Any]], *, most: int | None = None
) -> list[TaskResult]:
    """Run `function` on every task in threads of this process: a Spark job costs more than small tasks.

    Args:
        tasks: what `function` is called with.
        function: the work of one task; the same rules apply as in `run_tasks`.
        most: how many tasks may run at the same time.
    """

    def run(numbered: tuple[int, T]) -> TaskResult:
        return _result(_row(*numbered, function))

    return in_threads([partial(run, numbered) for numbered in enumerate(tasks)], most=most)


def in_threads(actions: Sequence[Callable[[], R]], *, most: int | None = None) -> list[R]:
    """Run actions that mostly wait, for a server or a disk, and return their results in order.

    The first exception propagates when all actions are done. An interrupt does not wait for those that have started.

    Args:
        actions: what to run.
        most: how many of them may run at the same time.
    """
    if len(actions) <= 1 or most == 1:
        return [action() for action in actions]
    threads = min(len(actions), _MOST_TOGETHER, most or _MOST_TOGETHER)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="little-work")
    waiting = [pool.submit(action) for action in actions]
    try:
        while wait(waiting, timeout=_WAIT_SECONDS).not_done:
            pass
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.result() for future in waiting]


def partitions(tasks: int, cores: int, most: int | None) -> int:
    """How many partitions a job has.

    Args:
        tasks: how many tasks it has.
        cores: how many cores the session has.
        most: how many tasks may run at a time; a partition runs its tasks one after another, so this bounds both.
    """
    return min(tasks, _PARTITIONS_PER_CORE * cores, most or tasks)


def interruptible(session: SparkSession, action: Callable[[], R]) -> R:
    """Run a Spark action in a separate thread, so that an interrupt of the main thread cancels its jobs.

    A call into the JVM does not handle Python signals; waiting in slices does, including Dagster's interrupts.
    """
    outcome: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            if remote.is_remote(session):
                remote.mark(session)
            outcome.append((True, action()))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            outcome.append((False, error))

    thread = _thread(session, work)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_WAIT_SECONDS)
    except BaseException:
        cancel_jobs(session)
        thread.join(10 * _WAIT_SECONDS)
        raise
    done, value = outcome[0]
    if not done:
        raise value
    return value


def _thread(session: SparkSession, work: Callable[[], None]) -> Thread:
    if remote.is_remote(session):
        return Thread(target=work, daemon=True)
    from pyspark import InheritableThread

    return InheritableThread(target=work, daemon=True)


@contextmanager
def own_error(session: SparkSession, work: str) -> Generator[None]:
    """Turn any other exception from Spark's work on one table into an error of that table.

    Args:
        session: where the work is done.
        work: what is done, for the message.

    Raises:
        TaskError: the work failed with an unclassified exception.
        SourceUnavailableError: the Spark Connect server does not answer.
    """
    try:
        yield
    except MssqlCdcError:
        raise
    except Exception as error:
        if remote.is_remote(session) and not remote.answers(session):
            raise remote.gone(error) from error
        raise TaskError(f"{work} failed: {described(error)}") from error


def side_by_side(session: SparkSession, actions: Sequence[Callable[[], R]]) -> list[R | MssqlCdcError]:
    """Run actions that mostly wait for the JVM concurrently; return their results or errors in order.

    A commit of Delta's Spark writer needs 0.5-2 s of planning on one core, so cores beyond the second would idle. One
    commit already keeps two cores busy: twenty tables took 57.6 s sequentially and 58.5 s concurrently. Any other
    exception is a bug and propagates.
    """

    def attempt(action: Callable[[], R]) -> R | MssqlCdcError:
        try:
            return action()
        except MssqlCdcError as error:
            return error

    most = min(len(actions), parallelism(session), _MOST_TOGETHER)
    if most <= 1:
        return [attempt(action) for action in actions]

    pool = ThreadPoolExecutor(most, thread_name_prefix="spark-action")
    waiting = [pool.submit(attempt, action) for action in actions]
    try:
        while wait(waiting, timeout=_WAIT_SECONDS).not_done:
            pass
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)  # First, or a waiting action takes the canceled one's place.
        cancel_jobs(session)
        raise
    pool.shutdown()
    return [future.result() for future in waiting]


def _row(number: int, task: T, function: Callable[[T], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"task": number, "value": json.dumps(function(task)), "error": None, "message": None}
    except MssqlCdcError as error:
        return {"task": number, "value": None, "error": type(error).__name__, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - a task's failure is its result
        return {"task": number, "value": None, "error": TaskError.__name__, "message": described(error)}


def described(error: BaseException) -> str:
    """Format type, message and the innermost location, without local values, which might be secrets.

    Errors of conversions and lookups quote the failing value, which may belong to a row, so their message is omitted;
    of Spark's errors, only what cannot be such a value is reported.
    """
    found = placed(error)
    if isinstance(error, ValueError | LookupError) or type(error).__module__.startswith("pyarrow"):
        return found
    name, _, place = found.partition(" ")
    text = cause_of(error) if is_of_spark(error) else str(error).strip().split("\n")[0]
    return f"{name}: {text[:500]} {place}".rstrip()


def _arrow_result() -> pa.Schema:
    import pyarrow as pa

    texts = [pa.field(name, pa.string()) for name in ("value", "error", "message")]
    return pa.schema([pa.field("task", pa.int64()), *texts])


def _result(row: Mapping[str, Any]) -> TaskResult:
    if row["error"] is not None:
        return TaskResult(None, error_named(row["error"], row["message"]))
    return TaskResult(json.loads(row["value"]), None)
