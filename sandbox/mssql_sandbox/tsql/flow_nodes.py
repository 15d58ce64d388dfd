"""Syntax tree of control of flow, variables, options, transactions and cursors; the base of all statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, Name, Query, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Common to all statements: the line, and the start and end of the text (set for ALTER TABLE only)."""

    line: int = 0
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """BEGIN … END."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    """IF condition statement [ELSE statement]."""

    condition: Expression
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class While(Statement):
    """WHILE condition statement."""

    condition: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class Jump(Statement):
    """BREAK, CONTINUE."""

    kind: OneOf["break", "continue"]


@dataclass(frozen=True, slots=True)
class Goto(Statement):
    """GOTO label."""

    label: str


@dataclass(frozen=True, slots=True)
class Label(Statement):
    """label: (a target of GOTO)."""

    name: str


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """RETURN [value | query of an inline function]."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class TryCatch(Statement):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    body: tuple[Statement, ...]
    handler: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Throw(Statement):
    """THROW [number, message, state]."""

    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class RaiseError(Statement):
    """RAISERROR (message, severity, state, arguments…) WITH options."""

    message: Expression
    severity: Expression
    state: Expression
    arguments: tuple[Expression, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Print(Statement):
    """PRINT value."""

    value: Expression


@dataclass(frozen=True, slots=True)
class WaitFor(Statement):
    """WAITFOR DELAY | TIME value."""

    kind: OneOf["DELAY", "TIME"]
    value: Expression


@dataclass(frozen=True, slots=True)
class VariableDeclaration:
    """One element of DECLARE, or a parameter of a module."""

    name: str
    type: TypeName
    default: Expression | None = None
    output: bool = False
    cursor: bool = False
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """DECLARE @a int = 1, @b int."""

    variables: tuple[VariableDeclaration, ...]


@dataclass(frozen=True, slots=True)
class SetVariable(Statement):
    """SET @v = value (operator `=` or `+=` …)."""

    name: str
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class SetOption(Statement):
    """SET option[, option] ON | OFF | value."""

    names: tuple[str, ...]
    value: str | Expression


@dataclass(frozen=True, slots=True)
class SetIsolation(Statement):
    """SET TRANSACTION ISOLATION LEVEL and the level's words."""

    level: str


@dataclass(frozen=True, slots=True)
class SetIdentityInsert(Statement):
    """SET IDENTITY_INSERT table ON | OFF."""

    table: Name
    on: bool


@dataclass(frozen=True, slots=True)
class Use(Statement):
    """USE database."""

    database: str


@dataclass(frozen=True, slots=True)
class TransactionStatement(Statement):
    """BEGIN, COMMIT, ROLLBACK, SAVE TRANSACTION [name | @variable]."""

    action: OneOf["begin", "commit", "rollback", "save"]
    name: str | Expression = ""


@dataclass(frozen=True, slots=True)
class Kill(Statement):
    """KILL session."""

    session: Expression


@dataclass(frozen=True, slots=True)
class DeclareCursor(Statement):
    """DECLARE name CURSOR options FOR query; as a variable: SET @c = CURSOR options."""

    name: str
    options: tuple[str, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class CursorAction(Statement):
    """OPEN, CLOSE, DEALLOCATE."""

    action: OneOf["open", "close", "deallocate"]
    cursor: str


@dataclass(frozen=True, slots=True)
class Fetch(Statement):
    """FETCH direction [count] FROM cursor [INTO variables]."""

    direction: str
    count: Expression | None
    cursor: str
    into: tuple[str, ...] = ()
