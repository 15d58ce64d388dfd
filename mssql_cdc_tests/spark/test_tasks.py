"""Task lists as one Spark job, interrupts, sessions."""

from __future__ import annotations

import _thread
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark import TaskContext

from mssql_cdc.errors import ConfigurationError, SourceUnavailableError, TaskError, WorkerError
from mssql_cdc.run.worker_daemon import MODULES
from mssql_cdc.spark import tasks
from mssql_cdc.spark.session import (
    STATIC,
    SparkSettings,
    cancel_jobs,
    private_session,
    session_confs,
    start_session,
    verify_session,
)
from mssql_cdc.spark.tasks import described, interruptible, own_error, run_tasks, side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def work(task: tuple[int, str]) -> dict[str, Any]:
    number, what = task
    if what == "known":
        raise SourceUnavailableError("the server did not answer")
    if what == "unknown":
        raise ZeroDivisionError("division by zero")
    return {"number": number}


def test_task_results_are_in_order_and_one_broken_task_does_not_affect_others(spark: SparkSession):
    found = run_tasks(spark, [(0, ""), (1, "known"), (2, ""), (3, "unknown")], work)
    assert found[0].unwrap() == {"number": 0}
    assert found[2].unwrap() == {"number": 2}
    assert isinstance(found[1].error, SourceUnavailableError)
    assert str(found[1].error) == "the server did not answer"
    assert isinstance(found[3].error, TaskError)
    with pytest.raises(TaskError, match="ZeroDivisionError: division by zero"):
        found[3].unwrap()


FOLD = ("mssql_cdc.lake.apply_task", "mssql_cdc.lake.arrow_fold", "pyroaring", "obstore")


def seen(_task: int) -> dict[str, Any]:
    import gc
    import sys

    return {"frozen": gc.get_freeze_count(), "missing": [name for name in (*MODULES, *FOLD) if name not in sys.modules]}


def test_workers_begin_with_what_tasks_need_imported_and_frozen(spark: SparkSession):
    for found in run_tasks(spark, [1, 2, 3, 4], seen):
        assert found.unwrap()["missing"] == []
        assert found.unwrap()["frozen"] > 10_000


def convert(task: str) -> dict[str, Any]:
    if task == "arrow":
        pa.array(["Ann's secret"]).cast(pa.int32())
    if task == "arrow type":
        pa.array(["Ann's secret"], pa.int32())
    return {"number": int(task)}


def test_tasks_that_fail_at_a_value_do_not_show_it(spark: SparkSession):
    for found in run_tasks(spark, ["arrow", "arrow type", "Ann's secret"], convert):
        said = str(found.error)
        assert "secret" not in said
        assert re.match(r"(ArrowInvalid|ValueError) at .*:\d+", said)


def test_results_of_tasks_that_share_partitions_are_in_order_each_once(spark: SparkSession):
    count = 10 * spark.sparkContext.defaultParallelism + 3
    found = run_tasks(spark, [(number, "known" if number == 7 else "") for number in range(count)], work)
    assert [one.error is None and one.unwrap()["number"] for one in found] == [n != 7 and n for n in range(count)]


class Panic(BaseException):
    """As Rust's, which is no `Exception`."""


def crash(task: str) -> dict[str, Any]:
    if task == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "panic":
        raise Panic("Ann's secret")
    return {"task": task}


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("killed", "Python worker exited unexpectedly (crashed)"),
        ("panic", "exception was thrown from the Python worker"),
    ],
)
def test_a_task_that_ends_its_job_is_the_error_of_its_owner_only(spark: SparkSession, task: str, told: str):
    found = run_tasks(spark, ["a", "b", task, "c"], crash, owners=["people", "orders", "orders", "others"])
    assert [one.error is None for one in found] == [True, False, False, True]
    assert [one.unwrap()["task"] for one in (found[0], found[3])] == ["a", "c"]
    for one in found[1:3]:
        assert isinstance(one.error, WorkerError)
        assert told in str(one.error)
        assert "secret" not in str(one.error)


def test_a_task_that_ends_its_job_without_owners_is_an_error_that_tells_the_cause(spark: SparkSession):
    with pytest.raises(WorkerError, match=r"2 tasks failed: .*: Python worker exited unexpectedly \(crashed\); "):
        run_tasks(spark, ["a", "killed"], crash)


def wait_long(_task: int) -> dict[str, Any]:
    """The second of two partitions kills its worker."""
    context = TaskContext.get()
    if context is not None and context.partitionId():
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(120)
    return {}


@pytest.mark.parametrize(("count", "jobs"), [(1, 1), (2, 2)], ids=["shared", "own"])
def test_a_job_that_is_canceled_is_not_repeated(spark: SparkSession, count: int, jobs: int):
    real, begun = tasks._job, list[int]()

    def job(session: SparkSession, listed: list[int], *more: Any) -> Any:
        begun.append(len(listed))
        if len(begun) == jobs:
            threading.Timer(5, cancel_jobs, [session]).start()
        return real(session, listed, *more)

    with patch.object(tasks, "_job", job), pytest.raises(TaskError, match="SPARK_JOB_CANCELLED") as caught:
        run_tasks(spark, list(range(count)), wait_long, owners=list(range(count)))
    assert type(caught.value) is TaskError
    assert len(begun) == jobs


def test_errors_of_spark_do_not_show_the_value_that_they_fail_at(spark: SparkSession):
    cast = "SELECT CAST(concat('Ann', id) AS INT) FROM range(2)"
    with pytest.raises(TaskError) as caught, own_error(spark, "The merge"):
        spark.sql(cast).collect()
    said = str(caught.value)
    assert re.match(r"The merge failed: NumberFormatException: CAST_INVALID_INPUT; Spark's log .* at .*:\d+$", said)
    assert "Ann" not in said
    with pytest.raises(Exception, match="nowhere") as missing:
        spark.sql("SELECT nowhere FROM range(2)").collect()
    assert "`nowhere` cannot be resolved" in described(missing.value), "no row was read"


def test_no_tasks_start_no_job(spark: SparkSession):
    assert run_tasks(spark, [], work) == []


def test_interrupt_ends_the_jobs_and_the_session_survives(spark: SparkSession):
    def never_ends(batches: Any) -> Any:
        import time

        time.sleep(120)
        yield from batches

    frame = spark.range(1).mapInArrow(never_ends, "id long")
    timer = threading.Timer(3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(spark, frame.collect)
    timer.cancel()
    assert spark.range(5).count() == 5


def test_side_by_side_actions_run_concurrently_and_one_error_does_not_affect_others(spark: SparkSession):
    meeting = threading.Barrier(2, timeout=60)

    def meet() -> int:
        meeting.wait()  # Passes only if both run at the same time.
        return spark.range(3).count()

    def fail() -> int:
        raise SourceUnavailableError("away")

    first, second, third = side_by_side(spark, [meet, meet, fail])
    assert (first, second) == (3, 3)
    assert isinstance(third, SourceUnavailableError)


def test_side_by_side_ends_with_an_interrupt(spark: SparkSession):
    def never_ends(batches: Any) -> Any:
        import time

        time.sleep(120)
        yield from batches

    actions = [spark.range(1).mapInArrow(never_ends, "id long").collect] * 3
    timer = threading.Timer(3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side(spark, actions)
    timer.cancel()
    assert spark.range(5).count() == 5


def test_private_session_unsets_its_confs_and_does_not_change_the_shared_one(spark: SparkSession):
    name = "spark.databricks.delta.write.txnAppId"
    seen = []

    def fails() -> None:
        with private_session(spark, {name: "x"}) as private:
            seen.append((private, private.conf.get(name), spark.conf.get(name, None)))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    ((private, inside, shared),) = seen
    assert (inside, shared, private.conf.get(name, None)) == ("x", None, None)


def test_foreign_session_is_verified_and_adopted(spark: SparkSession):
    verify_session(spark)
    assert start_session(SparkSettings()) is spark


def test_session_works_in_utc_with_ansi(spark: SparkSession):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_session_has_exactly_the_two_prepared_delta_jars(spark: SparkSession):
    jars = str(spark.conf.get("spark.driver.extraClassPath"))
    assert jars.count(".jar") == 2
    assert "delta-spark_4.2_2.13-4.4.0" in jars
    assert "delta-storage-4.4.0" in jars


def test_user_confs_override_the_sessions_except_those_that_delta_needs():
    confs = session_confs(SparkSettings(confs={"spark.sql.shuffle.partitions": "8", **dict.fromkeys(STATIC, "mine")}))
    assert confs["spark.sql.shuffle.partitions"] == "8"
    assert {name: confs[name] for name in STATIC} == STATIC


def test_session_master_uses_every_core_unless_a_conf_sets_it():
    assert SparkSettings.from_environment().master == "local[*]"
    named = SparkSettings.from_environment(confs={"spark.master": "spark://host:7077", "spark.executor.cores": "4"})
    assert (named.master, named.confs) == ("spark://host:7077", {"spark.executor.cores": "4"})


def test_missing_session_jars_are_named(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="MSSQL_CDC_JARS"):
        session_confs(SparkSettings(jars=str(tmp_path)))
    jar = tmp_path / "delta.jar"
    jar.write_bytes(b"")
    assert session_confs(SparkSettings(jars=str(tmp_path)))["spark.driver.extraClassPath"] == str(jar)
