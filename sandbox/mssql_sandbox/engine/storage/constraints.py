"""CHECK and FOREIGN KEY constraints as data.

What does not belong here: compiling conditions (the executor) and enforcing them (writing.py, references.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

Action = Literal["NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT"]


@dataclass(slots=True, eq=False)
class Check:
    """A CHECK constraint: only False violates it, unknown (None) does not. `column` is set for column constraints."""

    name: str
    object_id: int
    text: str
    predicate: Callable[[tuple], bool | None]
    column: str | None = None
    enabled: bool = True
    trusted: bool = True
    system_named: bool = False
    not_for_replication: bool = False


@dataclass(slots=True, eq=False)
class ForeignKey:
    """A FOREIGN KEY from `table` to a unique key of `referenced`."""

    name: str
    object_id: int
    table: Table
    columns: tuple[str, ...]
    referenced: Table
    referenced_columns: tuple[str, ...]
    on_delete: Action = "NO ACTION"
    on_update: Action = "NO ACTION"
    enabled: bool = True
    trusted: bool = True
    system_named: bool = False
    not_for_replication: bool = False
    properties: dict[str, object] = field(default_factory=dict)
