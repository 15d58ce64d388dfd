"""The state of a database's tables: which ones may lack rows, and why; used for exit codes, `check` and Dagster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import MssqlCdcError, NotCaughtUpError, SourceRestoredError
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.plan.decisions import RESTORED_ADVICE
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Standings:
    """Tables (`TableId.text`) whose rows in the lake may differ from the source's, with the reason.

    `missing` tables lost changes or are no longer shown by the source; `failed` ones failed several attempts,
    or could not be captured at all. `absent` are the tables of both that cannot be captured now: the source does not
    show them, or they do not fit as they are. The reason says what to do about it.
    """

    missing: Mapping[str, str]
    failed: Mapping[str, str]
    absent: Mapping[str, str] = field(default_factory=dict[str, str])


def standings(seen: Survey, listed: Collection[TableId] = ()) -> Standings:
    """Return the state of the tables in this survey.

    Args:
        seen: The survey.
        listed: Tables that were captured when the table list was written: one of them may have disappeared before
            anything of it was read, and then neither the lake nor the source knows about it.
    """
    entries = entries_by_name(seen.offsets, seen.history.versions)
    known_ids = {entry.object_id for entry in entries.values()}
    # If the structures of tables are lost, only `_offsets` has their names.
    left = seen.offsets.present.items()
    entries = {name: one for name, one in left if one.object_id not in known_ids} | entries
    unread = {absent.shown.text: absent.reason for absent in seen.facts.absent if absent.status == "new"}
    known = {*entries, *unread, *(table.text for table in seen.tables)}
    unread |= {table.text: _unseen(table) for table in listed if table.text not in known}
    gone = {absent.shown.text: absent.reason for absent in seen.facts.absent if absent.status != "new"}
    missing = {name: entry.reason or "changes were lost" for name, entry in entries.items() if entry.status == "lost"}
    failed = {name: entry.reason or "" for name, entry in entries.items() if entry.status == "failed"}
    return Standings(missing | gone, failed | unread, gone | unread)


def loss_text(missing: Mapping[str, str], absent: Collection[str]) -> str:
    """What to say about tables whose rows may be missing: the reasons, and what repairs them.

    Args:
        missing: The tables (`TableId.text`) with their reasons.
        absent: The tables that cannot be captured now, and of which no snapshot can be read either.
    """
    held = [name for name in missing if name in absent]
    shown = [name for name in missing if name not in absent]
    lines = ["; ".join(f"{name}: {reason}" for name, reason in missing.items())]
    if shown:
        lines.append(f"A blocking snapshot repairs {', '.join(shown)}")
    if held:
        lines.append(f"No snapshot of {', '.join(held)} can be read before that is mended")
    return ". ".join(lines)


def restored(seen: Survey) -> MssqlCdcError | None:
    """The error for a source that went back in time (A7): `run` stops, or begins another epoch; None: it did not.

    Args:
        seen: The survey.
    """
    if not seen.facts.restored:
        return None
    reason = f"the source was restored or failed over: {seen.facts.restored}"
    if seen.facts.policy.on_data_error:
        return NotCaughtUpError(
            f"Not caught up yet: {reason}. The next run begins a new epoch, and reads every table again"
        )
    return SourceRestoredError(f"{reason}. {RESTORED_ADVICE}")


def _unseen(table: TableId) -> str:
    name = ".".join(f"[{part.replace(']', ']]')}]" for part in (table.schema, table.name))
    return (
        f"the source does not show it among the captured tables: GRANT SELECT ON {name} TO <login's user> if the login "
        "cannot see it, enable CDC on it (EXEC sys.sp_cdc_enable_table), or, if it was renamed or dropped, run "
        "`mssql-cdc discover` and reload the code location"
    )
