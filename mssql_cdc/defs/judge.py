"""The checks of a run's tables: which verdicts have changed, and what a check says.

`verdicts.py` derives a verdict from a condition; this module has the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import dagster as dg

from mssql_cdc.defs.asset_events import AssetEvents
from mssql_cdc.defs.newest_checks import mildness, newest_checks
from mssql_cdc.defs.progress import Progress
from mssql_cdc.defs.recorder import is_of_storage
from mssql_cdc.defs.report import try_again
from mssql_cdc.defs.shown import told
from mssql_cdc.defs.table_states import Seen, TableStates
from mssql_cdc.defs.verdicts import Condition, Verdict, verdict_of
from mssql_cdc.schema import TableId

Before = tuple[tuple[object, ...], Seen]
"""What verdicts depended on: facts about the whole database, and about the tables."""


@dataclass
class Judge:
    """Evaluates `captured_faithfully` for the tables.

    Attributes:
        events: Where the events are built.
        progress: How far the run has read.
        states: What is known about the tables.
        uncounted: Why tables could not be counted.
        unreported: Why tables could not be reported.
        verdicts: What their checks said last.
    """

    events: AssetEvents
    progress: Progress
    states: TableStates
    uncounted: dict[TableId, str] = field(default_factory=dict[TableId, str])
    unreported: dict[TableId, str] = field(default_factory=dict[TableId, str])
    verdicts: dict[TableId, Verdict] = field(default_factory=dict[TableId, Verdict])
    _said: dict[TableId, str] = field(default_factory=dict[TableId, str])

    def before(self) -> Before:
        """What verdicts depend on now."""
        return (self.progress.late, self.states.retention, self.progress.lags.asked), self.states.seen()

    def judge_since(self, before: Before) -> None:
        """Judge the tables whose verdict may have changed."""
        whole, seen = before
        self.judge(self.states.changed_since(seen) if whole == self.before()[0] else None)

    def judge(self, tables: Collection[TableId] | None = None) -> None:
        """Evaluate the checks whose verdict has changed, of these tables or of all."""
        states = self.states
        for table in states.setup.names.tables if tables is None else tables:
            if states.offsets is None or not states.is_wanted(table):
                continue
            if states.offsets.entry(table.text) is None and table.text not in states.absent:
                continue  # It waits for its first snapshot.
            verdict = self.verdict(table)
            if states.entry(table).status == "snapshot" and (verdict.passed or verdict.of_capture):
                continue  # The run that takes the snapshot reports its state: it may have failed.
            if self.verdicts.get(table) != verdict:
                self.evaluate(table, verdict)

    def forget_milder(self, instance: dg.DagsterInstance) -> None:
        """Let problems be reported again for tables that a snapshot or an operator has since judged more mildly.

        Args:
            instance: The instance that has their checks.
        """
        wrong = {table: verdict for table, verdict in self.verdicts.items() if not verdict.passed}
        for table, newest in newest_checks(self.states.setup, instance, wrong).items():
            said = mildness(passed=False, severity=wrong[table].severity)
            if mildness(passed=newest.passed, severity=newest.severity) > said:
                del self.verdicts[table]

    def is_late(self, table: TableId) -> bool:
        """Whether a table's check said that it is late."""
        verdict = self.verdicts.get(table)
        return verdict is not None and verdict.late

    def verdict(self, table: TableId) -> Verdict:
        """The verdict on a table as of now."""
        states, setup = self.states, self.states.setup
        found = Condition(
            entry=states.entry(table),
            gaps=states.gaps.get(table.text, ()),
            error=states.errors.get(table),
            unmerged=states.unmerged.get(table),
            unreported=self.uncounted.get(table) or self.unreported.get(table),
            late=self.progress.late,
            lag=timedelta(seconds=(self.progress.lags.unread(table) if states.captures else None) or 0),
            retention=states.retention,
            absent=states.absent.get(table.text),
            try_again=try_again(setup),
        )
        return verdict_of(found, setup.connector.redact)

    def evaluate(self, table: TableId, verdict: Verdict, window: datetime | None = None) -> None:
        """Write a table's check.

        Args:
            table: The table.
            verdict: The verdict on it.
            window: The window that has ended; None: the check is not about one.
        """
        values = {
            "open_gaps": len(self.states.gaps.get(table.text, ())) or None,
            "to_lsn": self.states.entry(table).to,
            "as_of": self.progress.through,
        }
        self.events.check(table, verdict, values, window)
        self.verdicts[table] = verdict

    def count_apart(self, table: TableId, count: Callable[[], None]) -> bool:
        """Count one table, noting an error so that the others are still counted; return whether it worked."""
        return self._apart(table, count, self.uncounted)

    def report_apart(self, table: TableId, report: Callable[[], None]) -> bool:
        """Report one table, noting an error so that the others are still reported; return whether it worked."""
        return self._apart(table, report, self.unreported)

    def _apart(self, table: TableId, work: Callable[[], None], errors: dict[TableId, str]) -> bool:
        try:
            work()
        except Exception as error:
            if is_of_storage(error):
                raise
            errors[table] = self.states.setup.connector.redact(told(error))
            return False
        errors.pop(table, None)
        return True

    def name_unreported(self) -> None:
        """Let the checks show which tables could not be reported.

        Raises:
            dagster.Failure: There is one for which that was not reported yet.
        """
        before, now = self._said, {**self.unreported, **self.uncounted}
        changed = [table for table in {**before, **now} if before.get(table) != now.get(table)]
        self.judge(changed)
        self._said = now
        found = {table: now[table] for table in changed if table in now}
        if found:
            raise unreported(found)


def unreported(tables: Mapping[TableId, str]) -> dg.Failure:
    """Return the failure that lists the tables that could not be reported.

    Args:
        tables: What went wrong, by table, without secrets.
    """
    word = "table" if len(tables) == 1 else "tables"
    texts = "; ".join(f"{table}: {text}" for table, text in tables.items())
    return dg.Failure(f"{len(tables)} {word} could not be reported: {texts}", allow_retries=False)
