"""mssql-jdbc for tests: the driver comes from Maven, a small program runs scenes through it."""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

DRIVER = "com.microsoft.sqlserver:mssql-jdbc:12.4.2.jre8"
_JAR = "mssql-jdbc-12.4.2.jre8.jar"
_SOURCE = Path(__file__).parent / "java" / "Probe.java"


@functools.cache
def _class_path() -> str:
    """The driver and the compiled program; skips the test where they cannot be had."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: mssql-jdbc cannot be tried")
    folder = Path(tempfile.mkdtemp(prefix="mssql-jdbc-"))
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={DRIVER}", f"-DoutputDirectory={folder}"]
    offline = subprocess.run([*copy, "-o"], capture_output=True, timeout=120, check=False)
    if offline.returncode or not (folder / _JAR).exists():
        online = subprocess.run(copy, capture_output=True, text=True, timeout=240, check=False)
        if online.returncode:
            pytest.skip(f"Maven cannot get {DRIVER}: {online.stdout[-300:]}")
    path = f"{folder / _JAR}:{folder}"
    subprocess.run(["javac", "-cp", path, "-d", str(folder), str(_SOURCE)], check=True, timeout=120)
    return path


def probe(scene: str, port: int, password: str, *arguments: str, encrypt: str = "false", more: str = "") -> list[str]:
    """What the scene printed, line by line."""
    url = f"jdbc:sqlserver://127.0.0.1:{port};encrypt={encrypt};trustServerCertificate=true;loginTimeout=15;{more}"
    command = ["java", "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", _class_path(), "Probe", scene, url, password]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
