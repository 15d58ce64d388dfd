"""The lags of a database's tables by its source's last answer, for a process that queries them from time to time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import Lag, captured_until, lag_of, unread_lag, without_answer
from mssql_cdc.errors import MssqlCdcError, StorageError
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lsn import Lsn
from mssql_cdc.run.status import position_of, positions, unmerged_since
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import CaptureHealth


@dataclass(frozen=True, slots=True)
class Captured:
    """The commit time up to which capture had every change at a given moment, both by this process's clock.

    A step that begins later and finds nothing to read has read everything up to `until`, which is None if it cannot be
    determined.
    """

    at: datetime
    until: datetime | None

    @classmethod
    def of(cls, health: CaptureHealth, at: datetime) -> Captured:
        """Translate the source's answer.

        Args:
            health: The answer, by the source's clock.
            at: When the source was queried.
        """
        until = captured_until(health)
        return cls(at, None if until is None else at - (health.now - until))


@dataclass
class KnownLags:
    """The lags, as of the last query.

    Attributes:
        database: The database.
        clock: The current time.
    """

    database: Database
    clock: Callable[[], datetime]
    _health: CaptureHealth | None = None
    _answer: tuple[CaptureHealth, datetime] | None = None
    _positions: Mapping[str, Lsn | None] = field(default_factory=dict[str, "Lsn | None"])

    def ask(self, offsets: Offsets) -> None:
        """Query the state of capture. While the source does not answer, nothing is known of the time since it did."""
        now = self.clock()
        try:
            with self.database.session() as session:
                self._answer = session.capture_health(positions(offsets)), now
        except MssqlCdcError as error:
            self.database.log(f"the state of the capture job is unknown: {error}")
        if self._answer is not None:
            answer, at = self._answer
            self._health = answer if at == now else without_answer(answer, now - at)
        # If a table's structure is lost, only `_offsets` has its name.
        entries = {**offsets.present, **entries_by_name(offsets, self._looking.history().versions)}
        self._positions = {name: position_of(entry, offsets) for name, entry in entries.items()}

    @property
    def asked(self) -> bool:
        """Whether the source has answered yet."""
        return self._answer is not None

    @property
    def captured(self) -> Captured | None:
        """How far capture had come at the last answer; None: the source has not answered yet."""
        return Captured.of(*self._answer) if self._answer is not None else None

    def unread(self, table: TableId) -> float | None:
        """The lag by which a table's change log is judged, in seconds; None: unknown."""
        return None if self._health is None else unread_lag(self._positions.get(table.text), self._health)

    def log(self, table: TableId) -> float | None:
        """The lag of a table's change log in seconds; None: unknown."""
        return self._lag(self._positions.get(table.text)).log

    def current(self, table: TableId, home: TableHome, newest: TableSchema) -> float | None:
        """The lag of a table's current table in seconds; None: unknown.

        Args:
            table: The table.
            home: Its folders.
            newest: Its newest structure.
        """
        try:
            times = unmerged_since(self._looking, home, newest)
        except StorageError:
            return None  # Its update reports what is wrong with it.
        return self._lag(self._positions.get(table.text), times.oldest_after).current

    @property
    def logs(self) -> CurrentLogs:
        """The logs of the current tables, for the thread that queries the lags."""
        return self._looking.current_logs

    def largest(self) -> float | None:
        """The largest lag of a change log in seconds; None: unknown."""
        found = [self._lag(position).log for position in self._positions.values()]
        return max((lag for lag in found if lag is not None), default=None)

    def _lag(self, position: Lsn | None, unmerged: datetime | None = None) -> Lag:
        return Lag() if self._health is None else lag_of(position, unmerged, self._health)

    @cached_property
    def _looking(self) -> Database:
        """The database with separate logs, since the capturing thread modifies the others."""
        return self.database.apart()
