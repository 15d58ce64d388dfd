"""Figures, measuring the memory of a command, and reading times from Delta logs."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    what: str
    value: str


def rate(count: int, seconds: float) -> str:
    """A rate: `count` operations in this many seconds."""
    return f"{count / seconds:,.0f} a second ({seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished command: seconds, and the peak resident memory (MiB) of its Python driver, its JVM, its workers."""

    started: float
    seconds: float
    driver_mib: float
    jvm_mib: float
    workers_mib: float


def run(command: Sequence[str], *, log: Path) -> Measured:
    """Run the command to completion; raise an error with the end of its log if it fails."""
    started = time.time()
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    peaks = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, done))
    watcher.start()
    code = process.wait()
    seconds = time.time() - started
    done.set()
    watcher.join()
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{tail}")
    return Measured(started, seconds, peaks["driver"], peaks["jvm"], peaks["workers"])


def commits(folder: Path, *, since: float = 0.0) -> list[float]:
    """The Unix times after `since` at which change logs below `folder` got rows, oldest first."""
    times = []
    for commit in folder.rglob("changes/_delta_log/*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        if any("add" in action for action in actions):
            times += [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
    return sorted(time for time in times if time > since)


def tree_cpu(pid: int) -> float:
    """CPU seconds of a process and its descendants, ended children included."""
    ticks = 0
    for one in (pid, *_descendants(pid)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(text) for text in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _watch(pid: int, peaks: dict[str, float], done: threading.Event) -> None:
    while not done.wait(0.2):
        peaks["driver"] = max(peaks["driver"], _resident(pid))
        family = _descendants(pid)
        java = sum(_resident(child) for child in family if _name(child) == "java")
        workers = sum(_resident(child) for child in family if _name(child).startswith("python"))
        peaks["jvm"], peaks["workers"] = max(peaks["jvm"], java), max(peaks["workers"], workers)


def _descendants(pid: int) -> list[int]:
    found, left = [], [pid]
    while left:
        parent = left.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text().split()]
            except OSError:
                continue
            found += children
            left += children
    return found


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
