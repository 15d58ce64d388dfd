"""The verdict on a table, which its check `captured_faithfully` shows: a pure function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import dagster as dg

from mssql_cdc.defs.report import ACKNOWLEDGE, READ_AGAIN, TRY_AGAIN
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.steps import Entry

LATE = timedelta(minutes=5)
_ERROR, _WARNING = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a table's check: WARN when the table is late, ERROR when the lake differs from the source.

    It is `of_capture` if a run has met the problem during capture: no snapshot fixes it.
    """

    passed: bool
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    problem: str | None = None
    what_to_do: str | None = None
    late: bool = False
    absent: bool = False
    of_capture: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """What a verdict depends on.

    Attributes:
        entry: The table's newest entry in `_offsets`.
        gaps: Its open gaps.
        error: The error of its last read.
        unmerged: The error of the last update of its current table.
        late: Why the whole database is late.
        lag: The age of the oldest change that may be missing.
        retention: How long the source keeps changes.
        absent: Why the table cannot be captured now (`run/standing`); None: it can.
        unreported: Why the table could not be reported; None: it could.
        try_again: What to do about the table if it was given up while it streamed.
    """

    entry: Entry
    gaps: Sequence[Gap]
    error: MssqlCdcError | None
    late: str | None
    lag: timedelta
    retention: timedelta
    absent: str | None = None
    unmerged: MssqlCdcError | None = None
    unreported: str | None = None
    try_again: str = TRY_AGAIN


def verdict_of(found: Condition, redact: Callable[[str], str]) -> Verdict:
    """Return the verdict; `redact` removes secrets from an error's text."""
    again = found.try_again if found.entry.to is not None else f"mend what the problem names; then {READ_AGAIN}"
    advice = {"lost": READ_AGAIN, "failed": again}.get(found.entry.status)
    advice = advice if found.absent is None else TRY_AGAIN  # A table that is not there cannot be read again.
    problems = [gap.text for gap in found.gaps]
    if found.entry.status in {"lost", "failed"} and not problems:
        problems = [f"the table is {found.entry.status}: {found.entry.reason}"]
    if found.absent is not None and not any(found.absent in problem for problem in problems):
        problems.append(found.absent)
    if problems:
        steps = [step for step in (advice, ACKNOWLEDGE if found.gaps else None) if step]
        text, todo = redact("; ".join(problems)), "; then ".join(steps)
        return Verdict(passed=False, problem=text, what_to_do=todo, absent=found.absent is not None)
    for error, what in ((found.error, ""), (found.unmerged, "the current table is not updated: ")):
        if error is not None:
            mild = error.retriable or isinstance(error, FencedError)
            text = redact(f"{what}{type(error).__name__}: {error}")
            return Verdict(passed=False, severity=_WARNING if mild else _ERROR, problem=text, of_capture=True)
    if found.unreported is not None:
        text = redact(f"the table could not be reported: {found.unreported}")
        return Verdict(passed=False, problem=text, of_capture=True)
    late = _lateness(found)
    if late is not None:
        return Verdict(passed=False, severity=_WARNING, problem=f"late: {late}", late=True, of_capture=True)
    return Verdict(passed=True)


def _lateness(found: Condition) -> str | None:
    if found.late is not None:
        return found.late
    if found.lag > found.retention * 3 / 4:
        return "the table is almost as far behind as the source keeps changes: it may lose some soon"
    return "capture catches up" if found.lag > LATE else None
