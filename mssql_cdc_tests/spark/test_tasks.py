"""Task lists as one Spark job, interrupts, sessions."""

from __future__ import annotations

import _thread
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mssql_cdc.errors import ConfigurationError, SourceUnavailableError, TaskError
from mssql_cdc.run.worker_daemon import MODULES
from mssql_cdc.spark.session import (
    STATIC,
    SparkSettings,
    private_session,
    session_confs,
    start_session,
    verify_session,
)
from mssql_cdc.spark.tasks import interruptible, run_tasks, side_by_side

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
