"""How a system view, procedure or function is declared: plain values, one per object.

The modules of views and procedures hold tables of them; `registry` finds them by name for the executor.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from mssql_sandbox.catalog.columns import column_type, layout
from mssql_sandbox.engine.events import Columns, Done, Event, Message, Rows
from mssql_sandbox.engine.product import ProductVersion
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import ResultColumn, SqlType
from mssql_sandbox.exec.session import Session

SLICE = 1000
"""Rows per `Rows` event."""


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Scope:
    """The session that reads an object, and the database in which the object was named."""

    server: Server
    database: Database
    session: Session
    transaction: Transaction | None = None
    """The running statement's transaction, if there is one."""
    object_id: int | None = None
    """The only table whose rows are needed; None for all."""

    def tables(self) -> Iterable[Table]:
        """The tables whose rows are needed, system tables included."""
        if self.object_id is None:
            return self.database.tables()
        found = self.database.object_by_id(self.object_id)
        return (found,) if isinstance(found, Table) else ()

    def objects(self) -> Iterable[Table | SchemaObject]:
        """The objects whose rows are needed, tables and system objects included."""
        if self.object_id is None:
            return self.database.objects()
        found = self.database.object_by_id(self.object_id)
        return () if found is None else (found,)


@dataclass(frozen=True, slots=True)
class SystemView:
    """A view whose rows are computed when it is read.

    `about` names the column with the id of the table that a row is about, for views whose rows come from
    `Scope.tables`: a query that fixes the column needs the rows of that table only.
    """

    schema: str
    name: str
    columns: tuple[ResultColumn, ...]
    rows: Callable[[Scope], Iterable[tuple]]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A procedure's parameter; `default` is `REQUIRED` if it has none."""

    name: str
    type: SqlType
    default: object = REQUIRED
    output: bool = False
    by_version: Callable[[ProductVersion], object] | None = None
    """Computes the default from the server's version, for parameters where it differs."""

    def default_of(self, version: ProductVersion) -> object:
        """The default on a server of this version."""
        return self.default if self.by_version is None else self.by_version(version)


@dataclass(slots=True)
class Call:
    """One execution of a system procedure: arguments by lower-case name without `@`, in storage form.

    The procedure may set `outputs` (same names) and `status`.
    """

    scope: Scope
    arguments: dict[str, object]
    outputs: dict[str, object] = field(default_factory=dict)
    status: int = 0

    def text(self, name: str) -> str | None:
        """A string argument without trailing blanks, or None."""
        value = self.arguments[name]
        return None if value is None else str(value).rstrip()

    def number(self, name: str) -> int | None:
        """An integer argument."""
        value = self.arguments[name]
        return None if value is None else int(value)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class SystemProcedure:
    """A procedure: `run` yields the events that are sent to the client."""

    schema: str
    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Call], AsyncIterator[Event]]


@dataclass(frozen=True, slots=True)
class SystemFunction:
    """A scalar function: `compute(scope, *arguments)` in storage form. The last `optional` arguments may be missing."""

    name: str
    result: SqlType
    arguments: tuple[SqlType, ...]
    compute: Callable[..., object]
    optional: int = 0


@dataclass(frozen=True, slots=True)
class SystemTableFunction:
    """A table-valued function: its columns, the types of its arguments, and its rows in slices."""

    name: str
    columns: tuple[ResultColumn, ...]
    arguments: tuple[SqlType, ...]
    rows: Callable[..., Iterable[list[tuple]]]
    table: Table | None = None


def function(
    name: str, result: str, arguments: str, compute: Callable[..., object], *, optional: int = 0
) -> SystemFunction:
    """A scalar function; `arguments` are types separated by `;`."""
    types = tuple(column_type(text) for text in arguments.split(";") if text.strip())
    return SystemFunction(name, column_type(result), types, compute, optional)


def view(name: str, specification: str, rows: Callable[[Scope], Iterable[tuple]], *, about: str = "") -> SystemView:
    """A view `schema.name` with the columns that `specification` declares; `about` as in `SystemView`."""
    schema, _, local = name.rpartition(".")
    shape = layout(specification)
    return SystemView(schema, local, shape.columns, lambda scope: shape.rows(rows(scope)), about)


_PARAMETER = re.compile(
    r"\s*@(\w+)\s+([A-Za-z0-9_]+(?:\s*\([^)]*\))?)\s*(?:=\s*(N?'(?:[^']|'')*'|-?\d+|NULL))?\s*(OUTPUT)?\s*(?:,|$)",
    re.IGNORECASE,
)


def parameters(specification: str) -> tuple[Parameter, ...]:
    """The parameters that a text such as `"@job_type nvarchar(20) = N'capture', @start_job bit = 1"` declares.

    Raises:
        ValueError: a part of the text is no parameter; the message shows it.
    """
    result: list[Parameter] = []
    position = 0
    while position < len(specification.rstrip()):
        match = _PARAMETER.match(specification, position)
        if match is None:
            raise ValueError(f"no parameter at {specification[position : position + 40]!r}")
        name, type_text, default, output = match.groups()
        result.append(Parameter(name, column_type(type_text), _default(default), output is not None))
        position = match.end()
    return tuple(result)


def _default(text: str | None) -> object:
    if text is None:
        return REQUIRED
    if text.upper() == "NULL":
        return None
    if text.endswith("'"):
        return text[text.index("'") + 1 : -1].replace("''", "'")
    return int(text)


def procedure(name: str, specification: str, run: Callable[[Call], AsyncIterator[Event]]) -> SystemProcedure:
    """A procedure `schema.name` with the parameters that `specification` declares."""
    schema, _, local = name.rpartition(".")
    return SystemProcedure(schema, local, parameters(specification), run)


def result_set(result_columns: tuple[ResultColumn, ...], rows: Sequence[tuple]) -> Iterator[Event]:
    """The events of one result set."""
    yield Columns(result_columns)
    for start in range(0, len(rows), SLICE):
        yield Rows(list(rows[start : start + SLICE]))
    yield Done(len(rows), "select", in_procedure=True)


def information(text: str, *, number: int = 0, procedure_name: str = "") -> Message:
    """An informational message, as sent by PRINT and low-severity RAISERROR."""
    return Message(number, 1, 0 if number == 0 else 10, text, procedure_name, 1)
