"""`make bench`: prints a table of figures; `ARGS="--rows 100000 --changes 20000"` for a quick one."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from mssql_cdc_tests.benchmarks.capture import snapshot_and_changes, warm_tick
from mssql_cdc_tests.benchmarks.server import sandbox


def main() -> None:
    """Runs all benchmarks on one sandbox."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large table (default: %(default)s)")
    parser.add_argument(
        "--changes", type=int, default=200_000, help="changes over twenty tables (default: %(default)s)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with sandbox(folder) as server:
            for figure in snapshot_and_changes(server, folder, rows=options.rows, changes=options.changes):
                print(f"{figure.what:<70} {figure.value}", flush=True)  # noqa: T201 (a report)
            for figure in warm_tick(server, folder):
                print(f"{figure.what:<70} {figure.value}", flush=True)  # noqa: T201 (a report)


if __name__ == "__main__":
    main()
