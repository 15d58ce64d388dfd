"""Checks whole databases: every captured table at the source against its current table and its change log.

The check has a read path of its own. Only while something seems to differ does it follow the source, which writes to
the lake as a run does, to distinguish changes made in the meantime from differences. An error with a table becomes
that table's result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.write_task import masks_of
from mssql_cdc.check.change_log import check_log
from mssql_cdc.check.compared import Compared, compared_of
from mssql_cdc.check.keyed_table import (
    MOST_DIFFERENCES,
    Fetched,
    KeyedTable,
    Look,
    RowProgress,
    Suspects,
    compare_keyed,
    unseen,
)
from mssql_cdc.check.keyless import compare_keyless
from mssql_cdc.check.looked import Looked, absent_tables, look_at, not_looked_at, wanted
from mssql_cdc.check.multiset import Difference
from mssql_cdc.check.refresh import Refreshed
from mssql_cdc.check.repair import repair_table
from mssql_cdc.check.result import NotLookedAt, Status, TableCheck
from mssql_cdc.check.settle import settle
from mssql_cdc.check.story import log_start, story_of
from mssql_cdc.check.unread import nothing_read, unread_note, unread_of, why_unread
from mssql_cdc.errors import MssqlCdcError, NotCaughtUpError, StorageError, TaskError
from mssql_cdc.lake.pinned import pin_current
from mssql_cdc.lake.read import exists
from mssql_cdc.schema import TableId, TableSchema, current_names
from mssql_cdc.source.registry import check_source

Progress = Callable[[str, int, int], None]
"""What is being checked, how much is done, how much there is: tables of a database, then rows of a large table."""


def check_databases(
    databases: Sequence[Database], refreshed: Mapping[str, Refreshed], *, progress: Progress, repair: bool = False
) -> Iterator[TableCheck | NotLookedAt]:
    """Check every captured table of every database, one after another; then list what was not checked.

    Args:
        databases: what to check.
        refreshed: the outcome of merging their current tables beforehand, by database name.
        progress: called before each table, and after each key range of a table.
        repair: re-read the rows that differ, and check their tables once more.

    Raises:
        NotCaughtUpError: nothing has been captured yet.
    """
    for database in databases:
        with check_source(database.source).check_session(database.catalog) as session:
            looked = look_at(database, session, refreshed[database.catalog])
            members = wanted(looked)
            for number, member in enumerate(members):
                what = f"checking {member.table}"
                progress(what, number, len(members))
                found = check_table(looked, member, partial(progress, f"{what} (rows)"))
                yield _repaired(looked, member, found) if repair and found.differences else found
            yield from absent_tables(looked)
            yield not_looked_at(looked)


def _repaired(looked: Looked, member: LakeTable, found: TableCheck) -> TableCheck:
    """The result after the repair, from a new look at the database that reuses nothing from the first one."""
    try:
        rows = repair_table(looked, member, found.differences)
    except Exception as error:  # noqa: BLE001 - the others are still checked
        return replace(found, notes=(*found.notes, f"not repaired: {_known(error)}"))
    again = look_at(looked.database, looked.session)
    after = check_table(again, again.members[member.table])
    return replace(after, repaired=rows, notes=(*after.notes, f"repaired: {rows} rows were read again"))


def check_table(looked: Looked, member: LakeTable, progress: RowProgress = unseen) -> TableCheck:
    """Check one table; an error becomes its result.

    Args:
        looked: What is known about the database.
        member: The table.
        progress: Called with the number of rows compared so far and of all rows.
    """
    status, reason = looked.statuses.get(member.table.text, ("equal", ""))
    notes = [reason] if reason else []
    notes += member.captured.unproven
    notes += [f"not acknowledged: {gap.text}" for gap in looked.gaps.get(member.table.text, ())]
    unmerged = _not_updated(looked.unmerged.get(member.table))
    try:
        found = _compare(looked, member, progress)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a table is its result
        notes += [str(unmerged)] if unmerged is not None else []
        return _failed(member.table, status, notes, error)
    error = found.error or unmerged
    notes += [str(unmerged)] if unmerged is not None and error is not unmerged else []
    wrong: Status = "differs" if found.differs else "error" if error is not None else found.status
    return TableCheck(
        table=member.table,
        status=status if status != "equal" else wrong,
        source_rows=found.source_rows,
        lake_rows=found.lake_rows,
        checksum=found.checksum,
        differences=found.differences,
        log=found.log,
        left_out=found.left_out,
        notes=(*notes, *found.notes),
        fetched=found.fetched,
        error=error,
    )


def _not_updated(error: MssqlCdcError | None) -> MssqlCdcError | None:
    """The error of a merge as its table's result, whatever the change log adds up to."""
    return None if error is None else type(error)(f"the current table could not be updated: {error}")


def _failed(table: TableId, status: Status, notes: Sequence[str], error: Exception) -> TableCheck:
    """The result of a table that could not be compared."""
    state: Status = "not caught up" if isinstance(error, NotCaughtUpError) else "error"
    return TableCheck(
        table=table, status=status if status != "equal" else state, notes=tuple(notes), error=_known(error)
    )


def _known(error: Exception) -> MssqlCdcError:
    """The error as one of the project's; the message of a defect may contain row values, so it is omitted."""
    if isinstance(error, MssqlCdcError):
        return error
    if isinstance(error, FileNotFoundError):
        return StorageError("A data file of the table is gone: someone else removed it, or it could not be copied")
    known = TaskError(f"{type(error).__name__}, a defect")
    known.__cause__ = error
    return known


def _compare(looked: Looked, member: LakeTable, progress: RowProgress) -> TableCheck:
    _require_settled(looked, member)
    database, recorded = looked.database, looked.recorded(member)
    masked = masks_of(database.connector, recorded)
    structure = looked.structure(member)
    pinned = pin_current(member.home, recorded, spark=database.spark, storage=database.storage)
    stored = {column.name for column in recorded.columns}
    if pinned is not None and recorded.key_columns:
        stored = {name for name, target in current_names(recorded).items() if target in pinned.columns}
    compared = compared_of(structure, recorded, connector=database.connector, masked=masked, stored=stored)
    if not recorded.key_columns:
        return _keyless(looked, member, compared, stale=pinned is not None)
    why = why_unread(looked, member)
    if pinned is None:
        found = nothing_read(looked, member, why) if why is not None else None
        if found is not None:
            return found
        raise NotCaughtUpError(
            f"Not caught up yet: {member.table} has no current table; run mssql-cdc run --until-caught-up"
        )
    unread = unread_of(looked, member, compared) if why is not None else None
    table = KeyedTable(looked.session, compared, recorded, pinned, progress, unread=unread)
    followed, epoch, storage = member.table.text not in looked.statuses, looked.offsets.epoch, database.storage

    if followed:
        looked.fence.wait_shown(looked.session, member)

    def settled(found: Suspects) -> Sequence[Difference]:
        if not followed:
            return found.differences
        return settle(table, found, fence=looked.fence, member=member, epoch=epoch, storage=storage)

    look, log, unjudged = compare_keyed(table, settled), (), None
    if followed:
        story = story_of(
            looked.versions(member),
            folder=member.folder,
            offsets=looked.offsets,
            whole_reads=looked.whole_reads,
            hidden=masked,
            source=structure.columns,
        )
        try:
            log = check_log(member.home.changes, pinned, story, storage)
        except Exception as error:  # noqa: BLE001 - what was found of the rows stands
            known = _known(error)
            unjudged = type(known)(f"the change log could not be examined, but its rows were: {known}")
            unjudged.__cause__ = error
    return TableCheck(
        table=member.table,
        status="equal",
        source_rows=look.result.source_rows,
        lake_rows=look.result.lake_rows,
        checksum=f"{look.result.source_sum:032x}",
        differences=look.result.differences,
        log=log,
        left_out=(*compared.left_out, *_unavailable(look)),
        notes=(
            *compared.structure,
            *_unproven(compared, recorded),
            *_more(look, why),
            *unread_note(unread.rows if unread is not None else 0, why),
        ),
        fetched=table.fetched.rows,
        error=unjudged,
    )


def _keyless(looked: Looked, member: LakeTable, compared: Compared, *, stale: bool) -> TableCheck:
    fetched, storage, lacking = Fetched(), looked.database.storage, member.table.text in looked.statuses
    why = why_unread(looked, member)
    found = nothing_read(looked, member, why) if why is not None else None
    if found is not None:
        return found
    if not exists(member.home.changes, storage):
        if lacking:
            raise StorageError(f"There is no change log to compare with: {member.home.changes}")
        raise NotCaughtUpError(
            f"Not caught up yet: {member.table} has no change log; run mssql-cdc run --until-caught-up"
        )
    look = compare_keyless(
        looked.session,
        compared,
        fence=None if lacking else looked.fence,
        member=member,
        start=log_start(looked.versions(member), folder=member.folder, offsets=looked.offsets),
        epoch=looked.offsets.epoch,
        storage=storage,
        fetched=fetched,
        whole=why is None,
    )
    frozen = ("current table: the table no longer has a key, so its rows are frozen; delete the folder",)
    return TableCheck(
        table=member.table,
        status="equal",
        source_rows=look.result.source_rows,
        lake_rows=look.result.lake_rows,
        checksum=f"{look.result.source_sum:032x}",
        differences=look.result.differences,
        log=frozen if stale else (),
        left_out=look.compared.left_out,
        notes=(*look.compared.structure, *unread_note(look.unread, why)),
        fetched=fetched.rows,
    )


def _require_settled(looked: Looked, member: LakeTable) -> None:
    """Refuse to compare a table before its first rows are there, or while a snapshot is filling them in."""
    entry = member.entry
    if entry is None:
        raise NotCaughtUpError(
            f"Not caught up yet: nothing of {member.table} is in the lake; run mssql-cdc run --until-caught-up"
        )
    if entry.status == "snapshot" or looked.offsets.closed_until(member.table.text, entry) is not None:
        raise NotCaughtUpError(
            f"Not caught up yet: a snapshot of {member.table} has not ended; run mssql-cdc run --until-caught-up"
        )


def _unproven(compared: Compared, recorded: TableSchema) -> Sequence[str]:
    if compared.keyed:
        return ()
    key = ", ".join(recorded.key_columns)
    return [f"the key ({key}) is not comparable: concurrent changes count as differences"]


def _more(look: Look, why: str | None) -> Sequence[str]:
    if not look.partial:
        return []
    # A snapshot would leave out the same rows, or add rows that are not meant to be in the lake.
    remedy = "take a new snapshot of the table" if why is None else "repeat mssql-cdc check --repair until none does"
    return [f"more than {MOST_DIFFERENCES} rows differ and the rest was not compared; {remedy}"]


def _unavailable(look: Look) -> Sequence[str]:
    names = ", ".join(sorted(look.lacking))
    return [f"cells of {names} in {look.lacking_rows} rows (never delivered by CDC)"] if names else []
