"""Judges workloads: their records are equal, differ as listed, or differ."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_cdc_tests.conformance.bench import Seen
from mssql_cdc_tests.conformance.compare import differences
from mssql_cdc_tests.conformance.differences import DIFFERENCES
from mssql_cdc_tests.conformance.heartbeats import INTERVAL, judged_heartbeats
from mssql_cdc_tests.conformance.workload import Course, Result, Workload


def results_of(course: Course, seen: Seen) -> Iterator[Result]:
    """Yield the verdict on each workload, and on each reading's order of the whole stream and its heartbeats."""
    for workload in course.workloads():
        yield judged(workload, seen)
    for reading in course.readings:
        if reading.is_ours and course.is_ordered:
            yield _order(course, reading.name, seen)
        if reading.is_ours and INTERVAL in reading.properties:
            yield judged_heartbeats(course, reading, seen)


def judged(workload: Workload, seen: Seen) -> Result:
    """Return the verdict on one workload."""
    script, name = workload.script, workload.reading.name
    database = workload.course.databases[script.database]
    ours, theirs = seen.ours[name].of(script, database), seen.theirs[name].of(script, database)
    count, found = len(theirs), differences(ours, theirs)
    shown: list[str] = []
    for key in workload.expected:
        adapt = DIFFERENCES[key].adapt
        assert adapt is not None, f"{key} names no records that it adapts"
        adapted = adapt(theirs, ours)
        if adapted != theirs:
            shown.append(key)
        theirs = adapted
    left = differences(ours, theirs) if shown else found
    if bool(count) == (name in script.silent):
        left.append("Debezium has records" if count else "Debezium has no records")
    left += [f"the listed difference {key} does not show" for key in script.expects(name) if key not in shown]
    verdict = "different" if left else "listed" if found else "equal"
    return Result(
        workload.name, script.group, script.restates, verdict, count, tuple(shown if found else ()), tuple(left)
    )


def _order(course: Course, reading: str, seen: Seen) -> Result:
    ours, theirs = seen.ours[reading].places(), seen.theirs[reading].places()
    lines = [
        f"record {place}: {own} where Debezium has {other}"
        for place, (own, other) in enumerate(zip(ours, theirs, strict=False))
        if own != other
    ][:5]
    if len(ours) != len(theirs):
        lines.append(f"{len(ours)} records, Debezium has {len(theirs)}")
    name = f"{course.name}/order of all tables/{reading}"
    verdict = "different" if lines else "equal"
    return Result(name, "order", "SqlServerConnectorIT.restartInTheMiddleOfTx", verdict, len(theirs), (), tuple(lines))
