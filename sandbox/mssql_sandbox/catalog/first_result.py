"""The columns of the first result set of a text, without running it, for sp_describe_first_result_set.

The analysis covers queries, OUTPUT clauses, branches and blocks, and calls of users' procedures. What cannot be known
in advance is an error with SQL Server's number: 11514 for dynamic text, 11526 for temporary tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mssql_sandbox.engine.storage.objects import is_private
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.calls.module_runs import module_routine
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.routine import Routine
from mssql_sandbox.exec.session import Session
from mssql_sandbox.exec.statements.changes import compile_delete, compile_update
from mssql_sandbox.exec.statements.inserts import compile_insert
from mssql_sandbox.exec.statements.queries import compile_select, gives_rows
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse, parse_parameters

Columns = tuple[ResultColumn, ...]
_MAX_DEPTH = 32


def result_columns(session: Session, text: str, declared: str = "") -> Columns:
    """The columns; none when the text has no result.

    Raises:
        SqlError: the text does not compile (its own error), or cannot be described.
    """
    statements = parse(text)
    routine = Routine(session, statements, parse_parameters(declared) if declared.strip() else ())
    return _first(_Describer(session, routine, 0), statements)


class _Describer:
    """One scope: a text or a module."""

    def __init__(self, session: Session, routine: Routine, depth: int) -> None:
        self.session = session
        self.routine = routine
        self.depth = depth

    def compiler(self) -> Compiler:
        """A compiler that knows the scope's variables."""
        return Compiler(self.session, self.routine.scope)


def _first(describer: _Describer, statements: Sequence[st.Statement]) -> Columns:
    for statement in statements:
        columns = _statement(describer, statement)
        if columns:
            return columns
    return ()


def _statement(describer: _Describer, node: st.Statement) -> Columns:
    handler = _HANDLERS.get(type(node))
    return handler(describer, node) if handler is not None else ()


def _select(describer: _Describer, node: st.SelectStatement) -> Columns:
    if not gives_rows(node.query):
        return ()
    _refuse_temporary(describer, node)
    return compile_select(describer.compiler(), node.query).columns


def _refuse_temporary(describer: _Describer, node: st.Statement) -> None:
    for part in walk(node):
        if not isinstance(part, ast.NamedTable) or not is_private(part.name[-1]):
            continue
        if describer.session.temporary.find(part.name[-1]) is None:
            name = part.name[-1]
            raise SqlError(
                11526, f"The metadata could not be determined because the statement uses a temp table: '{name}'."
            )  # fmt: skip


def _changed(compile_: Callable[[Compiler, Any], Any]) -> Callable[[_Describer, Any], Columns]:
    """The rows of an OUTPUT clause."""

    def describe(describer: _Describer, node: Any) -> Columns:
        if not node.output or isinstance(getattr(node, "source", None), st.Statement):
            return ()
        output = compile_(describer.compiler(), node).output
        return tuple(output.columns) if output is not None else ()

    return describe


def _block(describer: _Describer, node: st.Block | st.TryCatch) -> Columns:
    return _first(describer, node.body)


def _if(describer: _Describer, node: st.If) -> Columns:
    return _first(describer, [node.then, *([node.otherwise] if node.otherwise is not None else [])])


def _while(describer: _Describer, node: st.While) -> Columns:
    return _statement(describer, node.body)


def _execute(describer: _Describer, node: st.Execute) -> Columns:
    if isinstance(node.procedure, str) or node.procedure[-1].lower() == "sp_executesql":
        raise _dynamic()
    found = describer.compiler().names.find(node.procedure)
    if found is None or found.type_code != "P" or describer.depth >= _MAX_DEPTH:
        return ()
    routine = module_routine(describer.session, found)
    return _first(_Describer(describer.session, routine, describer.depth + 1), routine.statements)


def _execute_string(_describer: _Describer, _node: st.ExecuteString) -> Columns:
    raise _dynamic()


def _dynamic() -> SqlError:
    return SqlError(
        11514, "The metadata could not be determined because the statement contains dynamic SQL. Consider using the "
        "WITH RESULT SETS clause to explicitly describe the result set."
    )  # fmt: skip


_HANDLERS: Mapping[type, Callable[[_Describer, Any], Columns]] = {
    st.SelectStatement: _select,
    st.Insert: _changed(compile_insert),
    st.Update: _changed(compile_update),
    st.Delete: _changed(compile_delete),
    st.Block: _block,
    st.TryCatch: _block,
    st.If: _if,
    st.While: _while,
    st.Execute: _execute,
    st.ExecuteString: _execute_string,
}
