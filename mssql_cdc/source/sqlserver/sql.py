"""T-SQL names and literals (the only place where text becomes part of a statement), and visibility checks."""

from __future__ import annotations

from mssql_cdc.lsn import Lsn

MAPPING = "[cdc].[lsn_time_mapping]"


def quote(name: str) -> str:
    """A name in brackets."""
    return f"[{name.replace(']', ']]')}]"


def text(value: str) -> str:
    """A national text literal; for names that come from the catalog, never for data."""
    return "N'" + value.replace("'", "''") + "'"


def lsn(value: Lsn) -> str:
    """An LSN as a binary literal."""
    return f"0x{value.raw.hex()}"


def require_visible(to: Lsn) -> str:
    """Fails with 50001 unless this connection already sees the commit `to` (rule A2)."""
    return f"IF NOT EXISTS (SELECT 1 FROM {MAPPING} WHERE [start_lsn] = {lsn(to)}) THROW 50001, 'stale reader', 1"


def require_captured(at: Lsn) -> str:
    """Fails with 50001 unless this connection sees that capture has reached `at` (rule C20, case B)."""
    return (
        f"IF NOT EXISTS (SELECT 1 FROM {MAPPING} WHERE [start_lsn] >= {lsn(at)}) "
        f"AND NOT EXISTS (SELECT 1 FROM [cdc].[change_tables] WHERE [start_lsn] >= {lsn(at)}) "
        "THROW 50001, 'stale reader', 1"
    )
