"""Sessions start with the archive of Java classes that `mssql-cdc prepare` has written (`make setup` runs it)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mssql_cdc.spark.jars import found_archive, jar_files
from mssql_cdc.spark.session import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc shows which files a JVM has mapped"),
]

LASTING = """
from pathlib import Path
from pyspark import SparkContext
from mssql_cdc.spark.session import SparkSettings, start_session
session = start_session(SparkSettings.from_environment(short_lived=False), quiet=True)
print(Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text())
session.stop()
"""


def archive() -> str:
    found = found_archive(jar_files(SparkSettings.from_environment().jars))
    assert found is not None, "`make setup` writes it"
    return str(found)


def test_a_short_session_uses_the_archive(spark: SparkSession):
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    assert archive() in Path(f"/proc/{gateway.proc.pid}/maps").read_text()


def test_a_long_session_uses_the_same_archive():
    done = subprocess.run([sys.executable, "-c", LASTING], capture_output=True, text=True, check=True)
    assert archive() in done.stdout
