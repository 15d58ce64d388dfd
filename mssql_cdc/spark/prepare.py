"""Prepares Spark once per machine, so that every later start takes half the time: Delta's jars and their classes.

`jars` finds both again. A JVM writes a class-data archive when it ends, so the archive is created in a process of its
own, never by a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.spark.jars import archive_file, jar_files, prepared_folder
from mssql_cdc.spark.session import SparkSettings, java_options, start_session
from mssql_cdc.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark import SparkContext

_DONE = "archived"


def prepare() -> Path:
    """Keep Delta's jars, and write the class-data archive, unless they exist; return the archive.

    Raises:
        ConfigurationError: Spark does not start, or its JVM does not write the archive.
    """
    settings = SparkSettings.from_environment()
    if not jar_files(settings.jars):
        _in_process("jars")
    archive = archive_file(jar_files(settings.jars))
    if not archive.exists():
        _in_process("archive")
    if not archive.exists():
        raise ConfigurationError(f"The JVM did not write {archive}; Java 17 or newer is needed, with -Xshare support")
    return archive


def _in_process(step: str) -> None:
    command = [sys.executable, "-m", __spec__.name, step]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or _DONE not in done.stdout:
        raise ConfigurationError(
            f"Spark could not be prepared ({step}): {(done.stderr or done.stdout).strip()[-2000:]}"
        )


def _keep_jars() -> None:
    """Start Spark with the jars that it resolves itself, and keep a copy of them."""
    session = start_session(SparkSettings.from_environment())
    resolved = [Path(name.removeprefix("file:")) for name in str(session.conf.get("spark.jars")).split(",")]
    session.stop()
    folder = prepared_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for jar in resolved:
        # A reader finds either the whole jar or none of it.
        partial = folder / f"{jar.name}.{os.getpid()}"
        shutil.copyfile(jar, partial)
        partial.replace(folder / jar.name)


def _write_archive() -> None:
    """Let a session do what every start does, and when its JVM ends, let it write the classes that it has loaded."""
    from pyspark import SparkContext as Context

    settings = SparkSettings.from_environment()
    options = java_options(settings)
    archive = archive_file(jar_files(settings.jars))
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(f".{os.getpid()}")
    training = {**settings.confs, "spark.driver.extraJavaOptions": f"{options} -XX:ArchiveClassesAtExit={partial}"}
    session = start_session(replace(settings, confs=training))
    run_tasks(session, [1, 2], _nothing)
    jvm = _jvm(Context)
    session.stop()
    jvm.communicate()  # The JVM ends, and writes the archive, when its standard input is closed.
    partial.replace(archive)


def _jvm(context: type[SparkContext]) -> subprocess.Popen[bytes]:
    gateway: Any = context._gateway  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no public way
    return gateway.proc


def _nothing(_task: int) -> Mapping[str, Any]:
    return {}


if __name__ == "__main__":
    {"jars": _keep_jars, "archive": _write_archive}[sys.argv[1]]()
    sys.stdout.write(f"{_DONE}\n")
