"""Starts the Spark session or adopts an existing one; defines every session conf.

`spark/tasks.py` and `lake/` use the session. pyspark is imported inside the functions so that sensors, checks and
workers that never start Spark do not pay for it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from mssql_cdc.config.redaction import SPARK_REDACTION, spark_redaction
from mssql_cdc.errors import ConfigurationError, TaskError
from mssql_cdc.spark import remote
from mssql_cdc.spark.jars import DELTA_PACKAGES, JARS_VARIABLE, found_archive, jar_confs, jar_files
from mssql_cdc.spark.quiet import hidden_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATIC = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Required on every session that is used; they cannot be set on a running session."""

SMALL_WORK = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # Spark replaces `${env:X}` in a statement with an environment variable, even within a key or a comment.
    "spark.sql.variable.substitute": "false",
    # INT96, Spark's default, overflows outside 1677-2262 in every reader that converts it to nanoseconds.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    # A struct that is NULL must not come back as a struct of NULLs: the `before` of an insert.
    "spark.databricks.delta.merge.preserveNullSourceStructs": "true",
}
"""Confs for small work; they can change at run time and are set on every private session."""

# The first tier alone gets 48 MB for compiled code, which Spark with Delta exceeds: it would recompile repeatedly.
# Every doubling of the initial 21 MB of class metadata causes a full collection.
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=192m -Duser.timezone=UTC"
)

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
ALL_CORES = "local[*]"
REMOTE = "spark.remote"
CLASS_PATH = "spark.driver.extraClassPath"
WORKER_DAEMON = "mssql_cdc.run.worker_daemon"
"""Executors of a cluster may lack the module, so only local masters use it."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How to start Spark. `confs` override everything except the static confs that Delta needs.

    `remote` is the URL of a Spark Connect server to attach to; nothing is started then, and only `confs` count.
    `jars` is the value of `MSSQL_CDC_JARS`; without it, Spark resolves the two Delta jars from a Maven repository.
    `short_lived` trades peak throughput for start-up time (first-tier compiler only): eight small merges from the
    start took 57 s of CPU with it and 81-96 s without, a fold of 600,000 rows 3.7 s with it and 2.1 s without.
    """

    master: str = ALL_CORES
    remote: str | None = None
    app_name: str = "mssql_cdc"
    memory: str = "2g"
    jars: str | None = None
    short_lived: bool = True
    confs: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_environment(
        cls, *, confs: Mapping[str, str] | None = None, memory: str = "2g", short_lived: bool = True
    ) -> SparkSettings:
        """Build settings with the jars from the environment.

        Args:
            confs: Spark's properties; `spark.master` among them becomes the master (default: all cores), `spark.remote`
                the server to attach to.
            memory: the heap of the driver.
            short_lived: whether the session ends with one command, so that the JVM's start counts more than its speed.
        """
        confs = dict(confs or {})
        master = confs.pop("spark.master", ALL_CORES)
        jars = os.environ.get(JARS_VARIABLE)
        remote = confs.pop(REMOTE, None)
        return cls(master=master, remote=remote, memory=memory, jars=jars, short_lived=short_lived, confs=confs)


def active_session() -> SparkSession | None:
    """The session that this process already has, as the calling thread sees it."""
    if "pyspark.sql" not in sys.modules:
        return None  # Avoids an import, which takes a while.
    from pyspark.sql import SparkSession

    _forget_ended_jvm()
    return SparkSession.getActiveSession()


def has_ended(session: SparkSession) -> bool:
    """Whether the session's JVM is gone, such as after an OOM kill. A session on a server has no JVM here."""
    jvm = None if remote.is_remote(session) else getattr(session, "_jvm", None)
    if jvm is None:
        return False
    from pyspark import SparkContext

    return _jvm_has_ended() or jvm is not SparkContext._jvm  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _jvm_has_ended() -> bool:
    """Whether PySpark holds a JVM that this process has started and that is gone."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    process = vars(gateway).get("proc") if gateway is not None else None
    return process is not None and process.poll() is not None


def _forget_ended_jvm() -> None:
    """Let PySpark start another JVM in place of one that is gone, which it would otherwise call forever."""
    if not _jvm_has_ended():
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # There is no public way either: stopping the session fails, since that calls the JVM.
    context: Any = SparkContext
    session: Any = SparkSession
    context._gateway = context._jvm = context._active_spark_context = None  # noqa: SLF001
    session._instantiatedSession = session._activeSession = None  # noqa: SLF001


def stop_session(session: SparkSession) -> None:
    """Stop the session, if there is still something to stop."""
    try:
        session.stop()
    except Exception:
        if not has_ended(session):
            raise


def start_session(settings: SparkSettings, *, quiet: bool = False) -> SparkSession:
    """Start a session with the pinned Delta jars, or verify and return an existing one: a server's, or the process's.

    Args:
        settings: How to start it.
        quiet: Hide the JVM's output, unless it fails to start.

    Raises:
        ConfigurationError: Spark could not start (no Java, jars not found), or an existing session lacks Delta.
        SourceUnavailableError: The server of `settings.remote` does not answer.
    """
    if settings.remote is not None:
        return _attached(settings.remote)
    from pyspark.sql import SparkSession

    active = active_session()
    if active is not None:
        verify_session(active)
        return active
    # Workers must use this interpreter because the python3 on PATH may lack the packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    confs = {"spark.master": settings.master, "spark.app.name": settings.app_name, **session_confs(settings)}
    try:
        with hidden_output() if quiet else nullcontext() as output:
            _launch(confs, output)
            builder = SparkSession.builder
            for name, value in confs.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
    except Exception as error:
        raise ConfigurationError(
            f"Spark did not start ({error}); stderr shows the reason. It needs Java 17 and the jars {DELTA_PACKAGES}, "
            f"from a Maven repository or from the folder that {JARS_VARIABLE} names"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _attached(url: str) -> SparkSession:
    session = remote.attach(url)
    verify_session(session)
    for name, value in SMALL_WORK.items():
        session.conf.set(name, value)
    return session


def cancel_jobs(session: SparkSession) -> None:
    """Cancel all jobs of the session's application, from any thread; on a server, only those of this process."""
    if remote.is_remote(session):
        remote.cancel(session)
    else:
        session.sparkContext.cancelAllJobs()


def parallelism(session: SparkSession) -> int:
    """How many tasks run at a time.

    Raises:
        TaskError: The JVM does not answer.
        SourceUnavailableError: The Spark Connect server does not answer.
    """
    if remote.is_remote(session):
        return remote.parallelism(session)
    try:
        return session.sparkContext.defaultParallelism
    except Exception as error:
        raise TaskError(f"Spark's JVM does not answer: {type(error).__name__}") from error


def _launch(confs: Mapping[str, str], output: BinaryIO | None) -> None:
    """Start the JVM, unless this process has one; it writes to `output`, by default to this process's outputs.

    PySpark would pass each property to `spark-submit` as an argument, which every user of the machine can read. A file
    that only we can read takes their place; it is removed once the JVM has read it.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]

    # There is no public way to find out whether there is a JVM, or to make the next context use this one.
    if SparkContext._gateway is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return
    given = os.environ.get(_SUBMIT_ARGUMENTS)
    handle, path = tempfile.mkstemp(prefix="mssql_cdc-spark-", suffix=".properties")  # mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(escaped_properties(confs))
        # PySpark splits the arguments as a shell does, and the temporary folder's name may have a space.
        started = f"--load-spark-defaults --properties-file {shlex.quote(path)}"
        os.environ[_SUBMIT_ARGUMENTS] = f"{started} {given or 'pyspark-shell'}"
        initialize = SparkContext._ensure_initialized  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        initialize(gateway=launch_gateway(popen_kwargs={"stdout": output, "stderr": output} if output else None))
    finally:
        Path(path).unlink()
        os.environ.pop(_SUBMIT_ARGUMENTS)
        if given is not None:
            os.environ[_SUBMIT_ARGUMENTS] = given


def escaped_properties(confs: Mapping[str, str]) -> str:
    """The text of a Java properties file with these confs."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in confs.items())


def _escaped(text: str) -> str:
    """A name or a value of a Java properties file, read as UTF-8."""
    text = re.sub(r"([\\ :=#!])", r"\\\1", text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")


def session_confs(settings: SparkSettings) -> dict[str, str]:
    """Return every conf of a newly started session, by name."""
    local, files = settings.master.startswith("local"), jar_files(settings.jars)
    options = java_options(settings)
    archive = found_archive(files)
    shared = f" {shlex.quote(f'-XX:SharedArchiveFile={archive}')}" if archive is not None else ""
    confs = {
        **SMALL_WORK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": settings.memory,
        "spark.driver.extraJavaOptions": options + shared,
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "mssql_cdc-spark-warehouse"),
        "spark.scheduler.mode": "FAIR",
        SPARK_REDACTION: spark_redaction(),
    }
    if local:
        confs |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        confs |= {"spark.python.daemon.module": WORKER_DAEMON}
    jars = jar_confs(files, local=local, class_path=settings.confs.get(CLASS_PATH, ""))
    class_path = {CLASS_PATH: jars[CLASS_PATH]} if CLASS_PATH in jars else {}
    return {**confs, **jars, **settings.confs, **class_path, **STATIC}


def java_options(settings: SparkSettings) -> str:
    """The options of a JVM that these settings start, without those for an archive."""
    return _JAVA_OPTIONS if settings.short_lived else "-Duser.timezone=UTC"


def verify_session(session: SparkSession) -> None:
    """Check an existing session: static confs are verified, never set.

    Raises:
        ConfigurationError: A static conf is missing or different; names it and the value it must have.
    """
    for name, wanted in STATIC.items():
        found = session.conf.get(name, None) or ""
        if wanted not in found.split(","):
            raise ConfigurationError(
                f"The running Spark session has {name}={found!r}; start it with {wanted!r} in it, "
                "or let the connector start its own"
            )


class SqlSession(Protocol):
    """The part of a session that runs a statement; pyspark leaves the types of its other parameters open."""

    def sql(self, sqlQuery: str) -> DataFrame:  # noqa: N803 (pyspark's name)
        """Run the statement."""
        ...


def run_sql(session: SqlSession, statement: str) -> DataFrame:
    """The result of one statement without parameters."""
    return session.sql(statement)


@contextmanager
def private_session(
    session: SparkSession, confs: Mapping[str, str] | None = None
) -> Generator[SparkSession, None, None]:
    """Open a separate session on the same application, with `confs` set until the block ends.

    For MERGE, OPTIMIZE and ALTER: their txn and userMetadata are session confs, and one that leaks makes a later
    write skip silently (reference measurements: txn confs survive the command that used them).
    """
    there = remote.is_remote(session)
    private = remote.private(session) if there else session.newSession()
    wanted = {**SMALL_WORK, **(confs or {})}
    try:
        for name, value in wanted.items():
            private.conf.set(name, value)
        yield private
    finally:
        if there:
            remote.end(private, session)
        else:
            for name in confs or {}:
                private.conf.unset(name)
