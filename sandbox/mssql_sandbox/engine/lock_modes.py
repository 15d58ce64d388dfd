"""Lock modes: which are compatible, and which cover others."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class LockMode(Enum):
    """Lock modes by their names in sys.dm_tran_locks."""

    SCH_S = "Sch-S"
    SCH_M = "Sch-M"
    IS = "IS"
    IX = "IX"
    S = "S"
    U = "U"
    SIX = "SIX"
    X = "X"


_M = LockMode
COMPATIBLE: Mapping[LockMode, frozenset[LockMode]] = {
    _M.SCH_S: frozenset(set(LockMode) - {_M.SCH_M}),
    _M.SCH_M: frozenset(),
    _M.IS: frozenset({_M.SCH_S, _M.IS, _M.IX, _M.S, _M.U, _M.SIX}),
    _M.IX: frozenset({_M.SCH_S, _M.IS, _M.IX}),
    _M.S: frozenset({_M.SCH_S, _M.IS, _M.S, _M.U}),
    _M.U: frozenset({_M.SCH_S, _M.IS, _M.S}),
    _M.SIX: frozenset({_M.SCH_S, _M.IS}),
    _M.X: frozenset({_M.SCH_S}),
}
"""The modes that other owners may hold beside this one."""
COVERS: Mapping[LockMode, frozenset[LockMode]] = {
    _M.SCH_S: frozenset({_M.SCH_S}),
    _M.SCH_M: frozenset(LockMode),
    _M.IS: frozenset({_M.IS, _M.SCH_S}),
    _M.IX: frozenset({_M.IX, _M.IS, _M.SCH_S}),
    _M.S: frozenset({_M.S, _M.IS, _M.SCH_S}),
    _M.U: frozenset({_M.U, _M.S, _M.IS, _M.SCH_S}),
    _M.SIX: frozenset({_M.SIX, _M.S, _M.IX, _M.IS, _M.U, _M.SCH_S}),
    _M.X: frozenset(set(LockMode) - {_M.SCH_M}),
}
"""The modes that this one includes."""


def combined(held: LockMode, wanted: LockMode) -> LockMode:
    """The weakest mode that covers both."""
    if wanted in COVERS[held]:
        return held
    if held in COVERS[wanted]:
        return wanted
    for mode in (_M.SIX, _M.X):
        if held in COVERS[mode] and wanted in COVERS[mode]:
            return mode
    return _M.SCH_M
