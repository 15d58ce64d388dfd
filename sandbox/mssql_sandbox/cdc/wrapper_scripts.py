"""Scripts of wrapper functions: time ranges instead of LSNs, operations as letters. Pure.

The shape of the result and the meaning of the times follow "sys.fn_all_changes_<capture_instance>" and
"sys.fn_net_changes_<capture_instance>" [doc]; the text is this project's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mssql_sandbox.cdc.layout import ALL_CHANGES, NET_CHANGES

UPDATED, MERGED = 4, 5
_LETTERS = {1: "D", 2: "I", 3: "UO", UPDATED: "UN", MERGED: "M"}


@dataclass(frozen=True, slots=True)
class WrapperColumn:
    """A column of the result, with its type as T-SQL writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The columns of a wrapper: `columns` of the instance and a bit `<name>_uflag` for each name of `flags`."""

    instance: str
    columns: Sequence[WrapperColumn]
    flags: Sequence[str]
    closed_high_end: bool

    def script(self, *, net: bool) -> tuple[str, str]:
        """Name and CREATE FUNCTION statement of the wrapper of all changes, or of net changes."""
        name = f"fn_{'net' if net else 'all'}_changes_{self.instance}"
        return name, "\n".join([*self._head(name, net=net), *self._range(), *self._rows(net=net), "RETURN", "END"])

    def _head(self, name: str, *, net: bool) -> list[str]:
        leading = [] if net else ["__CDC_STARTLSN binary(10)", "__CDC_SEQVAL binary(10)"]
        shown = [f"{_bracketed(column.name)} {column.type} NULL" for column in self.columns]
        flags = [f"{_bracketed(flag + '_uflag')} bit NULL" for flag in self.flags]
        shape = ", ".join([*leading, *shown, "__CDC_OPERATION nvarchar(2)", *flags])
        return [
            f"CREATE FUNCTION {_bracketed(name)} (",
            "    @start_time datetime = NULL, @end_time datetime = NULL, @row_filter_option nvarchar(30) = N'all'",
            f") RETURNS @resultset TABLE ({shape})",
            "AS BEGIN",
        ]

    def _range(self) -> list[str]:
        below = "largest less than or equal" if self.closed_high_end else "largest less than"
        literal = self.instance.replace("'", "''")
        return [
            "DECLARE @from_lsn binary(10), @to_lsn binary(10)",
            "IF @start_time IS NULL",
            f"    SET @from_lsn = sys.fn_cdc_get_min_lsn(N'{literal}')",
            "ELSE",
            "    SET @from_lsn = sys.fn_cdc_map_time_to_lsn('smallest greater than', @start_time)",
            "IF @end_time IS NULL",
            "    SET @to_lsn = sys.fn_cdc_get_max_lsn()",
            "ELSE",
            f"    SET @to_lsn = sys.fn_cdc_map_time_to_lsn('{below}', @end_time)",
            "IF @from_lsn IS NULL OR @to_lsn IS NULL OR @from_lsn > @to_lsn",
            "    RETURN",
        ]

    def _rows(self, *, net: bool) -> list[str]:
        function = (NET_CHANGES if net else ALL_CHANGES) + self.instance
        letters = " ".join(f"WHEN {operation} THEN N'{letter}'" for operation, letter in _LETTERS.items())
        literal = self.instance.replace("'", "''")
        flags = [
            f"CASE WHEN [__$operation] = {UPDATED} AND [__$update_mask] IS NOT NULL THEN sys.fn_cdc_is_bit_set("
            f"sys.fn_cdc_get_column_ordinal(N'{literal}', N'{flag.replace(chr(39), chr(39) * 2)}'), "
            "[__$update_mask]) END"
            for flag in self.flags
        ]
        leading = [] if net else ["[__$start_lsn]", "[__$seqval]"]
        shown = [_bracketed(column.name) for column in self.columns]
        selected = ", ".join([*leading, *shown, f"CASE [__$operation] {letters} END", *flags])
        return [
            "INSERT INTO @resultset",
            f"SELECT {selected}",
            f"FROM cdc.{_bracketed(function)}(@from_lsn, @to_lsn, @row_filter_option)",
        ]


def _bracketed(name: str) -> str:
    return f"[{name.replace(']', ']]')}]"
