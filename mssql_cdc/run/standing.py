"""How the tables of a database stand: which may lack rows, and why. For exit codes, `check` and Dagster alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mssql_cdc.capture.survey import Survey


@dataclass(frozen=True, slots=True)
class Standings:
    """Tables (`TableId.text`) whose rows in the lake may not be the source's, with the reason.

    `missing` tables lost changes or are not shown by the source any more; `failed` ones were given up after several
    attempts, or could not be captured from the beginning.
    """

    missing: Mapping[str, str]
    failed: Mapping[str, str]


def standings(seen: Survey) -> Standings:
    """How the tables stood at this look."""
    entries = seen.offsets.entries
    missing = {name: entry.reason or "changes were lost" for name, entry in entries.items() if entry.status == "lost"}
    missing |= {absent.table.text: absent.reason for absent in seen.facts.absent if absent.status != "new"}
    failed = {name: entry.reason or "" for name, entry in entries.items() if entry.status == "failed"}
    failed |= {absent.table.text: absent.reason for absent in seen.facts.absent if absent.status == "new"}
    return Standings(missing, failed)
