"""Notices that a user has restored a current table to an earlier version (correctness D).

RESTORE brings back files and metadata, but not txns: progress says that every change is applied, but rows are missing.
Only the operation's name in the log reveals it. `lake/current_plan.py` decides what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mssql_cdc.lake.commit_facts import told_facts

REPLACES = "replaces"
"""The fact, in a commit's userMetadata, that it replaces all rows with those that the change log adds up to."""


def restored_after(before: int | None, info: Mapping[str, Any], version: int) -> int | None:
    """The version of the RESTORE whose rows a table still has; None without one.

    Args:
        before: what it was before the commit.
        info: the commit's `commitInfo`.
        version: the commit's version.
    """
    if info.get("operation") == "RESTORE":
        return version
    return None if told_facts(info).get(REPLACES) else before


def restored_before(version: int, info_of: Callable[[int], Mapping[str, Any]]) -> int | None:
    """The same for a version that is read from a checkpoint, which says nothing about operations.

    Commits are read backward, up to one of ours: that would have replaced the rows after a RESTORE. Usually it is the
    first, since we write the checkpoints. A commit that log cleanup has removed ends the search, too.

    Args:
        version: the checkpoint's version.
        info_of: the `commitInfo` of a version; empty if there is none.
    """
    while version >= 0 and (info := info_of(version)):
        if info.get("operation") == "RESTORE":
            return version
        if "batch" in told_facts(info):
            return None
        version -= 1
    return None
