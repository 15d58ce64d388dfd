"""Spark's JDBC source and sink over mssql-jdbc."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mssql_sandbox.server import SandboxServer
from tests.clients.jars import VERSIONS, jdbc_jar

_SANDBOX = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_writes_and_reads(sandbox: SandboxServer) -> None:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark cannot be tried")
    program = [sys.executable, "-m", "tests.clients.spark_program"]
    arguments = [str(sandbox.port), sandbox.password, str(jdbc_jar(VERSIONS[0]))]
    done = subprocess.run([*program, *arguments], cwd=_SANDBOX, capture_output=True, text=True, timeout=280)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-4000:]
    assert json.loads(answers[0].removeprefix("ANSWER ")) == {
        "schema": [
            ["id", "int"], ["words", "string"], ["amount", "decimal(12,2)"], ["flag", "boolean"], ["ratio", "double"],
            ["day", "date"], ["at", "timestamp"], ["raw", "binary"],
        ],
        "same": True,
        "partitions": [4, 200, 19900],
        "filtered": list(range(10, 20)),
        "grouped": [[False, 199], [True, 198]],
        "query": [[0, "text \u4e2d 0"], [2, "text \u4e2d 2"], [4, "text \u4e2d 4"]],
        "by cursor": 200,
        "appended": 205,
        "bulk": 200,
        "truncated": 2,
    }  # fmt: skip
