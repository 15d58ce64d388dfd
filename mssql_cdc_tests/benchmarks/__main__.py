"""`make bench`: prints a table of figures; `ARGS="ticks"` for some, `ARGS="--full --json FILE"` for all of issue 11.

Each part runs in a process of its own, one after another, with sandboxes of its own.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mssql_cdc_tests.benchmarks.bench import Bench, say
from mssql_cdc_tests.benchmarks.figures_file import FiguresFile, markdown
from mssql_cdc_tests.benchmarks.goals import goals
from mssql_cdc_tests.benchmarks.parts import PARTS
from mssql_cdc_tests.benchmarks.sizes import FULL, SMALL, TINY, Sizes

SANDBOX = Path(__file__).parents[2] / "sandbox"
EVERY = (*PARTS, "sandbox")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(EVERY)} (default: all)")
    presets = parser.add_mutually_exclusive_group()
    presets.add_argument(
        "--full", action="store_true", help="the sizes of issue 11: two to three hours, 20 GiB of memory"
    )
    presets.add_argument("--tiny", action="store_true", help="see that everything works; the figures say nothing")
    parser.add_argument("--rows", type=int, help="rows of the large tables of snapshots, large and memory")
    parser.add_argument("--changes", type=int, help="changes over twenty tables, a round")
    parser.add_argument("--tables", type=int, help="tables of ticks and windows")
    parser.add_argument("--days", type=int, help="days of windows")
    parser.add_argument("--seconds", type=float, help="how long the demo streams")
    parser.add_argument("--repeat", type=int, help="rounds behind each median")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as a list, too, part by part")
    parser.add_argument("--update", action="store_true", help="keep what FILE has of other parts")
    parser.add_argument("--list-targets", action="store_true", help="only print what has a target")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="only print the tables of such a file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(EVERY):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(EVERY)}")
    return options


def sizes_of(options: argparse.Namespace) -> Sizes:
    """The sizes that the options ask for."""
    sizes = FULL if options.full else TINY if options.tiny else SMALL
    if options.rows:
        sizes = replace(sizes, rows=options.rows, memory=options.rows, large=options.rows)
    if options.changes:
        sizes = replace(sizes, stream=options.changes, records=options.changes)
    if options.tables:
        sizes = replace(sizes, many=min(sizes.many, options.tables), captured=options.tables)
    given = {name: found for name in ("days", "seconds", "repeat") if (found := getattr(options, name))}
    return replace(sizes, **given)


def main(arguments: Sequence[str]) -> int:
    """Run the selected parts; return 1 if one of them could not be run."""
    options = parse(arguments)
    sizes, parts = sizes_of(options), [part for part in EVERY if part in (options.parts or EVERY)]
    if options.list_targets:
        for goal in goals(parts, sizes):
            _print(f"{goal.name}: {goal.bound} {goal.target:g} {goal.unit}")
        return 0
    if options.markdown:
        _print("\n".join(markdown(FiguresFile(options.markdown).read(), parts=parts, sizes=sizes)))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # What was started is stopped.
    if options.here:
        _run_here(parts[0], sizes, options.json)
        return 0
    if options.json:
        options.json.unlink(missing_ok=True) if not options.update else FiguresFile(options.json).drop(parts)
    failed = [part for part in parts if not _run_apart(part, arguments, options.parts)]
    if failed:
        say(f"could not be run: {', '.join(failed)}")
    return 1 if failed else 0


def _run_apart(part: str, arguments: Sequence[str], named: Sequence[str]) -> bool:
    """Run a part in a process of its own; whether it was run.

    Args:
        part: The part.
        arguments: The arguments of this command.
        named: The parts among them.
    """
    say(f"part {part} begins")
    begun = time.monotonic()
    command, folder = [sys.executable, "-m", "benchmarks"], SANDBOX
    if part != "sandbox":
        rest = [word for word in arguments if word not in named]
        command, folder = [sys.executable, "-m", "mssql_cdc_tests.benchmarks", part, *rest, "--here"], None
    # A session of its own: it gets one signal, ours, and stops what it has started.
    process = subprocess.Popen(command, cwd=folder, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(120)
        raise
    say(f"part {part} {'took' if code == 0 else 'FAILED after'} {time.monotonic() - begun:,.0f} s")
    return code == 0


def _run_here(part: str, sizes: Sizes, file: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix=f"bench-{part}-") as name:
        for figure in PARTS[part](Bench(Path(name), sizes)):
            _print(figure.text)
            if file is not None:
                FiguresFile(file).add(part, figure)


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 (a report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
