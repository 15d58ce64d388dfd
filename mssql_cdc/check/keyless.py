"""Compares a table without a key: the source's rows against what its change log adds up to since its last snapshot.

Rows cannot be told apart, so on a moving source the second look reads the table under a shared lock, at a log end E;
the log then counts up to E.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.fence import Fence
from mssql_cdc.check.keyed_table import Fetched
from mssql_cdc.check.multiset import Comparison, Row, compare
from mssql_cdc.check.sides import image_texts
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import cut_text
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Chunk, Texts

_COLUMNS = ["_pos", "before", "after", "_snapshot", "_exact"]


def compare_keyless(
    session: CheckSession,
    compared: Compared,
    *,
    fence: Fence | None,
    home: TableHome,
    start: str,
    epoch: int,
    storage: Storage,
    fetched: Fetched,
) -> Comparison:
    """Compare the multisets of rows; if they differ, compare again with the table locked.

    Args:
        session: Reads the source.
        compared: The columns to compare.
        fence: Waits until the change log has passed an end of the source's log; None: the log is not followed any
            more, so the first comparison stands.
        home: The table's folders.
        start: The smallest `_pos` of the change log that counts (`Offsets.log_start`).
        epoch: The current epoch.
        storage: The options of the object store.
        fetched: Counts the rows that the source sends.

    Raises:
        SourceUnavailableError: The lock was not granted, or the lake did not pass the fence in time.
    """

    def log(bound: str | None = None) -> Iterator[Row]:
        return log_rows(home.changes, compared, storage, start=start, bound=bound)

    schema = compared.schema
    first = compare(lambda: map(_row, fetched.counted(session.rows(schema, Chunk(0), keys=()))), log, compared.names)
    if first.equal or fence is None:
        return first
    fence.wait(fence.mark(), schema.table_id)
    with fence.database.session() as asked, session.held(schema, None) as rows:
        kept = list(map(_row, fetched.counted(rows)))
        mark = asked.mark()
    fence.wait(mark, schema.table_id)
    return compare(lambda: kept, lambda: log(cut_text(epoch, mark.lsn)), compared.names)


def log_rows(uri: str, compared: Compared, storage: Storage, *, start: str, bound: str | None = None) -> Iterator[Row]:
    """Yield the rows that the log adds up to; a before image counts -1.

    Args:
        uri: The change log.
        compared: The columns to compare.
        storage: The options of the object store.
        start: The smallest `_pos` that counts (`Offsets.log_start`).
        bound: The largest `_pos` that counts; None: no limit.
    """
    for batch in scan(uri, columns=_COLUMNS, storage=storage):
        positions = batch.column("_pos")
        # An incremental snapshot repeats rows that count already.
        repeated = pc.fill_null(pc.starts_with(batch.column("_snapshot"), "incremental:"), fill_value=False)
        wanted = pc.and_(pc.greater_equal(positions, start), pc.invert(repeated))
        if bound is not None:
            wanted = pc.and_(wanted, pc.less_equal(positions, bound))
        yield from _counted(batch.filter(wanted), compared)


def _counted(batch: pa.RecordBatch, compared: Compared) -> Iterator[Row]:
    for image, count in (("after", 1), ("before", -1)):
        for texts in image_texts(batch, image, compared.columns):
            if texts is not None:
                yield (), texts, count


def _row(texts: Texts) -> Row:
    return (), texts, 1
