"""Columns of a table with identity, default and computed definitions, as data.

What does not belong here: evaluating expressions; the executor supplies them as callables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.engine.xml.schemas import SchemaCollection
from mssql_sandbox.errors import error

Generated = Literal["", "start", "end"]
"""The kind of a period column of a system-versioned table."""
_RANGES = {
    "tinyint": (0, 255),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}


@dataclass(slots=True)
class Identity:
    """IDENTITY(seed, increment) and its state; `last` is None before the first value."""

    seed: int = 1
    increment: int = 1
    last: int | None = None
    not_for_replication: bool = False

    def take(self, type_: SqlType) -> int:
        """The next value; never reused, not even after a rollback. Error 8115 beyond the type's range."""
        value = self.seed if self.last is None else self.last + self.increment
        low, high = _RANGES.get(type_.name, (-(10**type_.precision) + 1, 10**type_.precision - 1))
        if not low <= value <= high:
            raise error(8115, source="IDENTITY", target=type_.name, state=1)
        self.last = value
        return value

    def note(self, value: int) -> None:
        """Record an explicitly inserted value: the next one continues from the farthest."""
        if self.last is None or (value > self.last) == (self.increment > 0):
            self.last = value


@dataclass(slots=True)
class Default:
    """A DEFAULT constraint: its name, object id, text and how to compute it from a session."""

    name: str
    object_id: int
    text: str
    evaluate: Callable[[Any], object]
    system_named: bool = False


@dataclass(slots=True)
class Computed:
    """A computed column: text and function of the whole row; persisted or not, storage keeps the value.

    `stored=False` is for expressions that are not deterministic: storage then keeps None and the executor computes the
    value when the row is read.
    """

    text: str
    evaluate: Callable[[tuple], object]
    persisted: bool = False
    stored: bool = True
    references: frozenset[str] = frozenset()


@dataclass(slots=True)
class Column:
    """A column; `column_id` is never reused, its position in the row tuple is its index in `Table.columns`."""

    name: str
    type: SqlType
    column_id: int = 0
    nullable: bool = True
    identity: Identity | None = None
    default: Default | None = None
    computed: Computed | None = None
    rowguid: bool = False
    sparse: bool = False
    hidden: bool = False
    masking: str | None = None
    replicated: bool = False
    generated: Generated = ""
    xml_schema: SchemaCollection | None = None
    """The schemas that validate values of a typed xml column."""

    @property
    def is_rowversion(self) -> bool:
        """Whether storage fills the column."""
        return self.type.name == "rowversion"

    @property
    def writable(self) -> bool:
        """Whether statements may set it (identity columns aside)."""
        return self.computed is None and self.type.name != "rowversion" and not self.generated
