"""`make demo` under its workload, with the page of the asset graph open: the lag of its current tables.

The demo runs without a page of its own, because only then it compares the lake with the source at the end. A webserver
beside it answers what the browser asks every few seconds while it shows the graph. When the workload has ended, and
Dagster still runs, it is asked which assets are not green.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.pages import NoAnswerError, Pages, WebserverError, webserver

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 5.0
"""How often the browser asks for the states of the assets that it shows."""
PATIENCE = 180.0


ANSWER_SECONDS = 60.0
"""How long an answer may take before the question counts as failed."""
TAIL_BYTES = 16_384
STOPPED = "Workload stopped"
"""What the demo says when it only waits for the lake: the states of the assets are asked for."""


@dataclass(slots=True)
class Asked:
    """What the open page asked: how often, how often in vain, and the assets that were not green at the end."""

    all: int = 0
    failed: int = 0
    faults: Mapping[str, str] | None = None
    error: str = ""

    def failing(self, error: Exception) -> None:
        """Count an answer that did not come."""
        self.failed += 1
        self.error = str(error)


def demo(bench: Bench) -> Iterator[Figure]:
    """Run the demo; its own samples are the figures, also when something else fails."""
    figures, log_file, asked = bench.folder / "lags.json", bench.folder / "demo.log", Asked()
    shutil.copy(ROOT / "dagster.yaml", bench.folder)
    words = ["--headless", "--seconds", str(bench.sizes.seconds), "--json", str(figures)]
    bench.say(f"demo: begins; it streams for {bench.sizes.seconds:,.0f} s")
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mssql_cdc.demo", *words],
            cwd=bench.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _open_page(bench, process, log_file, asked)
            code = process.wait()
        finally:
            process.terminate()
            process.wait(120)
    if figures.exists():
        yield from _lags(bench, {one["name"]: one["value"] for one in json.loads(figures.read_text())})
    yield from _page(bench, asked)
    if code:
        raise RuntimeError("\n".join([*log_file.read_text(errors="replace").splitlines()[-60:], asked.error]))
    if asked.failed and 2 * asked.failed >= asked.all:
        raise RuntimeError(f"{asked.failed} of {asked.all} questions of the page failed: {asked.error}")
    if asked.faults is None:
        raise RuntimeError(f"the states of the assets at the end are unknown: {asked.error}")


def _lags(bench: Bench, found: Mapping[str, float]) -> Iterator[Figure]:
    for name in ("median", "95 %", "worst"):
        note = f"in second {found['number of the worst lag sample']:,}" if name == "worst" else ""
        yield bench.goal(f"demo/{name}", found[f"lag of current tables, {name}"], note=note)
    what = f"make demo, {bench.sizes.seconds:,.0f} s"
    yield Figure(f"{what}: lag samples", found["lag samples"], "")
    yield Figure(f"{what}: lag samples that could not be read", found["lag samples missed"], "")
    yield Figure(f"{what}: CPU of a lag sample", 1000 * found["CPU of a lag sample"], "ms")


def _page(bench: Bench, asked: Asked) -> Iterator[Figure]:
    what = f"make demo, {bench.sizes.seconds:,.0f} s"
    yield Figure(f"{what}: times that the open page asked for all states", asked.all, "")
    yield Figure(f"{what}: times that it got no answer", asked.failed, "", note=asked.error[:200])
    if asked.faults is not None:
        note = "; ".join(f"{name} is {said}" for name, said in asked.faults.items())
        yield bench.goal("demo/green", len(asked.faults), note=note)


def _open_page(bench: Bench, process: subprocess.Popen[bytes], log: Path, asked: Asked) -> None:
    """Ask as an open page does until the demo has ended; then for what is not green.

    Args:
        bench: The place of the part.
        process: The demo.
        log: What it says.
        asked: Counts the questions.
    """
    place, end = bench.folder / ".demo", time.monotonic() + PATIENCE
    # The daemon speaks first when it has created the instance's storage, which two processes must not do at once.
    while not (place / "dagster.log").exists() or not (place / "dagster.log").stat().st_size:
        if process.poll() is not None or time.monotonic() > end:
            return  # What it has said is shown with its exit code.
        time.sleep(0.5)
    try:
        with webserver(
            place, home=place / "dagster", connectors=place / "connectors", patience=ANSWER_SECONDS
        ) as pages:
            keys = pages.asset_keys()
            if not keys:
                raise WebserverError(f"the code location shows no assets:\n{(place / 'webserver.log').read_text()}")
            bench.say(f"demo: a page with {len(keys)} assets is open")
            _ask(pages, keys, process, log, asked)
    except (NoAnswerError, WebserverError) as error:
        asked.all += 1
        asked.failing(error)


def _ask(pages: Pages, keys: Sequence[dg.AssetKey], process: subprocess.Popen[bytes], log: Path, asked: Asked) -> None:
    due, stopped = time.monotonic(), False
    while process.poll() is None or asked.faults is None:
        ended = process.poll() is not None
        stopped = stopped or ended or STOPPED in _end_of(log)
        try:
            if stopped and asked.faults is None:
                asked.faults = pages.faults(keys)
            elif time.monotonic() >= due:
                due = time.monotonic() + POLL_SECONDS
                asked.all += 1
                pages.ask_states(keys)
        except NoAnswerError as error:
            asked.failing(error)
            if ended:
                return
        time.sleep(0.2)


def _end_of(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace")
