"""Log marks as JSON, as `_offsets` keeps them between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.log_end import LogMark


def mark_to(mark: LogMark) -> dict[str, Any]:
    """A mark as JSON."""
    return {
        "lsn": mark.lsn.text,
        "read_at": mark.read_at.isoformat(),
        "session_id": mark.session_id,
        "empty_scans": mark.empty_scans,
    }


def mark_from(data: Mapping[str, Any]) -> LogMark:
    """The mark of this JSON."""
    return LogMark(
        Lsn.parse(data["lsn"]),
        datetime.fromisoformat(data["read_at"]),
        data["session_id"],
        data["empty_scans"],
    )
