"""A JVM that the kernel kills for its memory, in a process of its own: the run goes on with another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from mssql_cdc.errors import TaskError
from mssql_cdc.spark.lazy import LazySpark
from mssql_cdc.spark.session import SparkSettings, parallelism, start_session
from mssql_cdc.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def doubled(task: int) -> dict[str, Any]:
    return {"value": 2 * task}


def kill_the_jvm() -> None:
    """As the kernel does: nothing of it is left when this returns."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    os.kill(gateway.proc.pid, signal.SIGKILL)
    gateway.proc.wait(60)


def job(session: SparkSession) -> list[Any]:
    return [dict(result.unwrap()) for result in run_tasks(session, [1, 2], doubled)]


def is_trouble_of_the_work(action: Callable[[], object]) -> None:
    try:
        action()
    except TaskError:
        return
    raise AssertionError("a JVM that is gone was no error")


def go_on() -> None:
    """What `mssql-cdc run` does with its session, with two JVMs that are killed."""
    starts = list[int]()

    def start() -> SparkSession:
        starts.append(1)
        return start_session(SparkSettings.from_environment(confs={"spark.master": "local[1]"}))

    spark = LazySpark(start)
    first = spark()
    assert job(first) == [{"value": 2}, {"value": 4}]
    kill_the_jvm()
    is_trouble_of_the_work(lambda: job(first))
    is_trouble_of_the_work(lambda: parallelism(first))
    assert spark.running is None
    second = spark()
    assert spark() is second
    assert job(second) == [{"value": 2}, {"value": 4}]
    assert len(starts) == 2
    kill_the_jvm()
    spark.stop()  # It raises nothing.
    assert LazySpark(start).running is None, "the next user adopted the session of a JVM that is gone"


@pytest.mark.long
def test_a_jvm_that_was_killed_is_replaced_and_holds_no_end_up():
    code = "from mssql_cdc_tests.spark.test_killed_jvm import go_on; go_on(); print('went on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "went on" in done.stdout, done.stderr
