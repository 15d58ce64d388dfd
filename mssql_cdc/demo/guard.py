"""Runs one command and ends its entire process group as soon as the demo process is gone (even after `kill -9`).

It has no other purpose and knows neither the demo nor the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from mssql_cdc.demo.processes import die_with_parent

POLL_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code; `arguments` are the demo's process id and the command."""
    parent = int(arguments[0])
    die_with_parent()
    child: subprocess.Popen[bytes] | None = None

    def end(number: int, _frame: object) -> None:
        # The group contains this process, the command and everything that it started; SIGINT lets Dagster clean up.
        if number == signal.SIGTERM:
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(arguments[1:], preexec_fn=_default_interrupt)  # noqa: PLW1509 (no threads here)
    while child.poll() is None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return child.returncode


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
