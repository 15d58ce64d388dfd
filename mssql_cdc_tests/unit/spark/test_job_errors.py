"""What is told of Spark's errors, as local sessions, clusters and servers word them."""

from __future__ import annotations

import pytest

from mssql_cdc.spark.job_errors import MORE, cause_of

CALLED = "An error occurred while calling o123.collectToPython.\n: org.apache.spark.SparkException: "
LOST = "Job aborted due to stage failure: Task 1 in stage 3.0 failed 4 times, most recent failure: Lost task 1.3 in "
EXECUTOR = "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: "
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider\n\tat a.B\n"
CAST = "org.apache.spark.SparkRuntimeException: [CAST_INVALID_INPUT] The value 'Ann\n[IN_A_ROW] ' of the type"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{CALLED}{LOST}{CRASHED}Caused by: java.io.EOFException\n", "Python worker exited unexpectedly (crashed)"),
        (f"{LOST}{EXECUTOR}Container from a bad node. Exit status: 137.", "ExecutorLostFailure; Exit status: 137"),
        (f"{CALLED}{LOST}{EXECUTOR}Command exited with code 137", "ExecutorLostFailure; exited with code 137"),
        (f"{CALLED}[SPARK_JOB_CANCELLED] Job 2 cancelled as part of it", "SPARK_JOB_CANCELLED"),
        ("(org.apache.spark.SparkSQLException) [OPERATION_CANCELED] Operation has been", "OPERATION_CANCELED"),
        (f"{CALLED}Ann\nCaused by: java.io.IOException: No space left on device\n", "No space left on device"),
        (f"{LOST}{CAST}", "CAST_INVALID_INPUT"),
        ("An error occurred while calling o1.x.\n: java.lang.IllegalStateException: Ann\n", "IllegalStateException"),
    ],
)
def test_the_cause_of_a_failed_job_is_told_without_values(text: str, told: str) -> None:
    assert cause_of(Exception(text)) == f"{told}; {MORE}"


def test_a_cause_that_cannot_be_told_names_the_log() -> None:
    assert cause_of(Exception("Ann")) == MORE
