"""Child processes of the demo: started in sessions of their own, stopped together, and never left behind.

A child is told by the kernel when the demo dies (Linux), so that even `kill -9` on the demo leaves nothing running.
What the children do stands elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

PR_SET_PDEATHSIG = 1
STOP_SECONDS = 15


@dataclass
class Processes:
    """A group of named children with log files in `folder`; a context manager that stops them all at its end."""

    folder: Path
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])

    def start(self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        """Starts `command`; its output goes to `<folder>/<name>.log`."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(
                [sys.executable, "-m", "mssql_cdc.demo.guard", str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def check(self) -> None:
        """Raises with the end of the log when a child has stopped by itself."""
        for name, child in self._children.items():
            if child.poll() is not None:
                tail = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-15:]
                raise RuntimeError(f"{name} stopped with exit code {child.returncode}:\n" + "\n".join(tail))

    def stop(self, name: str) -> None:
        """Stops one child and everything that it started, politely first."""
        child = self._children.pop(name)
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, signal_number)
            except ProcessLookupError:
                break
            try:
                child.wait(STOP_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        with contextlib.suppress(ProcessLookupError):
            # A child's own children may outlive it.
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in reversed(list(self._children)):
            self.stop(name)


def die_with_parent() -> None:
    """Asks the kernel to end this process when its parent ends (Linux; elsewhere the guard's watch must do)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
