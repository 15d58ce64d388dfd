"""`sys.fn_varbintohexstr` and `sys.fn_varbintohexsubstring`: LSNs as text, undocumented and widely used."""

from __future__ import annotations

from mssql_sandbox.catalog.definitions import Scope, function


def _whole(_scope: Scope, value: bytes | None) -> str | None:
    return None if value is None else f"0x{value.hex()}"


def _part(
    _scope: Scope, prefix: int | None, value: bytes | None, start: int | None, count: int | None
) -> str | None:  # fmt: skip
    """`count` bytes from `start` (1-based), or all that follow; NULL if there are none."""
    if value is None or start is None or not 1 <= start <= len(value):
        return None
    end = len(value) if not count or count < 0 else start - 1 + count
    return ("0x" if prefix else "") + value[start - 1 : end].hex()


FUNCTIONS = (
    function("fn_varbintohexstr", "nvarchar(max)", "varbinary(max)", _whole),
    function("fn_varbintohexsubstring", "nvarchar(max)", "bit; varbinary(max); int; int", _part),
)
