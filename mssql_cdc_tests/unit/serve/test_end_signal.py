"""SIGTERM ends a process whatever its main thread does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

LONG = 30
"""Seconds that the end may take here; without it, the native code goes on for far longer."""
BUSY = """
import hashlib, signal
from mssql_cdc.serve.end_signal import EndSignal
EndSignal(signal.default_int_handler)
print("ready", flush=True)
hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)
"""
"""Native code without Python's lock, which no signal interrupts, as that of a library that waits for a store."""
IDLE = """
import signal, time
from mssql_cdc.serve.end_signal import EndSignal
end = EndSignal(signal.default_int_handler)
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("noted" if end.noted else "Ctrl+C", flush=True)
"""


@pytest.mark.parametrize(
    ("program", "number", "code", "said"),
    [
        (BUSY, signal.SIGTERM, 0, ""),
        (IDLE, signal.SIGTERM, 0, "noted"),
        (IDLE, signal.SIGINT, 0, "Ctrl+C"),
    ],
    ids=["native code", "python", "ctrl+c"],
)
def test_a_signal_ends_the_process(program: str, number: signal.Signals, code: int, said: str):
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)  # Nothing tells that the native code has begun.
        process.send_signal(number)
        try:
            assert process.wait(LONG) == code
        finally:
            process.kill()
        assert process.stdout.read().strip() == said
