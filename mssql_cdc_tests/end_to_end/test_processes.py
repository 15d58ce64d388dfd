"""A run that is ended by a signal leaves no process behind: neither the JVM, nor its daemon and workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def group(leader: int) -> dict[int, str]:
    """The living processes of a session, with their names."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue  # It has ended.
        if int(fields[3]) == leader and fields[0] != "Z":
            found[int(folder.name)] = name
    return found


@pytest.mark.long
@pytest.mark.feature("ERR-07")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
@pytest.mark.parametrize("everybody", [False, True], ids=["the command", "the group"])
@pytest.mark.parametrize("early", [True, False], ids=["while Spark starts", "while it streams"])
def test_a_signal_leaves_no_process_behind(
    place: Place,
    signal_number: signal.Signals,
    early: bool,  # noqa: FBT001 (a parameter of the test)
    everybody: bool,  # noqa: FBT001 (as a terminal and a service manager send it)
):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    digits = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
    source = " CROSS JOIN ".join(f"{digits} {name}(v)" for name in "abcde")
    identity = "a.v + 10 * b.v + 100 * c.v + 1000 * d.v + 10000 * e.v"
    # More than a process reads without Spark.
    place.sql("INSERT INTO dbo.orders VALUES (-1)", f"INSERT INTO dbo.orders SELECT {identity} FROM {source}")
    place.settle()
    arguments = ["--config", str(place.config), "--warehouse", str(place.warehouse)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", "run", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    try:
        assert process.stderr is not None
        awaited = "starting Spark" if early else "rows,"
        for line in process.stderr:
            if awaited in line:
                break
        else:
            raise AssertionError(f"the run ended with code {process.wait()}")
        end = time.monotonic() + 60
        while "java" not in group(process.pid).values():
            assert time.monotonic() < end, "no JVM was started"
            time.sleep(0.05)
        if everybody:
            os.killpg(process.pid, signal_number)
        else:
            process.send_signal(signal_number)
        _, said = process.communicate(timeout=120)
        handled = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "ended by SIGTERM")}
        code, told = handled.get(signal_number, (-signal_number, ""))
        assert (process.returncode, told in said) == (code, True), said
        end = time.monotonic() + 60
        while group(process.pid):
            assert time.monotonic() < end, group(process.pid)
            time.sleep(0.1)
    finally:
        if group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
