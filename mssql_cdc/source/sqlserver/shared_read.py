"""Reads the changes of several tables over one connection, for ranges with few rows.

Connecting and checking costs more than reading a hundred rows of a table, so each check is one statement for all
tables. Visibility is checked before the reads; minimum, structure and masks only after them (`ChangeReader.read` also
checks these before, to fail early). Checking afterwards is enough: a minimum never decreases, the object id of a
dropped change table never returns, and what a structure or a mask that came and went may have done to values cannot be
detected by checks at two moments (correctness E26). A table that fails here is read again by itself, which shows why.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lsn import ZERO_LSN, Lsn
from mssql_cdc.source.protocol import BatchReader
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.columns import needs_rows
from mssql_cdc.source.sqlserver.commit_times import CommitTimeLoader
from mssql_cdc.source.sqlserver.concealed import masked_changes
from mssql_cdc.source.sqlserver.kept_bulk import KeptBulks
from mssql_cdc.source.sqlserver.positions import require_held
from mssql_cdc.source.sqlserver.sql import DECLARE_IDS, IDS, MOST_IDS, id_lists
from mssql_cdc.source.sqlserver.structure import Structure, read_structures

_DOING = "checking the change tables"
_OF_INSTANCES = (
    f"{DECLARE_IDS}; SELECT own.object_id AS [n], {{value}} AS [m] FROM {IDS} AS i CROSS APPLY (SELECT x.object_id, "
    "x.capture_instance, x.start_lsn FROM cdc.change_tables x WHERE x.object_id = i.id) AS own"
)


@dataclass(frozen=True, slots=True)
class SharedRead:
    """One connection that reads the tables of all `readers` in turn.

    `minima` are those that `fn_cdc_get_min_lsn` returned earlier, by the instances' names; `unfinished` the ids of
    readers whose rows were not read to the end, because of an error in the reader or in its consumer.
    """

    readers: Sequence[ChangeReader]
    bulk: Bulk
    times: CommitTimeLoader
    minima: Mapping[str, Lsn | None]
    unfinished: set[int] = field(default_factory=set[int])

    @staticmethod
    def takes(reader: ChangeReader) -> bool:
        """Whether the reader's rows can be fetched over a shared connection."""
        return not needs_rows(reader.instance.schema.columns) and not reader.range.is_empty

    def read(self, reader: BatchReader) -> Iterator[pa.RecordBatch]:
        """The batches of one reader; they are complete only if `spoiled` does not list it afterwards."""
        assert isinstance(reader, ChangeReader)
        self.unfinished.add(id(reader))
        yield from reader.batches(self.bulk, self.times)
        self.unfinished.discard(id(reader))

    def spoiled(self) -> dict[int, MssqlCdcError]:
        """The readers, by their numbers, whose rows may be incomplete or were read with an outdated structure."""
        self.bulk.rollback()  # A new transaction sees what happened while the rows were read.
        return self._check()

    def _check(self) -> dict[int, MssqlCdcError]:
        minima = self._minima()
        structures = [Structure.of_instance(reader.instance) for reader in self.readers]
        found = read_structures(self.bulk, structures, doing=_DOING)
        masked = masked_changes(self.bulk, [reader.instance for reader in self.readers], doing=_DOING)
        errors: dict[int, MssqlCdcError] = {}
        for number, (reader, structure) in enumerate(zip(self.readers, structures, strict=True)):
            name = reader.instance.name
            try:
                require_held(name, minima.get(reader.instance.object_id), reader.range.from_)
                structure.require_columns(found[number])
            except MssqlCdcError as error:
                errors[number] = error
            else:
                if reader.instance.object_id in masked:
                    errors[number] = masked[reader.instance.object_id]
        return errors

    def _minima(self) -> dict[int, Lsn]:
        """The minimum of each instance, by its object id, without those that are gone or whose minimum is not shown.

        The function is called only for instances whose start is not the minimum that was known before (rule A9).
        """
        names = {reader.instance.object_id: reader.instance.name for reader in self.readers}
        starts = self._by_instance("own.start_lsn", names)
        known = {number: start for number, start in starts.items() if self.minima.get(names[number]) == start}
        left = starts.keys() - known.keys()
        return known | (self._by_instance("sys.fn_cdc_get_min_lsn(own.capture_instance)", left) if left else {})

    def _by_instance(self, value: str, numbers: Iterable[int]) -> dict[int, Lsn]:
        """An LSN of each of these instances, by its object id; zero and NULL do not count."""
        fields = [pa.field("n", pa.int32()), pa.field("m", pa.binary(10))]
        found: dict[int, Lsn] = {}
        for ids in id_lists(numbers):
            for batch in self.bulk.read(_OF_INSTANCES.format(value=value), fields, [ids], doing=_DOING, rows=MOST_IDS):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                found |= {number: Lsn(raw) for number, raw in rows if raw is not None and raw != ZERO_LSN.raw}
        return found


@contextmanager
def open_shared(
    readers: Sequence[ChangeReader], minima: Mapping[str, Lsn | None], kept: KeptBulks
) -> Generator[SharedRead]:
    """One connection for all of these readers of one database.

    Args:
        readers: The readers.
        minima: The instances' minimum LSNs, as far as they are known (`SharedRead`).
        kept: The database's connections.

    Raises:
        StaleReaderError: the connection does not see the end of a range.
        SourceUnavailableError, SourceError, ConfigurationError: see `classify`.
    """
    first = readers[0]

    def require_visible(bulk: Bulk) -> None:
        for reader in {reader.visible or reader.range.to: reader for reader in readers}.values():
            reader.require_visible(bulk)

    with kept.lend(first.connection, first.catalog, fetch_rows=first.fetch_rows, require=require_visible) as lent:
        shared = SharedRead(readers, lent.bulk, CommitTimeLoader(lent.bulk, first.connection.server_timezone), minima)
        if len(readers) > 1:
            shared.times.expect(min(one.range.from_ for one in readers), max(one.range.to for one in readers))
        yield shared
        lent.is_spent = bool(shared.unfinished)
