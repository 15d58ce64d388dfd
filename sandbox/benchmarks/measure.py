"""Figures, the least that several runs have spent, and memory of a process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    what: str
    value: str


def rate(count: int, seconds: float) -> str:
    """`count` of something done in so many seconds."""
    return f"{count / seconds:,.0f} a second ({seconds:.1f} s)"


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the clock, and of CPU in a server's process and in this one."""

    seconds: float
    server: float
    own: float


def best(action: Callable[[], object], *, server: int, times: int = 3) -> Spent:
    """The least that one of several runs has spent: on a busy machine the others measure the neighbours."""
    runs = []
    for _ in range(times):
        before = (time.perf_counter(), _cpu_seconds(server), time.process_time())
        action()
        after = (time.perf_counter(), _cpu_seconds(server), time.process_time())
        runs.append([end - start for start, end in zip(before, after, strict=True)])
    return Spent(*map(min, zip(*runs, strict=True)))


def compared(count: int, spent: Spent, yardstick: Spent, *, pace: Callable[[tuple[float, float]], float] = max) -> str:
    """The rate beside that of the yardstick for the same, and what each costs.

    The ratio by CPU is the one that two free cores would show. `pace` is what client and server make together: the
    slower of them sets it for a stream (`max`), both do where one waits for the other (`sum`).
    """
    by_cpu = pace((yardstick.own, yardstick.server)) / pace((spent.own, spent.server))
    return (
        f"{count / spent.seconds:,.0f} a second; yardstick {count / yardstick.seconds:,.0f}; "
        f"ratio {yardstick.seconds / spent.seconds:.2f}, by CPU {by_cpu:.2f} "
        f"(server {spent.server / count * 1e6:.1f} µs, client {spent.own / count * 1e6:.1f} µs each)"
    )


def resident_mib(pid: int) -> float:
    """Resident memory of a process; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
