"""`make storm`: plays random schedules in runs, each with a seed of its own, and prints a line per run."""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mssql_cdc_tests.storm.machine import Storm, storm
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.mutants import MUTANTS, WHOLE_MUTANTS
from mssql_cdc_tests.storm.worlds import World

MOST_FOR_A_MUTANT = {"model": 2_000, "whole": 60}
SIZES = {"model": (20_000, 1_000, 20), "whole": (300, 20, 10)}
"""Schedules in all and in one run, and the steps of a schedule, by world."""


def main() -> None:
    """Play the schedules; exit with 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=SIZES, default="model", help="what to play in (default: %(default)s)")
    parser.add_argument("--schedules", type=int, help="schedules in all")
    parser.add_argument("--run", type=int, help="schedules in one run")
    parser.add_argument("--steps", type=int, help="the most steps of a schedule")
    parser.add_argument("--seed", type=int, help="seed of the first run; the next ones follow it (default: random)")
    parser.add_argument(
        "--mutants", action="store_true", help="plant each defect of mutants.py and count the schedules that find it"
    )
    parser.add_argument("--part", default="1/1", help="of the defects, such as 1/2 (default: %(default)s)")
    parser.add_argument("--only", default="", help="only the defects whose description contains this text")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest schedule that fails")
    options = parser.parse_args()
    defaults = SIZES[options.world]
    total, size, steps = options.schedules or defaults[0], options.run or defaults[1], options.steps or defaults[2]
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    if options.mutants:
        sys.exit(_mutants(options.world, options.schedules, steps, options.seed or 0, options.part, options.only))
    failed = []
    with _world(options.world) as (make, machine):
        for number, done in enumerate(range(0, total, size)):
            wanted, begun = min(size, total - done), time.monotonic()
            try:
                storm(
                    make,
                    machine=machine,
                    schedules=wanted,
                    steps=steps,
                    seed=seed + number,
                    shrink=options.shrink,
                )
            except Exception:  # noqa: BLE001 (the next run goes on)
                traceback.print_exc()
                failed.append(seed + number)
            seconds = time.monotonic() - begun
            verdict = "FAILED" if failed[-1:] == [seed + number] else "ok"
            _say(f"seed {seed + number}: {wanted} schedules of {steps} steps in {seconds:.0f} s: {verdict}")
    _say(f"{total} schedules, {len(failed)} failed runs{': seeds ' + str(failed) if failed else ''}")
    sys.exit(bool(failed))


def _mutants(world: str, schedules: int | None, steps: int, seed: int, part: str, only: str) -> int:
    """Print a line of a table per defect; return how many were not found."""
    most = schedules or MOST_FOR_A_MUTANT[world]
    missed = 0
    mine, parts = (int(number) for number in part.split("/"))
    with _world(world) as (make, machine):
        wanted = [one for one in (MUTANTS if world == "model" else WHOLE_MUTANTS) if only in one.what]
        for mutant in wanted[mine - 1 :: parts]:
            numbers, begun, found = itertools.count(), time.monotonic(), ""
            with mutant.planted():
                try:
                    storm(make, machine=machine, schedules=most, steps=steps, seed=seed, numbers=numbers)
                except Exception as error:  # noqa: BLE001 (whatever the defect breaks)
                    found = f"{type(error).__name__}: {error}".partition("\n")[0]
            # A schedule that fails is played once more.
            played = next(numbers) - bool(found)
            missed += not found
            _say(
                f"| {mutant.rule} | {mutant.what} | {played if found else f'not in {played}'} | {found[:90]} |"
                f" {time.monotonic() - begun:.0f} s |"
            )
    return missed


@contextmanager
def _world(name: str) -> Iterator[tuple[Callable[[Path], World], type[Storm]]]:
    if name == "model":
        yield ModelWorld, Storm
        return
    from mssql_sandbox.process import sandbox_process

    from mssql_cdc.spark.session import SparkSettings, start_session
    from mssql_cdc_tests.storm.whole import WholeWorld
    from mssql_cdc_tests.storm.whole_machine import WholeStorm

    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder, sandbox_process(Path(folder)) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own startup warns about unclosed sockets.
        spark = start_session(SparkSettings.from_environment(confs={"spark.sql.shuffle.partitions": "1"}))
        yield (lambda path: WholeWorld(server, spark, path, f"storm{next(numbers)}")), WholeStorm
        spark.stop()


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (a report)


if __name__ == "__main__":
    main()
