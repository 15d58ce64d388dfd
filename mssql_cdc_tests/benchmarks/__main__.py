"""`make bench`: prints a table of figures; `ARGS="ticks"` for some of them, `ARGS="--json FILE"` to keep them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks.current import folds, large
from mssql_cdc_tests.benchmarks.follow import follow
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.records import rendering
from mssql_cdc_tests.benchmarks.server import sandbox
from mssql_cdc_tests.benchmarks.start import memory, start
from mssql_cdc_tests.benchmarks.stream import changes, snapshots
from mssql_cdc_tests.benchmarks.ticks import CASES, Case, ticks
from mssql_cdc_tests.benchmarks.windows import windows

PARTS = (
    "sandbox",
    "current",
    "large",
    "start",
    "ticks",
    "changes",
    "snapshots",
    "records",
    "follow",
    "memory",
    "windows",
)
SANDBOX = Path(__file__).parents[2] / "sandbox"


def main() -> None:
    """Run the selected benchmarks, each on its own sandbox."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large table (default: %(default)s)")
    parser.add_argument(
        "--changes", type=int, default=200_000, help="changes over twenty tables, a round (default: %(default)s)"
    )
    parser.add_argument("--tables", type=int, help="only the ticks over so many tables; windows of so many (300)")
    parser.add_argument("--days", type=int, default=60, help="days of windows (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="rounds behind each median (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as a list, too")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    parts = options.parts or PARTS
    if "sandbox" in parts:
        subprocess.run([sys.executable, "-m", "benchmarks"], cwd=SANDBOX, check=True)
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for figure in _figures(options, Path(name), parts):
            found.append(figure)
            print(figure.text, flush=True)  # noqa: T201 (a report)
            if options.json:
                options.json.write_text(json.dumps([one.to_json() for one in found], indent=1) + "\n")


def _figures(options: argparse.Namespace, folder: Path, parts: Collection[str]) -> Iterator[Figure]:
    if "current" in parts:
        yield from folds(folder / "current")
    if "large" in parts:
        yield from large(folder / "large", rows=options.rows)
    if not set(parts) - {"current", "large", "sandbox"}:
        return
    with sandbox(folder) as server:
        if "start" in parts:
            yield from start(server, folder)
        if "ticks" in parts:
            yield from ticks(server, folder, cases=_cases(options.tables), repeat=options.repeat)
        if "changes" in parts:
            yield from changes(server, folder, rows=options.changes, repeat=options.repeat)
        if "snapshots" in parts:
            yield from snapshots(server, folder, rows=options.rows)
        if "records" in parts:
            yield from rendering(server, folder, rows=options.changes, repeat=options.repeat)
        if "follow" in parts:
            yield from follow(server, folder, repeat=options.repeat)
        if "memory" in parts:
            yield from memory(server, folder, rows=options.rows)
        if "windows" in parts:
            count = options.tables or 300
            yield from windows(server, folder, tables=count, days=options.days, repeat=options.repeat)


def _cases(tables: int | None) -> list[Case]:
    if tables is None:
        return list(CASES)
    known = [case for case in CASES if case.tables == tables]
    return known or [Case(tables, ((1, None), (tables, None)))]


if __name__ == "__main__":
    main()
