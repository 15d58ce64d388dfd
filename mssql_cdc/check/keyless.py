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
from mssql_cdc.check.multiset import Comparison, Row, compare
from mssql_cdc.check.sides import image_texts
from mssql_cdc.check.table import Fetched
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import cut_text
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Texts

_COLUMNS = ["_pos", "op", "before", "after", "_snapshot", "_exact"]


def compare_keyless(
    session: CheckSession,
    compared: Compared,
    *,
    fence: Fence,
    home: TableHome,
    epoch: int,
    storage: Storage,
    fetched: Fetched,
) -> Comparison:
    """Compare the multiset of rows; a second time under a lock when they seem to differ.

    Args:
        session: reads the source.
        compared: which columns.
        fence: brings the change log behind ends of the source's log.
        home: the table's folders.
        epoch: the present epoch.
        storage: how to reach them.
        fetched: counts the rows that the source sends.

    Raises:
        SourceUnavailableError: the lock was not granted, or the lake did not come behind the fence in time.
    """

    def log(bound: str | None = None) -> Iterator[Row]:
        return log_rows(home.changes, compared, storage, bound)

    schema = compared.schema
    first = compare(lambda: map(_row, fetched.counted(session.rows(schema))), log, compared.names)
    if first.equal:
        return first
    fence.wait(fence.mark(), schema.table_id)
    with fence.database.session() as asked, session.held(schema, None) as rows:
        kept = list(map(_row, fetched.counted(rows)))
        mark = asked.mark()
    fence.wait(mark, schema.table_id)
    return compare(lambda: kept, lambda: log(cut_text(epoch, mark.lsn)), compared.names)


def log_rows(uri: str, compared: Compared, storage: Storage, bound: str | None = None) -> Iterator[Row]:
    """The rows that the log adds up to since its last snapshot, images before counting -1.

    Args:
        uri: the change log.
        compared: which columns.
        storage: how to reach it.
        bound: rows at later positions do not count.
    """
    number, start = last_snapshot(uri, storage)
    for batch in scan(uri, columns=_COLUMNS, storage=storage):
        positions = batch.column("_pos")
        # The snapshot was read under a lock: what the stream brought up to its position is in its rows.
        wanted = pc.greater(positions, start)
        if number is not None:
            read = pc.equal(batch.column("op"), "r")
            mine = pc.fill_null(pc.equal(batch.column("_snapshot"), number), fill_value=False)
            wanted = pc.if_else(read, mine, wanted)
        if bound is not None:
            wanted = pc.and_(wanted, pc.less_equal(positions, bound))
        yield from _counted(batch.filter(wanted), compared)


def last_snapshot(uri: str, storage: Storage) -> tuple[str | None, str]:
    """The number of the last snapshot in a change log and the position of its first row; (None, "") without any."""
    number, start = None, ""
    for batch in scan(uri, columns=["_pos", "op", "_snapshot"], storage=storage):
        read = batch.filter(pc.equal(batch.column("op"), "r"))
        for one in pc.unique(read.column("_snapshot")).to_pylist():
            if number is not None and int(one) < int(number):
                continue
            first = pc.min(read.filter(pc.equal(read.column("_snapshot"), one)).column("_pos")).as_py()
            start = first if one != number else min(start, first)
            number = one
    return number, start


def _counted(batch: pa.RecordBatch, compared: Compared) -> Iterator[Row]:
    for image, count in (("after", 1), ("before", -1)):
        for texts in image_texts(batch, image, compared.columns):
            if texts is not None:
                yield (), texts, count


def _row(texts: Texts) -> Row:
    return (), texts, 1
