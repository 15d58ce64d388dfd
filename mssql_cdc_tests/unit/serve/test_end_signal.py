"""SIGTERM ends a process whatever its main thread does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from mssql_cdc.serve.end_signal import END_SECONDS, TELL_SECONDS

LONG = 30
"""Seconds that the end may take here; without it, the native code goes on for far longer."""
BUSY = """
import hashlib, signal
from mssql_cdc.serve.end_signal import EndSignal
EndSignal(signal.default_int_handler, forced=lambda: print("forced", flush=True))
print("ready", flush=True)
hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)
"""
"""Native code without Python's lock, which no signal interrupts, as that of a library that waits for a store."""
MUTE = """
import os, signal, threading
from mssql_cdc.serve.end_signal import EndSignal
reads, writes = os.pipe()
full = b"x" * 2**20
EndSignal(signal.default_int_handler, forced=lambda: os.write(writes, full))
print("ready", flush=True)
while True:
    try:
        os.write(writes, full)
    except KeyboardInterrupt:
        pass
"""
"""A reader that takes nothing: neither what is written, nor that the end is by force."""
STUBBORN = """
import signal, threading
from mssql_cdc.serve.end_signal import EndSignal
EndSignal(signal.default_int_handler, forced=lambda: print("forced", flush=True))
print("ready", flush=True)
lock = threading.Lock()
lock.acquire()
while True:
    try:
        lock.acquire()
    except KeyboardInterrupt:
        pass
"""
"""Code that takes the interrupt for something else and waits on."""
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
        (BUSY, signal.SIGTERM, 0, "forced"),
        (MUTE, signal.SIGTERM, 0, ""),
        (STUBBORN, signal.SIGTERM, 0, "forced"),
        (IDLE, signal.SIGTERM, 0, "noted"),
        (IDLE, signal.SIGINT, 0, "Ctrl+C"),
    ],
    ids=["native code", "full pipe", "lock", "python", "ctrl+c"],
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


def test_an_end_by_force_comes_within_three_seconds_of_the_signal():
    """That it comes whatever hangs is shown above: nothing but these two times stands before it."""
    assert END_SECONDS + TELL_SECONDS < 3
