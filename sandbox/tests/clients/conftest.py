"""One JVM per version of mssql-jdbc, and a database of one's own per module."""

import shutil
from collections.abc import Iterator

import py4j.java_gateway
import py4j.protocol
import pytest

from tests.clients.jars import VERSIONS, jdbc_jar
from tests.clients.jvm import Jdbc, jdbc_machine


@pytest.fixture(autouse=True)
def _errors_of_java_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark session in this process makes py4j ask Spark about errors of all JVMs; those here know no Spark."""
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)


@pytest.fixture(scope="session", params=VERSIONS)
def jdbc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jdbc]:
    """mssql-jdbc in a JVM of its own."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: mssql-jdbc cannot be tried")
    with jdbc_machine(jdbc_jar(request.param), tmp_path_factory.mktemp("jdbc") / "jvm.log") as machine:
        yield machine
