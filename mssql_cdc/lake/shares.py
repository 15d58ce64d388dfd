"""Divides the update of a large current table into shares: tasks that run in parallel and are committed together.

A share writes the new rows of a range of keys, and deletes old rows from a group of files: together, the ranges cover
all keys and the groups all files. `lake/apply_task.py` runs a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from mssql_cdc.lake.apply_task import LARGE_ROWS, MOST_BYTES, MOST_ROWS, SMALL_ROWS, ApplyTask
from mssql_cdc.lake.data_file import bounds
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.look_up import DENSE, stored_names
from mssql_cdc.lake.window import KeyRange, Window

MOST_SECTION_ROWS = 10_000_000
"""More changes at once are left to Spark if the table has rows: each share holds all keys that its files may have."""
SHARED_ROWS = 250_000
"""This many changes are worth a task of their own where a core is free."""
LOOK_UP_SECONDS = 1.0
"""How long a task may look up keys if another core is free."""
_KEY_SECONDS = 6e-8
_FILE_SECONDS = 5e-3


def shares(task: ApplyTask, *, cores: int) -> list[ApplyTask]:
    """The shares of an update; the task itself when it is small.

    Args:
        task: A whole update.
        cores: How many tasks run at the same time.
    """
    count = max(
        1,
        -(-task.window.most_rows // MOST_ROWS),
        -(-task.window.size // MOST_BYTES),
        min(cores, task.window.most_rows // SHARED_ROWS),
    )
    ranges = task.window.ranges(-(-task.window.most_rows // count)) if count > 1 else [KeyRange()]
    costs = [_cost(file, task.window.most_rows) for file in task.live]
    wanted = max(len(ranges), min(cores, round(sum(costs) / LOOK_UP_SECONDS)))
    if task.vectors is False or task.rewrites:
        wanted = max(wanted, -(-sum(file.size for file in task.live) // MOST_BYTES))
    if wanted == 1:
        return [task]
    groups = _groups(task, costs, wanted, absorbing=len(ranges) == 1)
    vectors = sum(file.left for file in task.live) > SMALL_ROWS if task.vectors is None else task.vectors
    nothing = replace(task.window, files=())
    return [
        replace(
            task,
            window=task.window.within(keys) if keys else nothing,
            live=group,
            vectors=vectors,
            section=_section(task, group),
            others=tuple(file for file in task.live if file not in group),
        )
        for keys, group in zip_longest(ranges, groups, fillvalue=None)
        for group in [group or ()]
    ]


def too_large(window: Window, live: Sequence[LiveFile]) -> str | None:
    """Why an update is left to Spark; None: it is not."""
    rows = window.most_rows
    return f"{rows} changes of a table that has rows" if live and rows > MOST_SECTION_ROWS else None


def _groups(task: ApplyTask, costs: Sequence[float], count: int, *, absorbing: bool) -> list[tuple[LiveFile, ...]]:
    """The live files in groups of about the same cost, in the order of their keys.

    With `absorbing` the first group has all small files, since only one share has new rows that they can join.
    """
    key_name = stored_names(task.target.schema_json or "")[0]
    found: list[list[LiveFile]] = [[] for _ in range(count)]
    spent, most = [0.0] * count, sum(costs) / count
    number = 0
    for file, cost in sorted(
        zip(task.live, costs, strict=True),
        key=lambda one: (absorbing and one[0].left > LARGE_ROWS, bounds(one[0], key_name)[0] or ""),
    ):
        small = absorbing and file.left <= LARGE_ROWS
        if not small and spent[number] + cost / 2 > most and number + 1 < count:
            number += 1
        found[number].append(file)
        spent[number] += cost
    return [tuple(group) for group in found]


def _section(task: ApplyTask, group: Sequence[LiveFile]) -> Window:
    """All changes to keys that the files of a group may hold."""
    key_name = stored_names(task.target.schema_json or "")[0]
    known = [bounds(file, key_name) for file in group]
    low = [low for low, _ in known if low is not None]
    high = [high for _, high in known if high is not None]
    if not group:
        return replace(task.window, files=())
    whole = len(low) < len(group) or len(high) < len(group)
    return task.window if whole else task.window.within(KeyRange.of(min(low), max(high)))


def _cost(file: LiveFile, keys: int) -> float:
    """Estimate how many seconds it takes to look up this many keys in a file."""
    rows = file.rows
    return rows * _KEY_SECONDS if keys * DENSE >= rows else _FILE_SECONDS + keys * 4 * _KEY_SECONDS
