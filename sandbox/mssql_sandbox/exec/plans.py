"""The interface of a plan: it has fields, is opened for one execution, and gives slices of rows.

Finding and computing rows belongs to `query`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.scope import Field

Slice = list[tuple]
Slices = Iterator[Slice]
SLICE = 1000


class Operator(Protocol):
    """A plan: fields of its rows, and how to open it. `order` lists (position, descending) of the rows' order."""

    fields: Sequence[Field]
    order: Sequence[tuple[int, bool]]

    def open(self, context: Context) -> Slices:
        """Restart and return the slices."""
        ...
