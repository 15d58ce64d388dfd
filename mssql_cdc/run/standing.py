"""The state of a database's tables: which ones may lack rows, and why; used for exit codes, `check` and Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mssql_cdc.capture.survey import Survey


@dataclass(frozen=True, slots=True)
class Standings:
    """Tables (`TableId.text`) whose rows in the lake may differ from the source's, with the reason.

    `missing` tables lost changes or are no longer shown by the source; `failed` ones failed several attempts,
    or could not be captured at all.
    """

    missing: Mapping[str, str]
    failed: Mapping[str, str]


def standings(seen: Survey) -> Standings:
    """Return the state of the tables in this survey."""
    entries = seen.offsets.entries
    missing = {name: entry.reason or "changes were lost" for name, entry in entries.items() if entry.status == "lost"}
    missing |= {absent.table.text: absent.reason for absent in seen.facts.absent if absent.status != "new"}
    failed = {name: entry.reason or "" for name, entry in entries.items() if entry.status == "failed"}
    failed |= {absent.table.text: absent.reason for absent in seen.facts.absent if absent.status == "new"}
    return Standings(missing, failed)
