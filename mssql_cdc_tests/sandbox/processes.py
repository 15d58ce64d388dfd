"""Starting the stand-in server as a process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
def sandbox_process(folder: Path, *options: str) -> Iterator[SandboxProcess]:
    """The server with these options until the block ends; the ready file goes to the folder."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "mssql_cdc.sandbox", "--ready-file", str(ready), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"the sandbox has not started: {process.communicate()}")
            time.sleep(0.02)
        facts = json.loads(ready.read_text(encoding="utf-8"))
        assert facts.pop("pid") == process.pid
        yield SandboxProcess(process=process, **facts)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
