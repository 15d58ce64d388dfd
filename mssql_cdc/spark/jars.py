"""Delta's jars and the class-data archive: where they are, and the confs that make Spark use them.

`prepare` creates both. This module only looks at files and starts no JVM.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path

from mssql_cdc.errors import ConfigurationError

DELTA_VERSION = "4.4.0"
DELTA_PACKAGES = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION},io.delta:delta-storage:{DELTA_VERSION}"
JARS_VARIABLE = "MSSQL_CDC_JARS"
"""A folder with the two jars, or a comma-separated list of jar files, which avoids resolving them at startup."""

_NOT_NEEDED = (
    "com.fasterxml.*:*,com.github.*:*,com.google.*:*,commons-*:*,io.airlift:*,io.delta:delta-kernel-*,"
    "io.unitycatalog:*,javax.annotation:*,org.*:*"
)


def prepared_folder() -> Path:
    """The user's cache folder for the jars and archives of these versions of Spark and Delta."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mssql_cdc" / f"spark-{distribution('pyspark').version}-delta-{DELTA_VERSION}"


def jar_files(jars: str | None) -> list[Path]:
    """The jars that `MSSQL_CDC_JARS` names, else the prepared ones; empty if Spark must resolve them.

    Args:
        jars: the value of the variable, if it is set.

    Raises:
        ConfigurationError: the variable names files that do not exist.
    """
    if not jars:
        with suppress(OSError, RuntimeError):  # Another user's home, or none: nothing is prepared for this user.
            return sorted(prepared_folder().glob("*.jar"))
        return []
    folder = Path(jars)
    files = sorted(folder.glob("*.jar")) if folder.is_dir() else [Path(file) for file in jars.split(",")]
    missing = [str(file) for file in files if not file.is_file()]
    if missing or not files:
        raise ConfigurationError(f"{JARS_VARIABLE} names no jar files: {missing or jars}; expected {DELTA_PACKAGES}")
    return files


def jar_confs(files: Sequence[Path], *, local: bool, class_path: str = "") -> dict[str, str]:
    """The confs that make Delta's jars available to the JVM.

    A local master takes them from the class path: Spark copies `spark.jars` through its file server, and a class-data
    archive does not cover them (together 1.2 of 10.6 s of CPU per start).

    Args:
        files: the jars; none: Spark resolves them from a Maven repository.
        local: whether driver and executors are one JVM.
        class_path: what the configuration has in `spark.driver.extraClassPath`; it comes first.
    """
    if not files:
        return {"spark.jars.packages": DELTA_PACKAGES, "spark.jars.excludes": _NOT_NEEDED}
    if not local:
        return {"spark.jars": ",".join(map(str, files))}
    return {"spark.driver.extraClassPath": os.pathsep.join([*([class_path] if class_path else []), *map(str, files)])}


def archive_file(files: Sequence[Path]) -> Path:
    """The class-data archive of exactly this JVM and these jars; it need not exist.

    The JVM uses an archive only with the class path that it was created with; otherwise, it continues without it. The
    compilers and the garbage collector may be others: with its default options, a JVM that is meant to last used the
    archive of a short-lived one, and needed 8 s of CPU for its start and first job instead of 17 (Java 17).
    """
    java = Path(shutil.which(Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java") or shutil.which("java") or "java")
    spark = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    digest = hashlib.sha256()
    for file in (java.resolve(), spark, *files):
        stat = file.stat() if file.exists() else None
        digest.update(f"\n{file} {(stat.st_size, stat.st_mtime_ns) if stat else None}".encode())
    return prepared_folder() / f"classes-{digest.hexdigest()[:16]}.jsa"


def found_archive(files: Sequence[Path]) -> Path | None:
    """The class-data archive of exactly this JVM and these jars, if it exists and is accessible."""
    with suppress(OSError, RuntimeError):
        archive = archive_file(files)
        return archive if archive.exists() else None
    return None
