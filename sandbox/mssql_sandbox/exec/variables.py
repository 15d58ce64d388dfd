"""Variables of a batch or module: slots and types, and the check that all are declared (137, 134, 1087)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(slots=True)
class Slot:
    """A declared variable: a scalar of `type`, a table (with its definition) or a cursor."""

    place: int
    name: str
    type: SqlType | None = None
    table: Any = None
    cursor: bool = False
    table_type: tuple[str, ...] = ()
    readonly: bool = False


@dataclass(slots=True)
class VariableScope:
    """Names (lower case) to slots."""

    slots: dict[str, Slot] = field(default_factory=dict)

    def declare(self, name: str, type_: SqlType | None = None, *, table: Any = None, cursor: bool = False) -> Slot:
        """A new variable; 134 if the name is taken."""
        key = name.lower()
        if key in self.slots:
            raise error(134, name=name)
        slot = self.slots[key] = Slot(len(self.slots), name, type_, table, cursor)
        return slot

    def scalar(self, name: str) -> Slot:
        """A scalar or cursor variable; 137 if there is none."""
        slot = self.slots.get(name.lower())
        if slot is None or slot.table is not None:
            raise error(137, name=name)
        return slot

    def table(self, name: str) -> Slot:
        """A table variable; 1087 if there is none."""
        slot = self.slots.get(name.lower())
        if slot is None or slot.table is None:
            raise SqlError(1087, f'Must declare the table variable "{name}".', severity=15, state=2)
        return slot

    def writable_table(self, name: str) -> Slot:
        """A table variable that a statement changes; 10700 for a table-valued parameter."""
        slot = self.table(name)
        if slot.readonly:
            raise read_only(name)
        return slot


def read_only(name: str) -> SqlError:
    """10700: a statement would change the rows of a table-valued parameter."""
    return SqlError(10700, f'The table-valued parameter "{name}" is READONLY and cannot be modified.')


def check_readonly(name: str, *, readonly: bool) -> None:
    """352 for a parameter of a table type that is not declared READONLY."""
    if not readonly:
        raise SqlError(
            352, f'The table-valued parameter "{name}" must be declared with the READONLY option.', severity=15
        )


def walk(node: Any) -> Iterator[Any]:
    """All syntax nodes within a node, itself first, in textual order; bodies of modules are excluded."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, tuple):
            waiting.extend(reversed(found))
        elif dataclasses.is_dataclass(found):
            yield found
            if not isinstance(found, st.CreateModule):
                waiting.extend([getattr(found, part) for part in reversed(found.__slots__)])  # type: ignore[union-attr]


def uses(node: Any) -> Iterator[str]:
    """Names of the scalar variables that a statement reads or sets."""
    for part in walk(node):
        if isinstance(part, (ast.Variable, st.SetVariable)):
            yield part.name
        elif isinstance(part, ast.SelectItem) and part.assign:
            yield part.assign
        elif isinstance(part, st.Assignment) and part.variable:
            yield part.variable
