"""Routines: a batch's or module's statements with their variables; frames: one run of a routine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.flow import CompileError, Steps
from mssql_sandbox.exec.names import still_valid
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.tables.private import empty_table, make_variable_table
from mssql_sandbox.exec.variables import Slot, VariableScope, check_readonly, uses, walk
from mssql_sandbox.tsql import statements as st

T = TypeVar("T")


class Routine:
    """Statements, variables, and compiled parts of both. Belongs to one session and one database."""

    __slots__ = (
        "active", "database", "name", "object_id", "parameters", "plans", "schema", "scope", "sets", "statements",
        "virtual",
    )  # fmt: skip

    def __init__(
        self,
        session: SessionState,
        statements: tuple[st.Statement, ...],
        parameters: tuple[st.VariableDeclaration, ...] = (),
        *,
        name: str = "",
        object_id: int = 0,
        virtual: dict[str, Any] | None = None,
        schema: str = "",
    ) -> None:
        self.statements = statements
        self.schema = schema
        self.name = name
        self.object_id = object_id
        self.database = session.current_database
        self.scope = VariableScope()
        self.plans: dict[int, tuple[Any, Any, Any]] = {}
        self.active = False
        self.sets = False
        """Whether a statement sets options of the session."""
        self.virtual = virtual or {}
        compiler = Compiler(session, self.scope)
        compiler.names.module_schema = schema
        self.parameters: list[tuple[Slot, st.VariableDeclaration]] = []
        for ordinal, declaration in enumerate(parameters, 1):
            slot = self._declare(compiler, declaration, ordinal)
            if slot.table is not None:
                check_readonly(declaration.name, readonly=declaration.readonly)
                slot.readonly = True
            self.parameters.append((slot, declaration))
        self._declare_all(session, compiler)

    def _declare(self, compiler: Compiler, declaration: st.VariableDeclaration, ordinal: int = 1) -> Slot:
        if declaration.cursor:
            return self.scope.declare(declaration.name, cursor=True)
        definition = compiler.table_type(declaration.type)
        if definition is not None:
            table = make_variable_table(compiler.session, declaration.name, definition)
            slot = self.scope.declare(declaration.name, table=table)
            slot.table_type = declaration.type.name
            return slot
        return self.scope.declare(declaration.name, compiler.type_of(declaration.type, ordinal=ordinal))

    def _declare_all(self, session: SessionState, compiler: Compiler) -> None:
        """Add all declarations in textual order; 137 for undeclared variables and uses before the declaration."""
        for node in walk(self.statements):
            if isinstance(node, st.Declare):
                for declaration in node.variables:
                    if declaration.default is not None:
                        self._check(declaration.default, node.line)
                    self._declare(compiler, declaration)
            elif isinstance(node, st.DeclareTable):
                self.scope.declare(node.name, table=make_variable_table(session, node.name, node.table))
            elif isinstance(node, (st.SetOption, st.SetIsolation)):
                self.sets = True
                self._check(node, node.line)
            elif isinstance(node, st.Statement) and not isinstance(
                node, (st.Block, st.If, st.While, st.TryCatch, st.CreateModule)
            ):
                self._check(node, node.line)
            elif isinstance(node, (st.If, st.While)):
                self._check(node.condition, node.line)

    def _check(self, node: Any, line: int) -> None:
        for name in uses(node):
            if name.lower() not in self.scope.slots:
                failure = error(137, name=name)
                failure.line = line
                raise failure


_PERMISSIONS = frozenset({229, 230})
"""Errors found when a statement runs: they end only the statement, and a CATCH of the same module sees them [doc]."""


class Frame:
    """One run of a routine: the values of its variables."""

    __slots__ = ("events_in_procedure", "returned", "routine", "session", "values")

    def __init__(self, session: SessionState, routine: Routine, *, in_procedure: bool = False) -> None:
        self.session = session
        self.routine = routine
        self.values: list[Any] = [None] * len(routine.scope.slots)
        self.events_in_procedure = in_procedure
        self.returned: int = 0
        for slot in routine.scope.slots.values():
            if slot.table is not None:
                empty_table(slot.table)

    def context(self, transaction: Transaction | None = None) -> Context:
        """A context for one execution of one statement."""
        return Context(self.session, self.values, transaction)

    def compiler(self) -> Compiler:
        """A compiler that knows the frame's variables."""
        compiler = Compiler(self.session, self.routine.scope)
        compiler.virtual_tables = self.routine.virtual
        compiler.names.module_schema = self.routine.schema
        return compiler

    def compiled(self, node: Any, build: Callable[[Compiler], T]) -> T:
        """The result of `build` for a node, kept until a dependency changes. Errors become `CompileError`."""
        session = self.session
        known = self.routine.plans.get(id(node))
        if known is not None:
            dependencies, database, plan = known
            if database is session.current_database and still_valid(dependencies):
                return plan
        compiler = self.compiler()
        try:
            plan = build(compiler)
        except SqlError as failure:
            if failure.number in _PERMISSIONS:
                raise
            raise CompileError(failure, self.routine) from None
        except RecursionError:
            raise CompileError(error(191), self.routine) from None
        self.routine.plans[id(node)] = (compiler.names.dependencies, session.current_database, plan)
        return plan

    def evaluate(self, node: Any) -> Any:
        """The value of an expression that reads no table."""
        expr = self.compiled(node, lambda compiler: compiler.value(node))
        return expr.fn((), self.context())


def forget_plans(frame: Frame) -> None:
    """Permissions and databases' states are checked when a statement is compiled: recompile after a change."""
    for session in frame.session.server.sessions.values():
        session.routines.clear()
    frame.routine.plans.clear()


RunStatement = Callable[[Frame, Any], Steps]
