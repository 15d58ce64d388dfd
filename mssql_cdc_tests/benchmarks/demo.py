"""`make demo` under its workload, with the page of the asset graph open: the lag of its current tables.

The demo runs without a page of its own, because only then it compares the lake with the source at the end. A webserver
beside it answers what the browser asks every few seconds while it shows the graph.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.pages import webserver

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 5.0
"""How often the browser asks for the states of the assets that it shows."""
PATIENCE = 180.0


def demo(bench: Bench) -> Iterator[Figure]:
    """Run the demo; its own samples are the figures."""
    figures, log_file = bench.folder / "lags.json", bench.folder / "demo.log"
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
            asked = _open_page(bench, process)
            code = process.wait()
        finally:
            process.terminate()
            process.wait(120)
    if code:
        raise RuntimeError("\n".join(log_file.read_text(errors="replace").splitlines()[-40:]))
    found = {one["name"]: one["value"] for one in json.loads(figures.read_text())}
    for name in ("median", "95 %", "worst"):
        yield bench.goal(f"demo/{name}", found[f"lag of current tables, {name}"])
    what = f"make demo, {bench.sizes.seconds:,.0f} s"
    yield Figure(f"{what}: lag samples", found["lag samples"], "")
    yield Figure(f"{what}: lag samples that could not be read", found["lag samples missed"], "")
    yield Figure(f"{what}: CPU of a lag sample", 1000 * found["CPU of a lag sample"], "ms")
    yield Figure(f"{what}: times that the open page asked for all states", asked, "")


def _open_page(bench: Bench, process: subprocess.Popen[bytes]) -> int:
    """Ask as an open page does until the demo has ended; return how often."""
    place, asked, end = bench.folder / ".demo", 0, time.monotonic() + PATIENCE
    while not (place / "dagster" / "dagster.yaml").exists():
        if process.poll() is not None or time.monotonic() > end:
            return 0  # What it has said is shown with its exit code.
        time.sleep(0.5)
    with webserver(place, home=place / "dagster", connectors=place / "connectors") as pages:
        keys = pages.asset_keys()
        bench.say(f"demo: a page with {len(keys)} assets is open")
        while process.poll() is None:
            begun = time.monotonic()
            pages.ask_states(keys)
            asked += 1
            time.sleep(max(0.0, begun + POLL_SECONDS - time.monotonic()))
    return asked
