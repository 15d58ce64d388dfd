"""The tables that failed in a step. The others are reported; the step fails at its end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import dagster as dg

from mssql_cdc.capture.survey import Survey
from mssql_cdc.config import Connector
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import MssqlCdcError, SourceError
from mssql_cdc.run.execute import Done
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId


@dataclass
class Failures:
    """The failed tables with their errors; `whole` is what is wrong with all of them."""

    connector: Connector
    tables: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    whole: str | None = None

    @property
    def any(self) -> bool:
        """Whether a table failed."""
        return bool(self.tables)

    def add(self, done: Done) -> None:
        """Take over the failed tables of a range, a snapshot or a merge, which the next attempt retries."""
        self.tables |= done.failed
        for table, error in done.merged.errors.items():
            self.tables.setdefault(table, error)

    def add_absent(self, tables: Collection[TableId], setup: Setup, seen: Survey) -> None:
        """Take over the tables of these that cannot be captured now.

        Args:
            tables: The tables that are wanted.
            setup: The database.
            seen: The newest survey.
        """
        absent = standings(seen, setup.listed).absent
        for table in tables:
            if table.text in absent:
                self.tables.setdefault(table, SourceError(absent[table.text]))

    def raise_if_any(self) -> None:
        """Fail the step if a table failed."""
        lines = [self.whole] if self.whole is not None else []
        if self.tables:
            failed = "; ".join(f"{table}: {error}" for table, error in self.tables.items())
            word = "table" if len(self.tables) == 1 else "tables"
            lines.append(f"{len(self.tables)} {word} failed: {failed}")
        if lines:
            raise dg.Failure(self.connector.redact("; ".join(lines)), allow_retries=False)
