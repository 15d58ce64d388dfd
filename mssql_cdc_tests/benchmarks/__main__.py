"""`make bench`: prints a table of figures; `ARGS="sandbox"` or `ARGS="connector --rows 100000"` for a part of them."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks.capture import snapshot_and_changes, warm_tick
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.sandbox import sandbox_figures
from mssql_cdc_tests.benchmarks.server import sandbox

PARTS = ("sandbox", "connector")


def main() -> None:
    """Runs the chosen benchmarks, each on sandboxes of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{' or '.join(PARTS)} (default: both)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large table (default: %(default)s)")
    parser.add_argument(
        "--changes", type=int, default=200_000, help="changes over twenty tables (default: %(default)s)"
    )
    parser.add_argument(
        "--sandbox-rows",
        type=int,
        default=200_000,
        help="rows that the sandbox serves and takes (default: %(default)s)",
    )
    parser.add_argument("--statements", type=int, default=4_000, help="single statements (default: %(default)s)")
    parser.add_argument(
        "--memory-rows", type=int, default=0, help="also the sandbox's memory with so many rows, such as 5000000"
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {' and '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as name:
        for figure in _figures(options, Path(name)):
            print(f"{figure.what:<70} {figure.value}", flush=True)  # noqa: T201 (a report)


def _figures(options: argparse.Namespace, folder: Path) -> Iterator[Figure]:
    parts = options.parts or PARTS
    if "sandbox" in parts:
        yield from sandbox_figures(
            folder, rows=options.sandbox_rows, statements=options.statements, memory_rows=options.memory_rows
        )
    if "connector" in parts:
        with sandbox(folder) as server:
            yield from snapshot_and_changes(server, folder, rows=options.rows, changes=options.changes)
            yield from warm_tick(server, folder)


if __name__ == "__main__":
    main()
