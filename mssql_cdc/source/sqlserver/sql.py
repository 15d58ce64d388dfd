"""T-SQL names and literals (the only place where text becomes part of a statement), and visibility checks."""

from __future__ import annotations

from collections.abc import Iterable

from mssql_cdc.errors import StaleReaderError
from mssql_cdc.lsn import Lsn

MAPPING = "[cdc].[lsn_time_mapping]"


def quote(name: str) -> str:
    """A name in brackets."""
    return f"[{name.replace(']', ']]')}]"


def text(value: str) -> str:
    """A national text literal; for names that come from the catalog, never for data."""
    return "N'" + value.replace("'", "''") + "'"


def changes_function(instance: str) -> str:
    """The function of CDC that returns all changes of a capture instance, by the instance's name."""
    return f"[cdc].{quote(f'fn_cdc_get_all_changes_{instance}')}"


def lsn(value: Lsn) -> str:
    """An LSN as a binary literal; only where the text stays the same from poll to poll, or each poll costs a plan."""
    return f"0x{value.raw.hex()}"


LSN = "CONVERT(binary(10), ?, 2)"
"""An LSN as a parameter, which is its hexadecimal text (`digits`): both libraries declare it in the same way."""


def digits(value: Lsn) -> str:
    """The parameter for `LSN`."""
    return value.raw.hex()


_DIGITS = 8
_ROW = 16
MOST_IDS = _ROW * _ROW
"""How many object ids fit into one parameter of `IDS`."""
_UNITS, _ROWS = (", ".join(f"({_DIGITS * step * n})" for n in range(_ROW)) for step in (1, _ROW))
_ID = f"SUBSTRING(@ids, u.n + r.n + 1, {_DIGITS})"
DECLARE_IDS = f"DECLARE @ids varchar({_DIGITS * MOST_IDS}) = ?"
IDS = (
    f"(SELECT CONVERT(int, CONVERT(binary(4), {_ID}, 2)) AS id FROM (VALUES {_UNITS}) AS u (n) "
    f"CROSS JOIN (VALUES {_ROWS}) AS r (n) WHERE {_ID} <> '{'0' * _DIGITS}')"
)
"""A table source: the object ids in a parameter (`id_lists`), for CROSS APPLY with a seek for each.

Neither the text nor the parameter's length depends on how many there are, so that the server has one plan for all sets
of tables. STRING_SPLIT and OPENJSON would be shorter; neither exists before SQL Server 2016, nor in databases with an
older compatibility level.
"""


def id_lists(ids: Iterable[int]) -> list[str]:
    """The parameters of `DECLARE_IDS`, one per statement, with at most `MOST_IDS` different object ids each."""
    texts = [f"{one & 0xFFFFFFFF:0{_DIGITS}x}" for one in sorted(set(ids))]
    parts = [texts[first : first + MOST_IDS] for first in range(0, len(texts), MOST_IDS)]
    return ["".join(part).ljust(_DIGITS * MOST_IDS, "0") for part in parts]


IS_VISIBLE = (
    f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {MAPPING} WHERE start_lsn = {LSN}) "
    f"OR EXISTS (SELECT 1 FROM [cdc].[change_tables] WHERE start_lsn = {LSN}) THEN 1 ELSE 0 END AS n"
)
"""1 if the connection sees the commit (rule A2), or the start of an instance, where a range ends while no transaction
is captured (`positions.captured`); takes its `digits`, twice."""

IS_CAPTURED = (
    f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {MAPPING} WHERE start_lsn >= {LSN}) "
    f"OR EXISTS (SELECT 1 FROM [cdc].[change_tables] WHERE start_lsn >= {LSN}) THEN 1 ELSE 0 END AS n"
)
"""1 if the connection sees that capture has reached the LSN (rule C20, case B); takes its `digits`, twice."""


def stale_reader(doing: str) -> StaleReaderError:
    """The error for a connection that does not see what it must; `doing` completes "while …"."""
    return StaleReaderError(
        f"The server does not see the end of the range yet, while {doing}: a replica lags behind its primary. The "
        "read will be retried"
    )
