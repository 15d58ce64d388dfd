"""The events that a session emits while it runs a request, and what a client may send besides SQL text.

Events are plain frozen values: sessions create them, the protocol layer turns them into tokens, tests compare them.
What does not belong here: encoding and execution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mssql_sandbox.engine.types import ResultColumn, SqlType

EnvironmentKind = Literal["database", "language", "begin", "commit", "rollback", "collation", "reset"]
TmKind = Literal["begin", "commit", "rollback", "save"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Description of the result set that follows."""

    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One-based ordinals of the columns that the result set is ordered by."""

    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """The source of a column of a cursor's result: one-based number of its table, 0 for an expression."""

    table: int
    name: str = ""
    """The column's own name if the result uses another one."""
    key: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """The base tables of the preceding result set (names in one to three parts), and each column's source."""

    tables: tuple[tuple[str, ...], ...]
    columns: tuple[SourceColumn, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """A slice of rows in storage form: some hundred to a few thousand tuples; receivers must not change it."""

    rows: list[tuple]


@dataclass(frozen=True, slots=True)
class Done:
    """End of a statement that reports it; `count` is None if no row count is reported."""

    count: int | None = None
    command: str = "select"
    in_transaction: bool = False
    in_procedure: bool = False
    error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A message to the client: INFO up to severity 10, else ERROR."""

    number: int
    state: int
    severity: int
    text: str
    procedure: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class EnvChange:
    """A change of the session's environment; transactions give their 8-byte descriptor as int."""

    kind: EnvironmentKind
    new: str | int | bytes = ""
    old: str | int | bytes = ""


@dataclass(frozen=True, slots=True)
class ReturnStatus:
    """Return value of a procedure."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class OutputParameter:
    """Value of an output parameter; `ordinal` is its zero-based position among the parameters sent."""

    name: str
    ordinal: int
    type: SqlType
    value: object


@dataclass(frozen=True, slots=True)
class ProcDone:
    """End of a remote procedure call."""

    in_transaction: bool = False
    error: bool = False


Event = Columns | Order | Sources | Rows | Done | Message | EnvChange | ReturnStatus | OutputParameter | ProcDone

TABLE_TYPE = SqlType("table type")
"""The type of a parameter whose value is a `TableValue`."""


@dataclass(frozen=True, slots=True)
class TableValue:
    """The rows of a table-valued parameter in storage form; the name of its table type is empty if not sent.

    `defaulted` are the positions of columns that the client leaves to the server: their cells are None.
    """

    type_name: tuple[str, ...]
    columns: tuple[SqlType, ...]
    rows: list[tuple]
    defaulted: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BulkData:
    """The rows of a bulk load message in storage form, with the names and types that the client declares."""

    names: tuple[str, ...]
    columns: tuple[SqlType, ...]
    rows: list[tuple]


@dataclass(frozen=True, slots=True)
class RpcParameter:
    """A parameter of a remote procedure call; `name` is empty for positional ones, else starts with '@'."""

    name: str
    type: SqlType
    value: object
    output: bool = False
    default: bool = False


@dataclass(frozen=True, slots=True)
class TmRequest:
    """A transaction manager request.

    `isolation` is the wire's number (0 = leave, 1 read uncommitted, 2 read committed, 3 repeatable read,
    4 serializable, 5 snapshot); `begin_next` carries fBeginXact: begin a new transaction after commit/rollback,
    with `next_isolation` and `next_name`.
    """

    kind: TmKind
    name: str = ""
    isolation: int = 0
    begin_next: bool = False
    next_isolation: int = 0
    next_name: str = field(default="")
