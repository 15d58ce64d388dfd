"""`mssql-cdc run` is killed under load, again and again, in each step of snapshots, stream and incremental snapshots.

Half of the kills come at a random time, the other half at a step that the process announces (`announced_run.py`):
before it, in it or right behind it. Now and then the load stops: a run catches up, and the lake must equal the source,
with every change once and in order. Eight kills; `make kills` for 200, `SEED=2` for other moments. The number of kills
in each step is printed after each comparison.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest

from mssql_cdc_tests.end_to_end.announced_run import PLACES
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.end_to_end.load import TABLES, Churn, create, table_changes
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.end_to_end.test_spark_server import WITH_TOKEN, command, served
from mssql_cdc_tests.servers import Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("MSSQL_CDC_SNAPSHOT_KILLS", "8"))
SEED = int(os.environ.get("MSSQL_CDC_SEED", "1"))
STEPS = tuple(PLACES)
EVERY = 20
"""After so many kills, the lake is compared with the source."""
PHASES = ("before", "in", "behind")


@dataclass
class Announced:
    """A running process, the steps that it is in, and how long each step took the last time."""

    process: subprocess.Popen[str]
    said: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    inside: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])

    def read(self, descriptor: int, durations: dict[str, float]) -> None:
        """Collect what the process announces, until it ends."""
        with os.fdopen(descriptor, encoding="utf-8") as lines:
            for line in lines:
                phase, step, number = line.split()
                if phase == "before":
                    self.inside[step, int(number)] = time.monotonic()
                else:
                    durations[step] = time.monotonic() - self.inside.pop((step, int(number)))
                self.said.append((phase, step, int(number)))

    def has_said(self, phase: str, step: str, number: int) -> bool:
        """Whether a call of the step, that one or a later one, has come to this phase."""
        return any(one[:2] == (phase, step) and one[2] >= number for one in self.said)


@dataclass
class Kills:
    """What was killed where, and what was requested."""

    place: Place
    chance: random.Random
    aimed: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    anywhere: Counter[str] = field(default_factory=Counter[str])
    durations: dict[str, float] = field(default_factory=dict[str, float])
    requests: Counter[str] = field(default_factory=Counter[str])
    _asked: float = 0.0

    def kill_at(self, step: str) -> None:
        """Kill a run at this step: before, in or behind one of its first calls."""
        phase, number = (
            self.chance.choice(PHASES),
            self.chance.randint(1, 4 if step == "sweep" else 3),
        )  # A sweep has four calls.
        awaited = "after" if phase == "behind" else "before"
        aim = "-" if phase == "in" else f"{awaited} {step} {number}"
        with self._running(aim) as run:
            self._wait(run, awaited, step, number)
            if phase == "in":
                time.sleep(self.chance.uniform(0, self.durations.get(step, 0.02)))
        self.aimed[step, phase] += 1

    def kill_anywhere(self) -> None:
        """Kill a run at a random time after its start, and note the step that it was in."""
        with self._running("-") as run:
            self._wait(run, "after", "start", 1)
            time.sleep(self.chance.uniform(0, 3))
            step = max(run.inside, key=lambda one: run.inside[one], default=("between", 0))[0]
        self.anywhere[step] += 1

    @contextmanager
    def _running(self, aim: str) -> Iterator[Announced]:
        """A process of its own, which is killed with all of its children when the block ends."""
        self._request(after=3)
        reader, writer = os.pipe()
        place = self.place
        options = ["run", "--config", str(place.config), "--warehouse", str(place.warehouse)]
        with _log(place).open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "mssql_cdc_tests.end_to_end.announced_run", str(writer), aim, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
                pass_fds=[writer],
                env=WITH_TOKEN,
            )
        os.close(writer)
        run = Announced(process)
        thread = Thread(target=run.read, args=(reader, self.durations))
        thread.start()
        try:
            yield run
            assert process.poll() is None, f"the run ended by itself: {_tail(place)}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            thread.join()

    def _wait(self, run: Announced, phase: str, step: str, number: int) -> None:
        end = time.monotonic() + 90
        while not run.has_said(phase, step, number):
            assert run.process.poll() is None, f"the run ended by itself: {_tail(self.place)}"
            assert time.monotonic() < end, _missing(run, f"{phase} {step} {number}", self.place)
            self._request(after=10)  # A sweep gives way to a newer snapshot.
            time.sleep(0.005)

    def _request(self, *, after: float) -> None:
        """Request snapshots: the next incremental one when the former is done, and a blocking one now and then.

        Args:
            after: So many seconds after the last request at the earliest.
        """
        if time.monotonic() < self._asked + after:
            return
        self._asked = time.monotonic()
        wanted = {"incremental": list(TABLES)} if self._is_idle() else {}
        if self.chance.random() < 0.3:
            wanted["blocking"] = [self.chance.choice(TABLES)]
        for kind, tables in wanted.items():
            self.requests[kind] += 1
            names = [f"{self.place.database}.dbo.{table}" for table in tables]
            self.place.signal(f"{kind} {self.requests[kind]}", type=kind, **{"data-collections": names})

    def _is_idle(self) -> bool:
        """Whether no incremental snapshot is under way."""
        if not (self.place.warehouse / "shop" / self.place.database / "_incremental_snapshots").exists():
            return True  # A signal before the first run is not seen.
        rows = own_rows(self.place, "incremental_snapshots", "SELECT state FROM t ORDER BY _batch DESC LIMIT 1")
        state = json.loads(rows[0]["state"]) if rows else {}
        return not state.get("reading") and not state.get("queue")

    @property
    def histogram(self) -> str:
        """The kills in each step as a table."""
        lines = [f"{'step':10}{'before':>8}{'in':>8}{'behind':>8}{'by chance':>11}{'all':>8}"]
        for step in (*STEPS, *sorted(set(self.anywhere) - set(STEPS))):
            counts = [self.aimed[step, phase] for phase in PHASES]
            total = sum(counts) + self.anywhere[step]
            lines.append(f"{step:10}{''.join(f'{n:8}' for n in counts)}{self.anywhere[step]:11}{total:8}")
        total = sum(self.aimed.values()) + sum(self.anywhere.values())
        return "\n".join([*lines, f"{total} kills, seed {SEED}, {dict(self.requests)} requested"])


def _log(place: Place) -> Path:
    return place.folder / "run.log"


def _missing(run: Announced, wanted: str, place: Place) -> str:
    said = Counter(f"{phase} {step}" for phase, step, _ in run.said)
    return f"no {wanted} in {dict(said)}: {_tail(place)}"


def _tail(place: Place) -> str:
    return _log(place).read_text(encoding="utf-8")[-3_000:]


def _equal(place: Place) -> None:
    """Let a run catch up, and compare the lake with the source: all rows, and each change once and in order."""
    place.settle()
    command(place, "run", "--until-caught-up", "--timeout", "200", env=WITH_TOKEN)
    command(place, "check", env=WITH_TOKEN)
    for table in TABLES:
        (first,) = place.query("SELECT MIN(_pos) AS pos FROM t WHERE op = 'r'", table, "changes")
        expected = table_changes(place, table, first["pos"][5:25])
        image = "CASE WHEN op = 'd' THEN before ELSE after END"
        rows = place.query(
            f"SELECT op, {image} AS image FROM t WHERE _snapshot IS NULL ORDER BY _pos", table, "changes"
        )
        found = [(row["op"], row["image"]["id"], row["image"]["n"]) for row in rows]
        assert len(found) == len(expected)
        assert found == expected
        # No snapshot has read a key twice, and no sweep has found a row that the stream had lost.
        twice = "HAVING COUNT(*) > COUNT(DISTINCT _key) OR MIN(op) <> 'r' OR MAX(op) <> 'r'"
        grouped = f"SELECT _snapshot FROM t WHERE _snapshot IS NOT NULL GROUP BY _snapshot {twice}"
        assert place.query(grouped, table, "changes") == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.feature("SNP-35", "ERR-06", "INC-11")
def test_runs_killed_in_every_step_lose_and_double_nothing(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with open_place(server, tmp_path, server.database(1_000)) as place, served() as warm:
        _kill_and_compare(place, warm.url, capsys)


def _kill_and_compare(place: Place, remote: str, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(SEED)
    kills = Kills(place, chance)
    churn = Churn(place, random.Random(SEED))
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    create(place)
    churn.fill()
    # In a short run, every step is aimed at once.
    is_short = len(STEPS) * 2 > KILLS
    plan = [step for _ in range(-(-KILLS // len(STEPS))) for step in chance.sample(STEPS, len(STEPS))]
    aims: list[str | None] = [plan.pop() if one and (is_short or one % 2) else None for one in range(KILLS)]
    place.configure(
        signal_data_collection=f"{place.database}.dbo.signals",
        incremental_snapshot_chunk_size="20",
        spark_remote=remote,
    )
    for first in range(0, KILLS, EVERY):
        with churn.running():
            for aim in aims[first : first + EVERY]:
                if aim is None:
                    kills.kill_anywhere()
                else:
                    kills.kill_at(aim)
        _equal(place)
        with capsys.disabled():
            sys.stdout.write(f"\n{kills.histogram}\n")
    hits = {step: kills.anywhere[step] + sum(kills.aimed[step, phase] for phase in PHASES) for step in STEPS}
    least = 10 if KILLS >= 200 else min(1, KILLS // (len(STEPS) + 1))
    assert min(hits.values()) >= least, kills.histogram
