"""One version of a current table, read for the check by an engine other than the one that merges.

DataFusion reads it in this process and applies deletion vectors. It cannot open tables with type widening (deltalake
1.6.6: "Unsupported table features required: [TypeWidening]"); those are read with Spark, in parts of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.opened import find_table
from mssql_cdc.lake.partitions import with_empty_texts
from mssql_cdc.lake.progress import progress
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.arrow import current_names
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WIDENING = "typeWidening"
_PART_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A current table at one version.

    `batch` is the `_batch` of the change log that it has reached, `rows` an upper bound on its rows (deletion vectors
    aside), `columns` the names of its columns.
    """

    uri: str
    version: int
    batch: int
    rows: int
    columns: frozenset[str]
    _table: DeltaTable = field(repr=False, compare=False)
    _spark: Callable[[], SparkSession] = field(repr=False, compare=False)
    _names: Mapping[str, str] = field(repr=False, compare=False)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return arrow_of(self._table.schema().to_json())

    @property
    def is_widened(self) -> bool:
        """Whether only Spark can read it."""
        return _WIDENING in (self._table.protocol().reader_features or ())

    def read(self) -> Iterator[pa.RecordBatch]:
        """All rows of this version.

        Raises:
            StorageError: a file of the version is gone, or cannot be read.
        """
        # DataFusion returns view types for texts and bytes, which few Arrow functions accept.
        wanted = self.schema
        for batch in self._with_spark() if self.is_widened else self._with_data_fusion():
            yield with_empty_texts(batch.select(wanted.names).cast(wanted), self._names)

    def _with_data_fusion(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in QueryBuilder().register("t", self._table).execute("SELECT * FROM t"):
                yield pa.record_batch(batch)
        except Exception as error:  # DataFusion's errors have no class of their own.
            raise StorageError(f"Version {self.version} of {self.uri} cannot be read: {error}") from error

    def _with_spark(self) -> Iterator[pa.RecordBatch]:
        parts = 1 + self.rows // _PART_ROWS
        with private_session(self._spark()) as private:
            frame = private.read.format("delta").option("versionAsOf", self.version).load(self.uri)
            for number in range(parts):
                part = frame.where(f"pmod(xxhash64(_key), {parts}) = {number}") if parts > 1 else frame
                yield from part.toArrow().to_batches()


def pin_current(
    home: TableHome, newest: TableSchema, *, spark: Callable[[], SparkSession], storage: Storage = LOCAL
) -> PinnedTable | None:
    """The newest version of a current table; None when there is no table.

    Args:
        home: the table's folders.
        newest: the table's newest structure, under whose key the table's progress is recorded.
        spark: starts Spark, for a table that nothing else can read.
        storage: how to reach the folder.
    """
    table = find_table(home.current, storage)
    if table is None:
        return None
    batch = progress(table, newest)
    rows = pc.sum(pa.table(table.get_add_actions(flatten=True)).column("num_records")).as_py() or 0
    columns = frozenset(field.name for field in table.schema().fields)
    return PinnedTable(home.current, table.version(), batch, rows, columns, table, spark, current_names(newest))
