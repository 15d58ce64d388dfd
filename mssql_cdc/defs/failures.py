"""The tables that failed in a step. The others continue and are reported; the step fails at its end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import dagster as dg

from mssql_cdc.capture.survey import Survey
from mssql_cdc.config import Connector
from mssql_cdc.defs.report import READ_AGAIN
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import DataLostError, FencedError, MssqlCdcError, SourceError
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import without_fences
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId


@dataclass
class Failures:
    """The failed tables with their errors; `whole` is what is wrong with all of them.

    Attributes:
        connector: The configuration.
        tables: The tables that could not be read.
        currents: Those whose current table could not be updated; their change logs continue.
        whole: What is wrong with all of them.
        output: Why the output of records lacks some records; tables do not depend on it.
    """

    connector: Connector
    tables: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    currents: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    whole: str | None = None
    output: str | None = None

    @property
    def any(self) -> bool:
        """Whether a table failed."""
        return bool(self.tables or self.currents)

    def add(self, done: Done) -> None:
        """Add the failed tables of a range, a snapshot or a merge; one that succeeds later is removed.

        What another run has read or merged meanwhile is done, and not a failure.
        """
        for table in done.range.tables if done.range is not None else ():
            self.tables.pop(table, None)
        for table in done.merged.tables:
            self.currents.pop(table, None)
        self.tables |= without_fences(done.failed)
        self.currents |= without_fences(done.merged.errors)

    def add_absent(self, tables: Collection[TableId], setup: Setup, seen: Survey) -> None:
        """Add the given tables that cannot be captured now.

        Args:
            tables: The requested tables.
            setup: The database.
            seen: The newest survey.
        """
        absent = standings(seen, setup.listed).absent
        for table in tables:
            if table.text in absent:
                self.tables.setdefault(table, SourceError(absent[table.text]))

    def add_lost(self, tables: Collection[TableId], seen: Survey) -> None:
        """Add the given tables that lost changes and are still to be repaired.

        Args:
            tables: The requested tables.
            seen: The newest survey.
        """
        missing, policy = standings(seen).missing, seen.facts.policy
        advice = f"snapshot.mode={policy.mode} repairs it with a snapshot" if policy.on_data_error else READ_AGAIN
        for table in tables:
            if table.text in missing:
                self.tables.setdefault(table, DataLostError(f"{missing[table.text]}; {advice}"))

    def raise_if_any(self) -> None:
        """Fail the step if a table failed, or the output that was requested."""
        lines = [line for line in (self.whole, self.output) if line is not None]
        found = self.currents | self.tables
        if found:
            failed = "; ".join(f"{table}: {error}" for table, error in found.items())
            word = "table" if len(found) == 1 else "tables"
            lines.append(f"{len(found)} {word} failed: {failed}")
        if lines:
            raise dg.Failure(self.connector.redact("; ".join(lines)), allow_retries=False)


def is_fenced(done: Done | None, failure: MssqlCdcError | None) -> bool:
    """Whether a step failed only because another run was faster.

    Args:
        done: Its result; None: there is none.
        failure: Why there is none.
    """
    if done is None:
        return isinstance(failure, FencedError)
    return bool(done.failed) and not without_fences(done.failed)
