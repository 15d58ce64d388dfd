"""Whether the source still has the history that the lake was read from, and what proves that later (rule A7).

What happens after a restore is decided in `plan/`; which witness counts as the furthest, in `lake/offset_digest`.
"""

from __future__ import annotations

from collections.abc import Iterable

from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import SourceRestoredError, StaleReaderError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.facts import Facts
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Witness


def restore_since(session: SourceSession, offsets: Offsets) -> str | None:
    """The evidence that the source was restored, or that a failover lost transactions; None: there is none.

    Args:
        session: A session on the database.
        offsets: What was read.
    """
    try:
        _require_history(session, offsets)
    except SourceRestoredError as error:
        return str(error)
    return None


def restore_after_commits(session: SourceSession, offsets: Offsets, tables: Iterable[LakeTable]) -> str | None:
    """The evidence of a restore if a run has died after commits of tables that no row of `_offsets` records.

    These are commits of a range without their row, and groups of a snapshot that has not ended.

    Args:
        session: A session on the database.
        offsets: What was read.
        tables: The tables with what the run has committed to them.
    """
    found = set[Witness | None]()
    for table in tables:
        if (own := table.own()) is not None and own.epoch == offsets.epoch:
            found.add(table.own_witness)
        if table.entry is not None and table.entry.epoch == offsets.epoch:
            found.add(table.snapshot_witness)
    try:
        for witness in found:
            if witness is not None:
                session.require_witness(witness)
    except SourceRestoredError as error:
        return str(error)
    return None


def witness_of(
    session: SourceSession, offsets: Offsets, facts: Facts, tables: Iterable[LakeTable], *, to: Lsn
) -> Witness | None:
    """Choose the witness to store with a position, from the history that was surveyed.

    A witness of another history would hide that the source went back.

    Args:
        session: A session on the database.
        offsets: What was read.
        facts: What was surveyed.
        tables: The tables as they were surveyed, perhaps with commits that no row records.
        to: The position.

    Raises:
        SourceRestoredError: What was captured before is gone.
        StaleReaderError: The source has been restored since, or shows less than it did.
    """
    witness = session.witness(to)
    _require_same_history(session, offsets, facts)
    if (restored := restore_after_commits(session, offsets, tables)) is not None:
        raise SourceRestoredError(restored)
    _require_nothing_between(facts, witness)
    return witness


def _require_history(session: SourceSession, offsets: Offsets) -> None:
    """Require that the source still has the history that the lake was read from.

    Raises:
        SourceRestoredError: it was restored, or a failover lost transactions.
    """
    if offsets.witness is not None:
        session.require_witness(offsets.witness)
    cut = offsets.last_cut()
    if cut is not None and cut.to is not None and cut.epoch == offsets.epoch:
        session.require_complete(Lsn.parse(cut.to), cut.witness)
    for mark in {mark.fork: mark for mark in offsets.unwitnessed_marks}.values():
        session.require_mark(mark)


def _require_same_history(session: SourceSession, offsets: Offsets, facts: Facts) -> None:
    """Require that the witness is of the surveyed history: one of another would hide that the source went back.

    Raises:
        SourceRestoredError: what was captured before is gone.
        StaleReaderError: less is captured than when the step was planned.
    """
    _require_history(session, offsets)
    planned, captured = facts.captured, session.captured()
    if planned is not None and (captured is None or captured < planned):
        raise StaleReaderError(
            f"The source shows changes only up to {captured.text if captured else 'nothing'}, expected {planned.text}, "
            "which it showed when this step was planned. It will be planned again"
        )


def _require_nothing_between(facts: Facts, witness: Witness | None) -> None:
    """Require that no transaction has come where capture had found none: advancing tables would never read it (A7, A8).

    If anything that the lake has is gone, `_require_same_history` detects it.

    Raises:
        StaleReaderError: there is one: the source has been restored since the step was planned.
    """
    captured, scanned = facts.captured, facts.scanned
    if witness is None or captured is None or scanned is None or not captured < witness.start_lsn <= scanned:
        return
    raise StaleReaderError(
        f"Transaction {witness.start_lsn.text} of {witness.tran_end_time} has come below {scanned.text}, up to which "
        "capture had passed when this step was planned: the source was restored meanwhile. It will be planned again"
    )
