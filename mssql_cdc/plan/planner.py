"""What to do next for one database: a pure function of facts.

This module contains the rules about positions, bounds, retries and cuts. It neither queries a source nor reads a table
nor knows Dagster: `capture/survey.py` collects the facts, `run/` executes the decisions.

Invariants (correctness A1, A4, A7-A9, B14, C18, C22): a table only ever reads `(its own position, to]`; `to` of a
slice is a transaction that the source has captured; one slice has one capture instance; a table that cannot continue
never holds back the others; a range is a complete cut only if every streaming table has reached its end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal, overload

from mssql_cdc.errors import StaleReaderError
from mssql_cdc.lsn import Lsn, LsnRange, later_snapshot_key, snapshot_key
from mssql_cdc.plan.decisions import Decision, Loss, Lost, Merge, Range, Restored, Slice, Snapshot, Wait
from mssql_cdc.plan.facts import Cursor, Facts, Member, merge_key
from mssql_cdc.plan.waits import is_held_back, retry_at
from mssql_cdc.schema import TableId


def plan(facts: Facts, *, snapshots: bool = True) -> Decision:
    """Return the next step of this database. The same facts yield the same decision.

    Args:
        facts: The facts.
        snapshots: Whether snapshots are taken here; otherwise another run takes them, and the other tables continue.
    """
    if facts.restored:
        reason = f"the source was restored or failed over: {facts.restored}"
        return Restored(reason, automatic=facts.policy.on_data_error)
    losses = lost(facts)
    if losses is not None:
        return losses
    if snapshots and not any(run.kind == "snapshot" for run in facts.runs.active):
        snapshot = _snapshot(facts)
        if snapshot is not None:
            return snapshot
    decision = _range(facts)
    return _merge(facts, decision) if isinstance(decision, Wait) else decision


def plan_partition(facts: Facts, wanted: LsnRange, tables: Collection[TableId] | None = None) -> Range:
    """Return the range of an explicitly requested partition, for these tables only (None: all).

    Every table reads `(its own position, wanted.to]`, so requesting an old range again reads nothing (rule F30), and
    requesting only some tables makes no cut (rule A1).

    Args:
        facts: The facts of the survey.
        wanted: The range of the partition key.
        tables: The selected tables; None: all.

    Raises:
        StaleReaderError: The source has not captured the end of the range yet.
    """
    seen_to = _seen(facts)
    if seen_to is None or seen_to < wanted.to:
        seen = seen_to.text if seen_to else "nothing"
        raise StaleReaderError(f"{wanted.partition_key} ends at {wanted.to.text}; the source shows {seen} so far")
    losses = lost(facts)
    ready = _ready(facts, losses.stopped if losses else ())
    if not ready:
        return Range(wanted, (), complete=False)
    reading = [m for m in ready if tables is None or m.table in tables]
    return _build(facts, ready, wanted.to, reading=reading, label=wanted)


def next_cursor(facts: Facts, decision: Decision) -> Cursor:
    """Return the cursor that the sensor must store after this decision."""
    match decision:
        case Range(beside=True):
            return replace(facts.cursor, not_before=retry_at(facts))  # The retry of the earlier range is still to come.
        case Range():
            read = tuple(table.text for table in decision.tables)
            return replace(
                facts.cursor, pending_key=decision.key, attempt=decision.attempt, not_before=None, tables=read
            )
        case Snapshot(signal=None):
            return replace(facts.cursor, snapshot_key=decision.id)
        case Wait(until=None) if not (facts.behind or facts.runs.active or _has_unseen(facts)):
            return replace(facts.cursor, merged=facts.cut_number)
        case Wait(until=until) if until is not None:
            return replace(facts.cursor, not_before=until)
        case _:
            return facts.cursor


def _has_unseen(facts: Facts) -> bool:
    """Whether `behind` may lack a table: this survey did not see it, or it may come out of a snapshot unchanged."""
    unseen = any(absent.status in {"streaming", "failed"} for absent in facts.absent)
    return unseen or any(member.status == "snapshot" for member in facts.members)


def lost(facts: Facts) -> Lost | None:
    """Return the members whose next row may be gone (A9, B14), and the tables that are no longer captured.

    Where nothing streams, a table needs no further changes once its snapshot has been opened.
    """
    stream = facts.policy.stream
    losses = [loss for member in facts.members if (loss := _loss(member, streams=stream)) is not None]
    at_risk = {"streaming", "snapshot", "failed"} if stream else {"snapshot"}
    losses += [
        Loss(absent.table, absent.position, absent.reason, former=absent.former is not None)
        for absent in facts.absent
        if absent.lost and absent.status in at_risk and absent.position is not None
    ]
    return Lost(tuple(losses), repaired=facts.policy.on_data_error) if losses else None


# -- Rules -----------------------------------------------------------------------------------------------------


def _loss(member: Member, *, streams: bool) -> Loss | None:
    """Return what the member may have lost.

    An instance without a minimum is not a loss yet: its reader fails with the reason.
    """
    position = member.position
    if position is None:
        return None
    if member.tampered and member.status in {"streaming", "failed", "snapshot"}:
        return Loss(member.table, position, member.tampered)
    if member.status not in {"streaming", "failed"} or not (streams or member.closed_until is not None):
        return None
    instance = member.instance_at(position)
    if instance is None:
        return Loss(member.table, position, "CDC is no longer enabled on it")
    if not member.continues(instance, position):
        gone = "" if member.still_read else ", and the previously read capture instance no longer exists"
        reason = f"its oldest capture instance {instance.name!r} begins at {instance.start.text}{gone}"
        return Loss(member.table, position, reason)
    # Nothing lies between the position and the start of an instance that follows another one.
    follows = instance.identity != member.read and instance.min_lsn == instance.start
    if not instance.min_lsn or follows or instance.min_lsn <= position.increment():
        return None
    reason = (
        f"CDC cleanup removed changes before they were read; the oldest available change is {instance.min_lsn.text}"
    )
    return Loss(member.table, position, reason)


def _snapshot(facts: Facts) -> Snapshot | None:
    """Return the snapshot to start or resume; None if there is none, or if its retry is delayed.

    With `on_data_error`, tables that lost changes are repaired in the way that new ones begin: with rows, or by
    position alone, as a signal table always is. A streaming table whose key definition has changed also begins in this
    way: only then can its current table follow.
    """
    if facts.captured is None:
        return None
    able = [m for m in facts.members if m.can_be_snapshotted(facts.captured)]
    follows = facts.policy.stream
    beginning = {"new", "lost"} if facts.policy.on_data_error else {"new"}
    rekeyed = {m.table for m in able if m.status == "streaming" and m.rekeyed and follows}
    new = tuple(m.table for m in able if m.status in beginning or m.table in rekeyed or m.streams_on)
    known = {m.table for m in able if m.status in {"streaming", "failed", "lost"}}
    asked = [one for one in facts.asked if known & set(one.tables) and not one.paused]
    for begun in facts.begun_snapshots:
        if begun in facts.paused:
            continue
        earlier = facts.runs.of(begun)
        if not is_held_back(facts, earlier):
            tables = tuple(m.table for m in facts.members if m.status == "snapshot" and m.snapshot == begun)
            return Snapshot(begun, tables, attempt=earlier.failures + 1)
    earlier = facts.runs.of(facts.kept_snapshot)
    if new and not is_held_back(facts, earlier):
        # A snapshot that failed before it began keeps its key, so that its attempts are counted.
        key = facts.kept_snapshot or new_snapshot_key(facts)
        return Snapshot(key, new, attempt=earlier.failures + 1)
    for one in asked:
        key = _free(facts, one.key)
        earlier = facts.runs.of(key)
        if not is_held_back(facts, earlier):
            tables = tuple(table for table in one.tables if table in known)
            return Snapshot(key, tables, attempt=earlier.failures + 1, signal=one.signal)
    return None


def new_snapshot_key(facts: Facts) -> str:
    """Return the key of a snapshot that begins now."""
    return _free(facts, snapshot_key(facts.now, epoch=facts.epoch))


def _free(facts: Facts, key: str) -> str:
    """Shift the key by whole seconds until no snapshot uses it."""
    while key in facts.snapshots:
        key = later_snapshot_key(key, timedelta(seconds=1))
    return key


def _merge(facts: Facts, wait: Wait) -> Wait | Merge:
    """With nothing to read, let due current tables catch up, unless a run is active or has just failed to do so."""
    if not facts.due or facts.runs.active or wait.until is not None:
        return wait
    if is_held_back(facts, facts.runs.of(merge_key(facts.cut_number))):
        return Wait(f"{wait.reason}; merging the current tables failed and will be retried")
    return Merge(facts.due, facts.cut_number, wait.reason)


def _range(facts: Facts) -> Range | Wait:
    running = next((run for run in facts.runs.active if run.kind != "snapshot"), None)
    if running is not None:
        work = running.key or "current tables"
        return Wait(f"run {running.run_id[:8]} has been working on {work} for {running.seconds:.0f} s")
    ready = _ready(facts, ())
    if not facts.policy.stream and all(m.closed_until is None for m in ready):
        # A table is still read until its snapshot opens: its chunks are consistent only after its end (C18).
        return Wait(f"snapshot.mode={facts.policy.mode} does not stream", ended=True)
    if not ready:
        return Wait("no table is ready to stream")
    if facts.captured is None:
        return Wait("the source has captured nothing yet")
    pending = _pending(facts)
    behind = [m for m in ready if pending is not None and _at(m) < pending.to]
    if pending is None or not behind:
        return _next_range(facts, ready)
    failed = [m for m in behind if m.table.text in facts.cursor.tables]
    if facts.cursor.attempt < facts.limits.max_attempts or len(behind) == len(ready) or not failed:
        return _retry(facts, ready, behind, pending)
    others = [m for m in ready if m not in failed]
    return replace(_next_range(facts, others, due=True), give_up=tuple(m.table for m in failed))


def _retry(facts: Facts, ready: list[Member], behind: list[Member], pending: LsnRange) -> Range | Wait:
    """Return the same key again for the tables that it still lacks, after an increasing wait; the others continue."""
    until = retry_at(facts)
    if facts.now < until or facts.cursor.not_before is None:
        beside = _beside(facts, ready, [m for m in ready if m not in behind])
        if beside is not None:
            return beside
        if facts.cursor.not_before is None:
            return Wait(f"attempt {facts.cursor.attempt} at {facts.cursor.pending_key} did not finish", until)
        return Wait(f"the retry of {facts.cursor.pending_key} is delayed", until)
    attempt = facts.cursor.attempt + 1
    return _build(facts, ready, pending.to, reading=behind, label=pending, attempt=attempt)


def _beside(facts: Facts, ready: list[Member], others: list[Member]) -> Range | None:
    """Return a range for the tables that do not wait for a retry, if there is something to read; it is not a cut.

    If they are not all at one position, one of them has failed alongside the retry, which is not counted: then they
    wait, too.
    """
    if facts.captured is None or len({_at(m) for m in others}) != 1:
        return None
    to = min(b for b in (facts.captured, facts.row_bound, facts.transaction_bound) if b is not None)
    found = _build(facts, ready, to, reading=others)
    return replace(found, beside=True) if found.slices else None


@overload
def _next_range(facts: Facts, ready: list[Member], *, due: Literal[True]) -> Range: ...
@overload
def _next_range(facts: Facts, ready: list[Member]) -> Range | Wait: ...
def _next_range(facts: Facts, ready: list[Member], *, due: bool = False) -> Range | Wait:
    """Return the next range, an idle advance or the opening of snapshotted tables; `due` always requires a row."""
    assert facts.captured is not None
    reached = max(_at(m) for m in ready)
    to = min(b for b in (facts.captured, facts.row_bound, facts.transaction_bound) if b is not None)
    # A4: not below what one table has already committed
    to = max([to, *(_at(m) for m in ready if _at(m) <= facts.captured)])
    if any(_at(m) < to for m in ready):
        return _build(facts, ready, to)
    # No cut names this position yet: a table was given up and the others have reached it, or tables without rows have
    # only taken it, and their records wait for a cut (the schema changes and the heartbeat of mode no_data).
    uncut = facts.cut is None or facts.cut < reached
    # A table that was given up may have been read up to here, by a run that could no longer record it.
    behind = any(m.revived or _at(m) < reached for m in ready)
    if due or uncut or behind or _opens(facts, ready, reached):
        found = _build(facts, ready, reached)
        # Beyond the cut with nothing to advance, a closed table makes the range wait for capture.
        effect = due or found.idle or found.slices or found.complete
        if (facts.scanned or facts.captured) >= reached and effect:
            return found
    elif facts.settled is not None and facts.settled > reached and facts.idle_for >= facts.limits.idle_advance:
        return _build(facts, ready, facts.settled)
    return _build(facts, ready, reached) if due else _waiting(facts, ready, reached)


def _build(
    facts: Facts,
    ready: list[Member],
    to: Lsn,
    *,
    reading: Sequence[Member] | None = None,
    label: LsnRange | None = None,
    attempt: int = 1,
) -> Range:
    """Build the range to `to`. Tables at or beyond `captured` have nothing to read and only advance (rule A8)."""
    assert facts.captured is not None
    wanted = [m for m in (ready if reading is None else reading) if _at(m) < to]
    behind = [m for m in wanted if _at(m) < facts.captured]
    if behind:
        to = _clamp(behind, min(to, facts.captured))
    slices = tuple(_slice(m, to) for m in behind if _at(m) < to)
    scanned = to <= max(facts.captured, facts.scanned or facts.captured)
    idle = tuple(m.table for m in wanted if scanned and facts.captured <= _at(m) < to)
    taken = {part.table for part in slices} | set(idle)
    everyone = all(m.table in taken or _at(m) == to for m in ready)
    passed = _passed(facts, to)
    open_ = all(m.closed_until is None or m.closed_until <= passed for m in ready)
    complete = everyone and open_
    if label is None or label.to != to:
        lowest = min((_at(m) for m in wanted), default=to)
        start = facts.cut if facts.cut is not None and facts.cut < to else lowest
        label = LsnRange(min(start, to), to, facts.epoch)
    opens = tuple(m.table for m in ready if m.closed_until is not None) if complete else ()
    return Range(label, slices, complete, attempt, idle, opens)


def _clamp(members: Sequence[Member], to: Lsn) -> Lsn:
    """Lower `to` so that no member has to switch its capture instance within its slice (rule B14)."""
    for member in members:
        later = member.next_instance(_at(member))
        if later is not None and later.before is not None and _at(member) < later.before < to:
            to = later.before
    return to


def _slice(member: Member, to: Lsn) -> Slice:
    position = _at(member)
    instance = member.instance_at(position)
    assert instance is not None  # members without one are lost
    return Slice(member.table, position, to, instance, min(member.reads_from(instance, position), to))


def _opens(facts: Facts, ready: Sequence[Member], to: Lsn) -> bool:
    """Whether there are closed tables and the stream has passed the snapshots of all of them."""
    passed = _passed(facts, to)
    closed = [m.closed_until for m in ready if m.closed_until is not None]
    return bool(closed) and max(closed) <= passed


def _passed(facts: Facts, to: Lsn) -> Lsn:
    """The position that a stream at `to` has passed: if it has all that is captured, it has what was scanned (C18)."""
    return to if facts.captured is None or to < facts.captured else max(to, facts.scanned or to)


def _waiting(facts: Facts, ready: Sequence[Member], reached: Lsn) -> Wait:
    closed = [m.table.text for m in ready if m.closed_until is not None]
    if closed:
        why = f": {facts.held_back}" if facts.held_back else ""
        return Wait(f"the snapshot of {', '.join(closed)} opens once capture has passed its end{why}")
    if facts.captured is not None and max(facts.captured, facts.scanned or facts.captured) < reached:
        return Wait(
            f"the connection sees changes only up to {facts.captured.text}, behind {reached.text}: "
            f"{facts.held_back or 'is it a lagging replica?'}"
        )
    return Wait(f"no changes since {reached.text}")


def _ready(facts: Facts, lost: Collection[TableId]) -> list[Member]:
    return [m for m in facts.members if m.status == "streaming" and m.table not in lost and m.position is not None]


def _pending(facts: Facts) -> LsnRange | None:
    """Return the cursor's unfinished range, unless this reader cannot see it or it belongs to another epoch.

    The range is finished if its last run did everything requested: tables below its end have since come from a
    snapshot, and the next range includes them, whatever other snapshots are being taken.
    """
    if facts.runs.of(facts.cursor.pending_key).succeeded:
        return None
    try:
        found = LsnRange.parse(facts.cursor.pending_key or "")
    except ValueError:
        return None
    seen = _seen(facts)
    return found if seen is not None and found.to <= seen and found.epoch == facts.epoch else None


def _seen(facts: Facts) -> Lsn | None:
    """Return the position up to which this reader knows all changes: captured, or scanned further on an idle log."""
    return max((lsn for lsn in (facts.captured, facts.scanned) if lsn is not None), default=None)


def _at(member: Member) -> Lsn:
    assert member.position is not None  # `ready` holds only members that have one
    return member.position
