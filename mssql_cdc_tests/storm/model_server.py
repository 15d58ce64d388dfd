"""A model of SQL Server under change data capture: transactions, scan sessions with `maxtrans`, capture instances.

It keeps what a server keeps and forgets what a server forgets: changes that were not scanned yet go with their
capture instance, cleanup raises the start of an instance, and a restore takes the log back. It answers the connector
through the source protocol.

`cdc.lsn_time_mapping` has a row per transaction that left something in a change table or enabled an instance, and rows
of no transaction: one where an instance begins, and dummy rows. A scan that finds nothing writes a dummy row at the
log's end of that moment. A transaction that the scan did not see yet may lie below it.
"""

# ruff: noqa: ARG002 - the signatures are the protocol's, whose arguments the model does not need

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mssql_cdc.errors import DataLostError, SourceError, SourceRestoredError, StaleReaderError, StaleStructureError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import Column, TableId, TableSchema, TableStructure
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.log_end import Scan, proven
from mssql_cdc.source.values import Absence, Bound, CapturedTable, CaptureInstance, LogMark, Standing, Witness
from mssql_cdc_tests.lake_kit import AT, Change, column
from mssql_cdc_tests.spark.model_source import ModelLock, ModelReader, ModelSession, ModelSource, lsn, number_of, within
from mssql_cdc_tests.storm.worlds import PARTS

_MOST_INSTANCES = 2
_ENABLES = " enables an instance"


@dataclass
class Instance:
    """A capture instance: its change table lives and dies with it.

    `start` is that of the catalogue, which cleanup raises. `seen`: capture has passed the transaction that made it.
    """

    name: str
    object_id: int
    created: datetime
    made: int
    start: int
    columns: tuple[Column, ...]
    seen: bool = False


@dataclass
class ServerTable:
    """A source table, captured by none, one or two instances. The key of `rows` is the row's `id`."""

    name: str
    object_id: int
    keyed: bool = True
    rows: dict[int, str] = field(default_factory=dict[int, str])
    instances: list[Instance] = field(default_factory=list[Instance])
    columns: tuple[Column, ...] = (column("id", "int"), column("name", "nvarchar", length=50))

    def captured(self) -> CapturedTable:
        """As the catalogue shows it."""
        found = tuple(self._instance(one) for one in self.instances)
        return CapturedTable(TableId("shop", "dbo", self.name), self.object_id, found)

    def _instance(self, one: Instance) -> CaptureInstance:
        schema = TableSchema(
            TableId("shop", "dbo", self.name),
            one.columns,
            ("id",) if self.keyed else (),
            object_id=self.object_id,
            capture_object_id=one.object_id,
            instance=one.name,
            from_lsn=lsn(one.start).text,
        )
        return CaptureInstance(
            one.name, one.object_id, ("cdc", f"{one.name}_CT"), self.object_id, one.created,
            lsn(one.start), schema, tuple(range(1, len(one.columns) + 1)),
        )  # fmt: skip


class ModelServer(ModelSource):
    """The source. `log` holds every change since the last restore, `captured` is how far the capture job has come.

    `history` are the transactions that it has to scan, `mapping` is `cdc.lsn_time_mapping` (None: no transaction),
    `taken` are the changes that it has captured, `structures` the columns under which the newest instance holds them.
    `births` are the tables that were made anew. `shown` is the newest change of a table, by object id, that the chunks
    of a snapshot have shown, by its number: whoever opens the table before that is read shows half of a transaction.
    """

    def __init__(self, *names: str, keyless: Sequence[str] = ()) -> None:
        super().__init__()
        self._ids = 1000
        self._instances_made = 0
        self._session = 0
        self.sessions: list[Scan] = []
        self._seen: int | None = None
        self.hides_fork = False
        """Whether the login may not see the recovery fork when it asks for the log's end."""
        self.mapping: dict[int, str | None] = {}
        self.taken: list[tuple[int, str]] = []
        self.structures: dict[tuple[int, str], frozenset[str]] = {}
        self.births: list[tuple[int, str]] = []
        self.shown: dict[tuple[int, int], int] = {}
        for name in (*names, *keyless):
            self.tables[name] = ServerTable(name, self._new_id(), keyed=name not in keyless)
            self.enable(name)
        self.scan(len(self.history))
        self.back_up()

    # -- what applications and administrators do --------------------------------------------------------------

    def change(self, *changes: tuple[str, int, str | None]) -> None:
        """One transaction: each change inserts, updates or (None) deletes the row of a table with this key."""
        self.number += 1
        for name, key, value in changes:
            table = self.tables[name]
            old = table.rows.pop(key, None)
            if value is not None:
                table.rows[key] = value
            before, after = _image(key, old), _image(key, value)
            if before is not None or after is not None:
                self._note(name, before, after)

    def move(self, name: str, key: int, to: int) -> None:
        """One transaction that gives a row another key, if there is such a row and the other key is free."""
        table = self.tables[name]
        if key not in table.rows or to in table.rows:
            return
        self.number += 1
        value = table.rows[to] = table.rows.pop(key)
        if table.keyed:  # As SQL Server captures it: a deletion and an insertion.
            self._note(name, _image(key, value), None)
            self._note(name, None, _image(to, value))
        else:
            self._note(name, _image(key, value), _image(to, value))

    def enable(self, name: str, *, more: bool = False) -> None:
        """`sys.sp_cdc_enable_table`, unless two instances exist."""
        table = self.tables[name]
        if len(table.instances) == _MOST_INSTANCES:
            return
        self.number += 2  # The instance begins inside the transaction that makes it.
        made = self._new_id()
        if more:
            table.columns = (*table.columns, column(f"extra_{made}", "int"))
        self._instances_made += 1
        created, start = AT + timedelta(seconds=self._instances_made), self.number - 1
        table.instances.append(Instance(f"{name}_{made}", made, created, start, start, table.columns))
        self._to_scan(_ENABLES)

    def disable(self, name: str, *, oldest_only: bool = False) -> None:
        """`sys.sp_cdc_disable_table`: the instance's change table goes, scanned to its end or not."""
        table = self.tables[name]
        if not oldest_only or len(table.instances) > 1:
            del table.instances[: 1 if oldest_only else None]

    def rename(self, name: str, to: str) -> None:
        """`sp_rename`: the object, its rows, its capture instances and what they have captured stay."""
        table = self.tables[to] = self.tables.pop(name)
        table.name = to
        self.log = [(at, to if of == name else of, change) for at, of, change in self.log]
        for known in (self.taken, self.births):
            known[:] = [(at, to if of == name else of) for at, of in known]
        self.structures = {(at, to if of == name else of): had for (at, of), had in self.structures.items()}

    def object_id(self, name: str) -> int | None:
        """The identity of the table that has this name."""
        table = self.tables.get(name)
        return table.object_id if table is not None else None

    def drop_and_create(self, name: str) -> None:
        """A new, empty table of the same name, under capture again."""
        self.disable(name)
        self.births.append((self.number + 1, name))
        self.tables[name] = ServerTable(name, self._new_id(), self.tables[name].keyed)
        self.enable(name)

    def begin_scan(self) -> None:
        """A scan begins: `scan` ends it, and sees nothing that was committed meanwhile."""
        self._seen = self.number

    def scan(self, most: int) -> None:
        """A scan session of the capture job: at most so many transactions, an empty one when there are none."""
        seen, self._seen = self._seen if self._seen is not None else self.number, None
        waiting = sorted(at for at in self.history if self.captured < at <= seen)[:most]
        if waiting:
            self._capture(waiting)
            self._session += 1
            self.sessions.append(Scan(self._session, True, 0, lsn(self.captured)))
        elif self.sessions and self.sessions[-1].empty_scans:
            self.sessions[-1] = replace(self.sessions[-1], empty_scans=self.sessions[-1].empty_scans + 1)
        else:
            self._session += 1
            self.sessions.append(Scan(self._session, True, 1, None))
        if not waiting:
            self.number += 1
            self.mapping[self.number] = None

    def _capture(self, waiting: Sequence[int]) -> None:
        """These transactions into the change tables of the instances that there are now."""
        by_instance = {i.made: i for table in self.tables.values() for i in table.instances}
        for at, name, _ in self.log:
            holding = [i for i in self.tables[name].instances if i.made < at]
            if self.captured < at <= waiting[-1] and holding:
                self.taken.append((at, name))
                self.structures[at, name] = frozenset(one.name for one in holding[-1].columns)
        changed = {at for at, _ in self.taken}
        self.mapping |= {at: self.history[at] for at in waiting if at in changed or self.history[at].endswith(_ENABLES)}
        for made, instance in by_instance.items():
            if made < waiting[-1] and not instance.seen:
                self.mapping[made] = None
                instance.seen = True
        self.captured = waiting[-1]

    def restart(self) -> None:
        """The server restarts: its dynamic views begin anew."""
        self._session, self.sessions, self._seen = 0, [], None

    def clean_up(self, kept: int, *, only: str | None = None) -> None:
        """The cleanup job: only the newest `kept` captured transactions stay, of one table or of all.

        Its low-water mark is a row of the mapping: with 0, the newest one, below which a dummy row leaves nothing. It
        works on one instance after another; the mapping keeps what any of them may still refer to.
        """
        done = sorted(at for at, tran in self.mapping.items() if tran)
        if len(done) <= kept:
            return
        below = done[-kept] if kept else max(self.mapping)
        instances = [instance for table in self.tables.values() for instance in table.instances]
        for instance in instances if only is None else self.tables[only].instances:
            instance.start = max(instance.start, below)
        kept_from = below if only is None else min([below, *(instance.start for instance in instances)])
        self.mapping = {at: tran for at, tran in self.mapping.items() if at >= kept_from}

    def back_up(self) -> None:
        """A full backup."""
        tables, log, history = copy.deepcopy(self.tables), [*self.log], {**self.history}
        captured = {**self.mapping}, [*self.taken], {**self.structures}, [*self.births], self.captured
        self._backup = tables, log, history, self.number, self._ids, captured

    def bring_back(self) -> None:
        """The backup takes the database's place: log positions and object ids are used again for others."""
        tables, log, history, self.number, self._ids, captured = self._backup
        mapping, taken, structures, births, self.captured = captured
        self.tables, self.log, self.history = copy.deepcopy(tables), [*log], {**history}
        self.mapping, self.taken, self.structures = {**mapping}, [*taken], {**structures}
        self.births, self.shown = [*births], {}
        self.restores += 1
        self.restart()

    def rows_at(self, name: str, at: int) -> dict[int, str]:
        """The rows of the table that had this name at a number, captured or not."""
        born = max((number for number, table in self.births if table == name and number <= at), default=0)
        rows: dict[int, str] = {}
        for number, table, change in self.log:
            if table == name and born <= number <= at:
                if change.before is not None:
                    rows.pop(change.before["id"], None)
                if change.after is not None:
                    rows[change.after["id"]] = change.after["name"]
        return rows

    def _note(self, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        op = "c" if before is None else "d" if after is None else "u"
        self.log.append((self.number, name, Change(self.number, op, before, after, sequence=len(self.log))))
        if self.tables[name].instances:
            self._to_scan()

    def _to_scan(self, what: str = "") -> None:
        self.history[self.number] = f"{self.restores}.{self.number}{what}"

    def _new_id(self) -> int:
        self._ids += 1
        return self._ids

    # -- the source protocol ----------------------------------------------------------------------------------

    @contextmanager
    def session(self, catalog: str) -> Iterator[ModelServerSession]:
        yield ModelServerSession(self)

    def change_reader(self, catalog: str, instance: CaptureInstance, wanted: LsnRange, **more: Any) -> ModelReader:
        if lsn(self._held(instance)[1].start) > wanted.from_.increment():
            raise DataLostError(f"{instance.name}: cleaned up")
        found = tuple(replace(change, epoch=wanted.epoch) for change in self.rows_in(instance, wanted))
        return ModelReader(instance.schema, found)

    def shares(self, reader: Any) -> bool:
        """Whether the reader reads over a connection that it shares with others: there are no connections."""
        return False

    def rows_in(self, instance: CaptureInstance, wanted: LsnRange) -> list[Change]:
        """The rows of a range that the instance's change table holds."""
        name, held = self._held(instance)
        return [
            _with_more(change, instance.schema.columns)
            for at, table, change in self.log
            if table == name and held.made < at <= self.captured and held.start <= at and lsn(at) in wanted
        ]

    def chunk_reader(self, catalog: str, wanted: ChunkRead) -> ModelReader:
        name = wanted.schema.table_id.name
        if self.object_id(name) != wanted.schema.object_id:
            raise StaleStructureError(f"{name} is gone, or a different table now")
        rows, read = self.tables[name].rows, (wanted.snapshot_number, self.tables[name].object_id)
        newest = max((at for at, of, _ in self.log if of == name and at in self.history), default=0)
        self.shown[read] = max(self.shown.get(read, 0), newest)
        # It runs no other statement.
        part = PARTS.get(wanted.condition or (wanted.statement or "").partition(" WHERE ")[2])
        found = [
            Change(
                number_of(wanted.position), "r", None, _image(key, value), sequence=place, chunk=chunk.number,
                snapshot=wanted.snapshot_number, epoch=wanted.epoch,
            )
            for chunk in wanted.chunks
            for place, (key, value) in enumerate(sorted(rows.items()))
            if within(chunk, key) and (part is None or part(key))
        ]  # fmt: skip
        return ModelReader(wanted.schema, tuple(found))

    def shown_key(self, schema: TableSchema, bound: Bound) -> Bound:
        return bound

    @contextmanager
    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> Iterator[ModelLock]:
        yield ModelLock()

    def _held(self, wanted: CaptureInstance) -> tuple[str, Instance]:
        """The name that the table of an instance has now, and the instance."""
        for table in self.tables.values():
            for one in table.instances:
                if one.object_id == wanted.object_id:
                    return table.name, one
        raise DataLostError(f"{wanted.name}: its change table is gone")


@dataclass(frozen=True)
class ModelServerSession(ModelSession):
    """A session on the storm's source."""

    source: ModelServer

    def tables(self) -> list[CapturedTable]:
        return [table.captured() for table in self.source.tables.values() if table.instances]

    def left_out(self) -> list[str]:
        return []

    def structures(self) -> list[TableStructure]:
        return []

    def hidden(self) -> list[str]:
        return []

    def unstarted(self) -> list[str]:
        return []

    def concealed(self) -> str | None:
        """The model conceals nothing."""

    def has_table(self, name: str) -> bool:
        return name in self.source.tables

    def stalled(self) -> str | None:
        """The model captures when a schedule says so, and is never late."""

    def absences(self, tables: Mapping[TableId, int | None]) -> dict[TableId, Absence]:
        return {table: Absence("CDC is no longer enabled on it", lost=True) for table in tables}

    def minima(self) -> dict[str, Lsn | None]:
        held = (one for table in self.source.tables.values() for one in table.instances)
        return {one.name: lsn(one.start) if one.seen else None for one in held}

    def catalog_minima(self) -> dict[str, Lsn | None]:
        return self.minima()

    def captured(self) -> Lsn | None:
        newest = self._newest(to=None)
        if newest is not None:
            return lsn(newest)
        starts = [one.start for table in self.source.tables.values() for one in table.instances]
        return lsn(min(starts)) if starts else None

    def standing(self) -> Standing:
        rows = sorted(self.source.mapping)
        settled = lsn(rows[-2]) if len(rows) > 1 else None
        return Standing(self.captured(), settled, lsn(rows[-1]) if rows else None)

    def require_visible(self, to: Lsn) -> None:
        starts = {one.start for table in self.source.tables.values() for one in table.instances}
        if number_of(to) not in {*self.source.mapping, *starts}:
            raise StaleReaderError(f"{to.text} is not captured")

    def witness(self, to: Lsn) -> Witness | None:
        number = self._newest(to=number_of(to))
        return None if number is None else self._witness(number)

    def require_witness(self, known: Witness) -> None:
        number, rows = number_of(known.start_lsn), self.source.mapping
        if number in rows and self._witness(number) == known:
            return
        if number in rows or (rows and number > min(rows)):
            raise SourceRestoredError(f"Transaction {known.start_lsn.text} is another one, or gone")
        if known.fork not in {None, str(self.source.restores)}:
            raise SourceRestoredError(f"Transaction {known.start_lsn.text} is gone, and the recovery fork is another")

    def _witness(self, number: int) -> Witness:
        return Witness(lsn(number), str(self.source.mapping[number]), "0", "then", str(self.source.restores))

    def _newest(self, *, to: int | None) -> int | None:
        """The newest transaction of the mapping, at or below a number."""
        found = (at for at, tran in self.source.mapping.items() if tran and (to is None or at <= to))
        return max(found, default=None)

    def mark(self) -> LogMark:
        self.source.number += 1  # Asking writes to the log; what is committed later is beyond.
        newest = self.source.sessions[-1] if self.source.sessions else Scan(0, True, 0, None)
        fork = None if self.source.hides_fork else str(self.source.restores)
        return LogMark(lsn(self.source.number), newest.session_id, newest.empty_scans, fork)

    def passed(self, known: LogMark) -> bool:
        if proven(known, self.source.sessions):
            return True
        reached = self.standing()
        return any(at is not None and at >= known.lsn for at in (reached.captured, reached.settled))

    def altered(self, positions: Mapping[int, Lsn]) -> dict[int, str]:
        return {}

    def estimated_rows(self) -> dict[int, int]:
        return {}

    def retention(self) -> timedelta | None:
        return None

    def server_time(self) -> datetime:
        return AT.replace(tzinfo=UTC)

    def count_rows(self, parts: Sequence[tuple[CaptureInstance, LsnRange]]) -> dict[str, int]:
        return {instance.name: len(self.source.rows_in(instance, wanted)) for instance, wanted in parts}

    def nth_transaction(self, after: Lsn, count: int, to: Lsn) -> Lsn | None:
        commits = sorted(lsn(at) for at, tran in self.source.mapping.items() if tran and after < lsn(at) <= to)
        return commits[:count][-1] if commits else None

    def keys(self, schema: TableSchema, condition: str | None) -> list[int]:
        part, name = PARTS.get(condition or ""), schema.table_id.name
        if name not in self.source.tables:
            raise SourceError(f"Invalid object name '{name}'")
        return sorted(key for key in self.source.tables[name].rows if part is None or part(key))

    def newest_before(self, lsns: Sequence[Lsn]) -> dict[Lsn, Lsn | None]:
        commits = [lsn(at) for at, tran in self.source.mapping.items() if tran]
        return {position: max((at for at in commits if at < position), default=None) for position in lsns}


def _with_more(change: Change, columns: Sequence[Column]) -> Change:
    """The change as an instance with further columns holds it: each of them was given the number of the transaction."""
    if change.after is None:
        return change
    more = {one.name: change.at for one in columns if one.name not in change.after}
    return replace(change, after={**change.after, **more}) if more else change


def _image(key: int, value: str | None) -> dict[str, Any] | None:
    return None if value is None else {"id": key, "name": value}
