"""A server in a separate process: for load, for clients in other languages, and for tests that must not share a GIL.

`server.serve_in_thread` runs a server in a thread instead; the fixtures belong to `pytest_plugin`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mssql_sandbox.address import Address
from mssql_sandbox.errors import StartError

START_SECONDS = 60
STOP_SECONDS = 20


@dataclass(frozen=True)
class SandboxProcess(Address):
    """A running server: how to connect to it, its process, and its ready file."""

    process: subprocess.Popen[str]
    ready_file: Path


@contextmanager
def sandbox_process(folder: Path, *options: str, log: Path | None = None) -> Iterator[SandboxProcess]:
    """Start `mssql-sandbox`, wait until it accepts clients, and stop it when the block ends.

    Args:
        folder: where the ready file is written; an existing one is replaced.
        options: options of the command, such as `"--capture-interval", "0.1"`.
        log: the file for the server's output. Without one the output goes into pipes, which hold only a little.

    Raises:
        StartError: the server ended, or does not accept clients within 60 seconds.
    """
    with module_process("mssql_sandbox", folder, *options, log=log) as server:
        yield server


@contextmanager
def module_process(module: str, folder: Path, *options: str, log: Path | None = None) -> Iterator[SandboxProcess]:
    """Like `sandbox_process`, but start `python -m module`, a command with the option `--ready-file`."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", module, "--ready-file", str(ready), *options]
    with nullcontext(subprocess.PIPE) if log is None else log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, text=True)
        try:
            yield SandboxProcess(process=process, ready_file=ready, **_facts(process, ready, log))
        finally:
            process.terminate()
            try:
                process.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _facts(process: subprocess.Popen[str], ready: Path, log: Path | None) -> dict[str, Any]:
    """Wait for the ready file and return its contents without the process id."""
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            printed = process.communicate() if log is None else (log.read_text(encoding="utf-8"),)
            raise StartError(f"expected a server that writes {ready}; it printed: {''.join(printed).strip()}")
        time.sleep(0.02)
    facts = json.loads(ready.read_text(encoding="utf-8"))
    del facts["pid"]
    return facts
