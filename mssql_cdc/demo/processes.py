"""The demo's child processes: each starts in its own session, all stop together, and none is left behind.

On Linux the kernel signals a child when the demo dies, so that even `kill -9` on the demo leaves nothing running.
This module does not know what the children do.
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
TAIL_LINES = 40


@dataclass
class Processes:
    """A group of named child processes with log files in `folder`; a context manager that stops them on exit."""

    folder: Path
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])

    def start(self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        """Start `command`; its output goes to `<folder>/<name>.log`.

        Args:
            name: The child's name.
            command: The program and its arguments.
            environment: Added to the environment of this process.
        """
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
        """Raise an error with the end of the log if a child has stopped on its own."""
        for name, child in self._children.items():
            if child.poll() is not None:
                raise RuntimeError(f"{name} stopped with exit code {child.returncode}:\n{self.said(name)}")

    def said(self, name: str) -> str:
        """The last lines of a child's log."""
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def stop(self, name: str) -> None:
        """Stop one child and everything that it started, gracefully at first."""
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
    """Ask the kernel to end this process when its parent ends (on Linux; elsewhere the guard's polling does it)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
