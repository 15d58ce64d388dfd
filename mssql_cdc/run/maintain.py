"""Maintains a database's tables: compacts small files and removes files that no retained version needs.

It is safe while capture runs: it changes no row, no position and no fence (rule A5 allows these operations). Only on
S3, where Spark does not commit with put-if-absent, capture has to stop first; a log line says so (A10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.key_index import remove_unused
from mssql_cdc.lake.maintenance import optimize, tidy, vacuum
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.storage import storage_warning
from mssql_cdc.run.collected import Collected

OWN_TABLES = (
    "offsets",
    "schema_history",
    "transactions",
    "signals",
    "notifications",
    "gaps",
    "structures",
    "snapshots",
    "incremental_snapshots",
)


@dataclass(frozen=True, slots=True)
class Maintained:
    """The result for one table: the number of compacted files before and after.

    `busy`: another run was writing to the table, so it was skipped until the next time. `error`: why it failed.
    """

    name: str
    removed: int = 0
    added: int = 0
    busy: bool = False
    error: MssqlCdcError | None = None

    @property
    def text(self) -> str:
        """One line for the operator."""
        if self.error is not None:
            return f"{self.name}: failed: {self.error}"
        if self.busy:
            return f"{self.name}: skipped because another run is writing to it"
        if not self.removed:
            return f"{self.name}: nothing to compact"
        return f"{self.name}: {self.removed} files compacted to {self.added}"


def maintain(database: Database, *, retain_hours: int) -> Iterator[Maintained]:
    """Maintain every table of the database, one after another; concurrent calls only repeat work.

    Tables with source rows are maintained with Spark because current tables have deletion vectors.

    Raises:
        MssqlCdcError: Some tables could not be maintained; all others were.
    """
    collected, storage = Collected(), database.storage
    warning = storage_warning(database.layout.warehouse)
    if warning:
        database.log(warning)
    for name in OWN_TABLES:
        uri = database.layout.own(name)
        done = _done(
            database, collected, f"_{name}", uri, partial(tidy, uri, retain_hours=retain_hours, storage=storage)
        )
        if done is not None:
            yield done
    tables = dict[str, str]()
    with collected.of("the tables with source rows"):
        tables = _row_tables(database)
    for name, uri in tables.items():
        done = _done(database, collected, name, uri, partial(_maintain, database, uri, retain_hours))
        if done is not None:
            yield done
    collected.raise_worst()


def _row_tables(database: Database) -> dict[str, str]:
    """The folders of the change logs and current tables, by display name."""
    found: dict[str, str] = {}
    known = database.history().versions
    entries = entries_by_name(database.offsets(), known)
    for text, versions in known.items():
        entry = entries.get(text)
        home = database.layout.home(versions[-1].table_id, folder=entry.folder if entry else None)
        found |= {f"{text} changes": home.changes, f"{text} current": home.current}
    return found


def _maintain(database: Database, uri: str, retain_hours: int) -> tuple[int, int]:
    vacuum(database.spark(), uri, retain_hours=retain_hours)
    remove_unused(uri, retain_hours=retain_hours, storage=database.storage)
    return optimize(database.spark(), uri)


def _done(
    database: Database, collected: Collected, name: str, uri: str, work: Callable[[], tuple[int, int]]
) -> Maintained | None:
    """Maintain one table, whose error does not stop the others; None: it does not exist."""
    with collected.of(name):
        try:
            return Maintained(name, *work()) if exists(uri, database.storage) else None
        except FencedError:
            return Maintained(name, busy=True)
    return Maintained(name, error=collected.errors[name])
