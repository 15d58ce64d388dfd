"""`make bench`: prints a table of figures; `ARGS="sandbox"` or `ARGS="connector --rows 100000"` for some of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks.capture import snapshot_and_changes, warm_tick
from mssql_cdc_tests.benchmarks.current import folds
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.records import rendering
from mssql_cdc_tests.benchmarks.server import sandbox

PARTS = ("sandbox", "connector", "current", "records")
SANDBOX = Path(__file__).parents[2] / "sandbox"


def main() -> None:
    """Run the selected benchmarks, each on its own sandboxes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large table (default: %(default)s)")
    parser.add_argument(
        "--changes", type=int, default=200_000, help="changes over twenty tables (default: %(default)s)"
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    parts = options.parts or PARTS
    if "sandbox" in parts:
        subprocess.run([sys.executable, "-m", "benchmarks"], cwd=SANDBOX, check=True)
    with tempfile.TemporaryDirectory() as name:
        for figure in _figures(options, Path(name), parts):
            print(f"{figure.what:<70} {figure.value}", flush=True)  # noqa: T201 (a report)


def _figures(options: argparse.Namespace, folder: Path, parts: Collection[str]) -> Iterator[Figure]:
    if "current" in parts:
        yield from folds(folder / "current")
    if "records" in parts:
        with sandbox(folder) as server:
            yield from rendering(server, folder, changes=options.changes)
    if "connector" not in parts:
        return
    with sandbox(folder) as server:
        yield from snapshot_and_changes(server, folder, rows=options.rows, changes=options.changes)
        yield from warm_tick(server, folder)


if __name__ == "__main__":
    main()
