"""Starting the stand-in server as a process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 60


@dataclass(frozen=True)
class SandboxProcess:
    """A running server: how to connect, and its process."""

    host: str
    port: int
    user: str
    password: str
    process: subprocess.Popen[str]


@contextmanager
def sandbox_process(folder: Path, *options: str, log: Path | None = None) -> Iterator[SandboxProcess]:
    """The server with these options until the block ends; the ready file goes to the folder.

    What it prints goes to the file `log`, or else into pipes, which hold little: only for servers that say little.
    """
    with nullcontext(subprocess.PIPE) if log is None else log.open("w", encoding="utf-8") as output:
        ready = folder / "ready.json"
        command = [sys.executable, "-m", "mssql_sandbox", "--ready-file", str(ready), *options]
        process = subprocess.Popen(command, stdout=output, stderr=output, text=True)
        try:
            yield SandboxProcess(process=process, **_facts(process, ready))
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _facts(process: subprocess.Popen[str], ready: Path) -> dict[str, Any]:
    """What the ready file says, once it is there."""
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssertionError(f"the sandbox has not started: {process.communicate()}")
        time.sleep(0.02)
    facts = json.loads(ready.read_text(encoding="utf-8"))
    assert facts.pop("pid") == process.pid
    return facts
