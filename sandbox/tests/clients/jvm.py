"""A JVM with mssql-jdbc, driven from Python through py4j (part of PySpark): a Java runtime is enough."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway

from mssql_sandbox.server import SandboxServer

_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")


class Jdbc:
    """Connections of one driver version."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.jvm: Any = gateway.jvm
        self._driver = self.jvm.com.microsoft.sqlserver.jdbc.SQLServerDriver()

    @contextmanager
    def connect(self, server: SandboxServer, *, database: str = "master", **properties: str) -> Iterator[Any]:
        """A `java.sql.Connection`, closed at the end; `properties` are the driver's."""
        given = self.jvm.java.util.Properties()
        wanted = {"user": server.user, "password": server.password, "databaseName": database, "loginTimeout": "15"}
        for name, value in (wanted | {"encrypt": "false", "trustServerCertificate": "true"} | properties).items():
            given.setProperty(name, value)
        connection = self._driver.connect(f"jdbc:sqlserver://127.0.0.1:{server.port}", given)
        try:
            yield connection
        finally:
            connection.close()

    def open(self, url: str) -> Any:
        """A `java.sql.Connection` for a URL that says everything."""
        return self._driver.connect(url, self.jvm.java.util.Properties())

    def array(self, kind: str, values: list[Any]) -> Any:
        """A Java array, as `Object` or `String`."""
        made = self._gateway_array(getattr(self.jvm.java.lang, kind), len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    def _gateway_array(self, kind: Any, size: int) -> Any:
        return self.jvm.java.lang.reflect.Array.newInstance(kind._java_lang_class, size)


def run(connection: Any, *statements: str) -> None:
    """Execute statements whose results are of no interest."""
    for text in statements:
        statement = connection.createStatement()
        statement.execute(text)
        statement.close()


def rows_of(result: Any) -> list[tuple[Any, ...]]:
    """The rest of a `ResultSet`, which is closed then; dates and the like come as text."""
    count = result.getMetaData().getColumnCount()
    rows = []
    while result.next():
        rows.append(tuple(plain(result.getObject(place)) for place in range(1, count + 1)))
    result.close()
    return rows


def plain(value: Any) -> Any:
    """Python's form of a value; what py4j leaves a Java object is shown by its own text."""
    return value if value is None or isinstance(value, str | int | float | bool | bytes) else str(value)


def query(connection: Any, text: str) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    statement = connection.createStatement()
    try:
        return rows_of(statement.executeQuery(text))
    finally:
        statement.close()


@contextmanager
def jdbc_machine(jar: Path, log: Path) -> Iterator[Jdbc]:
    """A JVM with this driver until the block ends; what it prints goes to the log."""
    py4j_jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    command = ["java", *_OPTIONS, "-cp", f"{py4j_jar}:{jar}", "py4j.GatewayServer", "--die-on-broken-pipe", "0"]
    with log.open("w") as errors:
        machine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert machine.stdin is not None
    assert machine.stdout is not None
    try:
        port = int(machine.stdout.readline())
        # Java objects would tell the JVM when they are collected, which may be long after it has ended.
        parameters = GatewayParameters(port=port, auto_convert=True, enable_memory_management=False)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield Jdbc(gateway)
        finally:
            gateway.close()
    finally:
        machine.terminate()
        machine.communicate(timeout=20)
