"""Figures, measuring the memory of a command, and reading times from Delta logs."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report; `at_least` or `at_most` is what it must reach."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> float | None:
        """The bound."""
        return self.at_least if self.at_least is not None else self.at_most

    @property
    def holds(self) -> bool | None:
        """Whether the value is within the bound; None: it has none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def text(self) -> str:
        """The line for people."""
        said = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:,.2f}"
        verdict = {None: "", True: "holds", False: "FAILS"}[self.holds]
        bound = "" if self.target is None else f"{'>=' if self.at_least is not None else '<='} {self.target:g}"
        return f"{self.name:<86} {said:>12} {self.unit:<8} {bound:<10} {verdict}".rstrip()

    def to_json(self) -> dict[str, object]:
        """What `--json` writes."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "target": self.target,
            "holds": self.holds,
        }


ROWS_A_SECOND = "rows/s"


def rate(name: str, count: int, seconds: float) -> Figure:
    """A rate: `count` rows in this many seconds."""
    return Figure(name, count / seconds, ROWS_A_SECOND)


@dataclass(slots=True)
class Spent:
    """Seconds by the clock, and of the CPUs in the whole process tree."""

    seconds: float = 0.0
    cpu: float = 0.0


@contextmanager
def spending(spent: Spent) -> Iterator[None]:
    """Add what the block takes."""
    started, before = time.perf_counter(), tree_cpu(os.getpid())
    try:
        yield
    finally:
        spent.seconds += time.perf_counter() - started
        spent.cpu += tree_cpu(os.getpid()) - before


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


def commits(folder: Path, *, since: float = 0.0, tables: str = "changes") -> list[float]:
    """The Unix times after `since` at which change logs (or current tables) below `folder` got rows, oldest first."""
    times = []
    for commit in folder.rglob(f"{tables}/_delta_log/*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        if any("add" in action for action in actions):
            times += [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
    return sorted(time for time in times if time > since)


def tree_cpu(pid: int) -> float:
    """CPU seconds of a process and its descendants, ended children included."""
    ticks = 0
    for one in (pid, *descendants(pid)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(text) for text in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _watch(pid: int, peaks: dict[str, float], done: threading.Event) -> None:
    while not done.wait(0.2):
        peaks["driver"] = max(peaks["driver"], _resident(pid))
        family = descendants(pid)
        java = sum(_resident(child) for child in family if process_name(child) == "java")
        workers = sum(_resident(child) for child in family if process_name(child).startswith("python"))
        peaks["jvm"], peaks["workers"] = max(peaks["jvm"], java), max(peaks["workers"], workers)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
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


def process_name(pid: int) -> str:
    """The name of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
