"""`python -m benchmarks` (`make bench ARGS=sandbox`): prints a table of the sandbox's figures."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Figure
from benchmarks.reading import reading
from benchmarks.scale import crowded, memory
from benchmarks.server import sandbox
from benchmarks.writing import writing


def main(argv: Sequence[str] | None = None) -> None:
    """Run every benchmark, each on a sandbox of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows served and written (default: %(default)s)")
    parser.add_argument("--statements", type=int, default=4_000, help="single statements (default: %(default)s)")
    parser.add_argument(
        "--memory-rows", type=int, default=0, help="also measure memory with this many rows, such as 5000000"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        for figure in _figures(options, Path(name)):
            print(f"{figure.what:<70} {figure.value}", flush=True)  # noqa: T201 (a report)


def _figures(options: argparse.Namespace, folder: Path) -> Iterator[Figure]:
    with sandbox(folder) as server:
        yield from reading(server, folder, rows=options.rows)
    with sandbox(folder) as server:
        yield from writing(server, folder, statements=options.statements, rows=options.rows)
    yield from crowded(folder)
    if options.memory_rows:
        yield from memory(folder, rows=options.memory_rows)


if __name__ == "__main__":
    main()
