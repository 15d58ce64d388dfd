"""Figures, measuring the memory of a command, and reading times from Delta logs."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report; `at_least` or `at_most` is what it must reach, `note` what has to be said of it."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def target(self) -> float | None:
        """The bound."""
        return self.at_least if self.at_least is not None else self.at_most

    @property
    def bound(self) -> str | None:
        """The direction of the bound."""
        return None if self.target is None else "at least" if self.at_least is not None else "at most"

    @property
    def holds(self) -> bool | None:
        """Whether the value is within the bound; None: it has none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def text(self) -> str:
        """The line for people."""
        verdict = {None: "", True: "holds", False: "FAILS"}[self.holds]
        bound = "" if self.target is None else f"{self.bound} {self.target:g}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.name:<100} {shown(self.value):>10} {self.unit:<7} {bound:<13} {verdict}{note}".rstrip()

    def to_json(self) -> dict[str, object]:
        """What `--json` writes."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "target": self.target,
            "bound": self.bound,
            "holds": self.holds,
            **({"note": self.note} if self.note else {}),
        }


def shown(value: float) -> str:
    """A value for people."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


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
def spending(spent: Spent) -> Generator[Spent]:
    """Add what the block takes."""
    started, before = time.perf_counter(), tree_cpu(os.getpid())
    try:
        yield spent
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


@dataclass
class Watched:
    """A running command and the peaks of its memory until now."""

    process: subprocess.Popen[bytes]
    started: float
    log: Path
    peaks: dict[str, float]

    def measured(self) -> Measured:
        """What was seen until now."""
        peaks = self.peaks
        return Measured(self.started, time.time() - self.started, peaks["driver"], peaks["jvm"], peaks["workers"])

    def check(self) -> None:
        """Raise an error with the end of its log if the command has failed."""
        if self.process.poll():
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
            raise RuntimeError(f"the command ended with {self.process.returncode}:\n{tail}")


@contextmanager
def watched(command: Sequence[str], *, log: Path) -> Generator[Watched]:
    """Run the command and watch its memory; stop it at the end if it still runs."""
    peaks = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    done = threading.Event()
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks, done))
        watcher.start()
        try:
            yield Watched(process, time.time(), log, peaks)
        finally:
            process.terminate()
            process.wait(120)
            done.set()
            watcher.join()


def run(command: Sequence[str], *, log: Path) -> Measured:
    """Run the command to completion; raise an error with the end of its log if it fails."""
    with watched(command, log=log) as running:
        running.process.wait()
        running.check()
        return running.measured()


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
