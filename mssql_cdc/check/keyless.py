"""Compares a table without a key: the source's rows against what its change log adds up to since its last snapshot.

Rows cannot be told apart, so while the source changes, a second look reads the table under a shared lock, at a log end
E; the log then counts up to E. While writers wait, rows go to a file, so that a table of any size is locked only as
long as it takes to send it, and is never held in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.capture.members import LakeTable
from mssql_cdc.check import row_files
from mssql_cdc.check.compared import Compared
from mssql_cdc.check.fence import Fence
from mssql_cdc.check.keyed_table import Fetched
from mssql_cdc.check.multiset import Comparison, Unread, compare
from mssql_cdc.check.row_files import Row
from mssql_cdc.check.sides import image_texts
from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.read import scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import cut_text
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Chunk, Texts

_PLACES = ("_pos", "_snapshot")
_COLUMNS = ("before", "after", "_exact")


@dataclass(frozen=True, slots=True)
class KeylessLook:
    """What a comparison found, what it compared, and how many rows the lake was never meant to have."""

    result: Comparison
    compared: Compared
    unread: int = 0


def compare_keyless(
    session: CheckSession,
    compared: Compared,
    *,
    fence: Fence | None,
    member: LakeTable,
    start: str,
    epoch: int,
    storage: Storage,
    fetched: Fetched,
    whole: bool,
) -> KeylessLook:
    """Compare the multisets of rows; if they differ, compare again with the table locked.

    Args:
        session: Reads the source.
        compared: The columns to compare.
        fence: Waits until the change log has passed an end of the source's log; None: the log is no longer followed,
            so the first comparison stands.
        member: The table in the lake.
        start: The smallest `_pos` of the change log that counts (`story.log_start`).
        epoch: The current epoch.
        storage: The options of the object store.
        fetched: Counts the rows that the source sends.
        whole: Whether the lake should have every row of the table (`unread`).

    Raises:
        SourceUnavailableError: The lock was not granted, or the lake did not pass the fence in time.
        SchemaError: No column is left to compare.
    """
    uri = member.home.changes
    read = _adding_up(compared, lacking_columns(uri, compared, storage, start=start))

    def source() -> Iterator[Row]:
        return map(_row, fetched.counted(session.rows(read.schema, Chunk(0), keys=())))

    def result(look: Comparison, of: Compared, counted: Unread | None) -> KeylessLook:
        return KeylessLook(look, of, counted.rows if counted is not None else 0)

    unread = None if whole else Unread()
    first = compare(source, lambda: log_rows(uri, read, storage, start=start), read.names, unread)
    if first.equal or fence is None:
        return result(first, read, unread)
    fence.wait(fence.mark(), member)
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_check_") as folder:
        kept = Path(folder) / "held.arrow"
        with fence.database.session() as asked, session.held(read.schema, None) as rows:
            row_files.write(kept, map(_row, fetched.counted(rows)))
            mark = asked.mark()
        fence.wait(mark, member)
        bound = cut_text(epoch, mark.lsn)
        left = _adding_up(read, lacking_columns(uri, read, storage, start=start, bound=bound))
        places = [place for place, name in enumerate(read.names) if name in left.names]
        unread = None if whole else Unread()
        second = compare(
            lambda: (_row(tuple(texts[place] for place in places)) for _, texts, _ in row_files.read(kept)),
            lambda: log_rows(uri, left, storage, start=start, bound=bound),
            left.names,
            unread,
        )
    return result(second, left, unread)


def _adding_up(compared: Compared, lacking: Collection[str]) -> Compared:
    """What to compare, without the columns that some images lack."""
    left = compared.without(lacking)
    if not left.columns:
        raise SchemaError(f"No column of {compared.schema.table_id} can be compared: {', '.join(left.left_out)}")
    return left


def lacking_columns(
    uri: str, compared: Compared, storage: Storage, *, start: str, bound: str | None = None
) -> frozenset[str]:
    """The compared columns that some images lack because CDC need not deliver them: they do not add up.

    A column that CDC always delivers is not among them: without its cells, rows differ.

    Args:
        uri: The change log.
        compared: The columns to compare.
        storage: The options of the object store.
        start: The smallest `_pos` that counts (`story.log_start`).
        bound: The largest `_pos` that counts; None: no limit.
    """
    found: set[str] = set()
    wanted = {column.name for column in compared.columns if column.type.before_image != "always"}
    for batch in _counting(uri, storage, ["_unavailable"], start, bound) if wanted else ():
        names = batch.column("_unavailable").flatten().unique().to_pylist()
        found |= {name.removeprefix("before.") for name in names}
    return frozenset(found & wanted)


def log_rows(uri: str, compared: Compared, storage: Storage, *, start: str, bound: str | None = None) -> Iterator[Row]:
    """Yield the rows that the log adds up to; a before image counts -1.

    Args:
        uri: The change log.
        compared: The columns to compare.
        storage: The options of the object store.
        start: The smallest `_pos` that counts (`story.log_start`).
        bound: The largest `_pos` that counts; None: no limit.
    """
    for batch in _counting(uri, storage, _COLUMNS, start, bound):
        yield from _counted(batch, compared)


def _counting(
    uri: str, storage: Storage, columns: Sequence[str], start: str, bound: str | None
) -> Iterator[pa.RecordBatch]:
    """The rows of the log that count."""
    for batch in scan(uri, columns=[*_PLACES, *columns], storage=storage):
        positions = batch.column("_pos")
        # An incremental snapshot repeats rows that count already.
        repeated = pc.fill_null(pc.starts_with(batch.column("_snapshot"), "incremental:"), fill_value=False)
        wanted = pc.and_(pc.greater_equal(positions, start), pc.invert(repeated))
        if bound is not None:
            wanted = pc.and_(wanted, pc.less_equal(positions, bound))
        yield batch.filter(wanted)


def _counted(batch: pa.RecordBatch, compared: Compared) -> Iterator[Row]:
    for image, count in (("after", 1), ("before", -1)):
        for texts in image_texts(batch, image, compared.columns):
            if texts is not None:
                yield (), texts, count


def _row(texts: Texts) -> Row:
    return (), texts, 1
