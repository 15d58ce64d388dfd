"""One class of tests: a sandbox of its own, and a JVM of its own."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from mssql_sandbox.process import SandboxProcess, sandbox_process
from tests.debezium_its.jars import PACKAGE, Jars
from tests.debezium_its.results import ClassResult, read_tests

PASSWORD = "Password!"
"""What the tests connect with, and give to the login that one of them creates."""
CAPTURE_SECONDS = "1"
"""Pause of the capture job, as the tests ask for where they ask: a faster one lets signals overtake the connector."""
WANTED_PORTS = {"OpenLineageIT": 1433}
"""That test compares the port in an event with SQL Server's usual one."""
ORDERS = {
    "SqlServerChangeTableSetIT": (
        "EXEC sandbox.delay_statement @pattern = N'sp_cdc_enable_table', @seconds = 0.5, @times = 1000000"
    )
}
"""T-SQL before a class begins. That class logs in and writes while a table is being enabled, which takes a server some
time and the sandbox less than a login."""
_JVM = (
    "-Xmx1g", "-ea", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Duser.language=en",
    "-Duser.country=US", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-DskipLongRunningTests=true",
    "-DfailFlakyTests=true",
)  # fmt: skip


def run_class(jars: Jars, name: str, pattern: str, folder: Path, *, seconds: int) -> ClassResult:
    """Run the tests of a class whose names match the pattern; logs are `<folder>/<name>.log` and `.sandbox.log`."""
    scratch = folder / "scratch" / name
    scratch.mkdir(parents=True, exist_ok=True)
    port = str(WANTED_PORTS.get(name, 0))
    options = ("--port", port, "--password", PASSWORD, "--capture-interval", CAPTURE_SECONDS)
    if name in ORDERS:
        (scratch / "orders.sql").write_text(ORDERS[name], encoding="utf-8")
        options += ("--script", str(scratch / "orders.sql"))
    began = time.monotonic()
    with sandbox_process(scratch, *options, log=folder / f"{name}.sandbox.log") as server:
        problem = _run_jvm(jars, name, pattern, scratch, folder / f"{name}.log", server, seconds)
    with (folder / f"{name}.log").open(encoding="utf-8", errors="replace") as log:
        tests = read_tests(log)
    if not tests and not problem:
        problem = "no test of that name" if pattern != ".*" else f"nothing was run, see {folder / name}.log"
    return ClassResult(name, time.monotonic() - began, tests, problem)


def _run_jvm(
    jars: Jars, name: str, pattern: str, scratch: Path, log: Path, server: SandboxProcess, seconds: int
) -> str:
    """Run the JVM; what went wrong with it as a whole, or nothing."""
    facts = {
        "project.basedir": scratch,
        "project.build.directory": scratch,
        "dbz.test.data.dir": scratch / "data",
        "java.io.tmpdir": scratch,
        "logback.configurationFile": jars.resources / "logback-test.xml",
        "database.hostname": "localhost",
        "database.port": server.port,
        "database.user": server.user,
        "database.password": server.password,
        "database.trustServerCertificate": "true",
    }
    command = ["java", *_JVM, *(f"-D{key}={value}" for key, value in facts.items())]
    command += ["-cp", jars.class_path, "RunTests", PACKAGE + name, pattern]
    with log.open("w", encoding="utf-8") as output:
        try:
            done = subprocess.run(command, cwd=scratch, stdout=output, stderr=subprocess.STDOUT, timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds} s"
    return f"the JVM ended with {done.returncode}, see {log}" if done.returncode else ""
