"""`make conformance`: every workload beside the real Debezium; prints a table and can write the verdicts as JSON."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from mssql_sandbox.process import sandbox_process
from rich.console import Console
from rich.table import Table

from mssql_cdc_tests.conformance.bench import Bench
from mssql_cdc_tests.conformance.courses import COURSES
from mssql_cdc_tests.conformance.courses.generated import generated
from mssql_cdc_tests.conformance.judge import results
from mssql_cdc_tests.conformance.workload import Course, Result


@click.command()
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Write the verdicts here.")
@click.option("--course", "names", multiple=True, type=click.Choice(sorted(COURSES)), help="Run only these courses.")
@click.option("--seed", "seeds", multiple=True, type=int, help="Run random scripts of this seed as well.")
@click.option("--scripts", default=12, show_default=True, help="How many random scripts each seed gives.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep all records and logs here.")
@click.option("--list", "is_listing", is_flag=True, help="List the workloads and run none.")
def program(
    output: Path | None,
    names: tuple[str, ...],
    seeds: tuple[int, ...],
    scripts: int,
    keep: Path | None,
    *,
    is_listing: bool,
) -> None:
    """Compare the records of all workloads with those of the real Debezium 3.3.1.

    Without --course and --seed, all courses and random scripts of a new seed.
    """
    courses = [course for name, course in COURSES.items() if name in names or not (names or seeds)]
    if not (names or seeds or is_listing):
        seeds = (random.SystemRandom().randrange(1_000_000),)
    for number in seeds:
        click.echo(f"random scripts: --seed {number} --scripts {scripts}", err=True)
        courses.append(generated(number, scripts=scripts))
    if is_listing:
        for course in courses:
            for workload in course.workloads():
                click.echo(f"{workload.name}\t{workload.script.group}\t{workload.script.restates}")
        return
    found = run(courses, keep)
    show(found)
    if output is not None:
        rows = [{"workload": one.workload, "group": one.group, "verdict": one.verdict} for one in found]
        output.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(any(one.verdict == "different" for one in found))


def run(courses: Sequence[Course], keep: Path | None) -> list[Result]:
    """Run courses one after another at one server, in one JVM for each version and one Spark session.

    Args:
        courses: The courses.
        keep: A folder for state, records and logs; None: a temporary one.
    """
    began, found = time.monotonic(), list[Result]()
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "sandbox.log"
        with (
            sandbox_process(folder, "--capture-interval", "0.1", log=log) as server,
            Bench(server, folder, say=lambda line: click.echo(line, err=True)) as bench,
        ):
            for course in courses:
                own = list(results(course, bench.run(course)))
                show_differences(own)
                found += own
    click.echo(f"{len(found)} workloads in {time.monotonic() - began:.0f} s", err=True)
    return found


def show_differences(found: Sequence[Result]) -> None:
    """Print what differs."""
    for one in found:
        for line in one.differences[:12]:
            click.echo(f"{one.workload}: {line}")
        if len(one.differences) > 12:
            click.echo(f"{one.workload}: … {len(one.differences) - 12} more")


def show(found: Sequence[Result]) -> None:
    """Print a table of all verdicts."""
    table = Table("group", "workloads", "equal", "listed", "different", title="Records beside Debezium 3.3.1")
    for group in sorted({one.group for one in found}):
        counts = Counter(one.verdict for one in found if one.group == group)
        table.add_row(group, str(counts.total()), *(str(counts[name]) for name in ("equal", "listed", "different")))
    total = Counter(one.verdict for one in found)
    table.add_row("all", str(total.total()), *(str(total[name]) for name in ("equal", "listed", "different")))
    Console(width=100).print(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    program()
