"""Rules checked before a batch or module runs: targets of jumps, contents of functions and views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.query.limits import refuse_order
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st

_SIDE_EFFECTS: dict[type, str] = {
    st.Insert: "INSERT", st.Update: "UPDATE", st.Delete: "DELETE", st.Merge: "MERGE", st.Truncate: "TRUNCATE TABLE",
    st.ExecuteString: "EXECUTE STRING", st.Print: "PRINT", st.RaiseError: "RAISERROR", st.Throw: "THROW",
    st.TryCatch: "BEGIN TRY", st.WaitFor: "WAITFOR", st.CreateTable: "CREATE TABLE", st.SetOption: "SET OPTION ON",
}  # fmt: skip
"""What is not allowed in a function, by the name in error 443; changes of table variables are allowed."""


def check_flow(statements: Sequence[st.Statement], *, returns_values: bool) -> None:
    """Jumps have targets: 133, 135, 136. A batch and a trigger return no value: 178."""
    labels: set[str] = set()
    gotos: list[st.Goto] = []
    for node, looping in _steps(statements, looping=False):
        if isinstance(node, st.Label):
            labels.add(node.name.lower())
        elif isinstance(node, st.Goto):
            gotos.append(node)
        elif isinstance(node, st.Jump) and not looping:
            raise _at(node, 135 if node.kind == "break" else 136)
        elif isinstance(node, st.Return) and node.value is not None and not returns_values:
            raise _at(node, 178)
    for goto in gotos:
        if goto.label.lower() not in labels:
            raise _at(goto, 133, label=goto.label)


def check_function(statements: Sequence[st.Statement]) -> None:
    """A function changes only its table variables: 443; and it returns no rows to the client: 444."""
    for node, _ in _steps(statements, looping=False):
        operator = _SIDE_EFFECTS.get(type(node))
        if operator is not None and not _changes_variable(node):
            raise _at(node, 443, operator=operator)
        if isinstance(node, st.SelectStatement) and not any(
            isinstance(part, ast.SelectItem) and part.assign for part in getattr(node.query.body, "items", ())
        ):
            raise _at(node, 444)


def _changes_variable(node: st.Statement) -> bool:
    """Whether a statement changes rows of a table variable, named directly or by an alias."""
    target = getattr(node, "target", ())
    if not target or target[-1].startswith("@"):
        return bool(target)
    source = getattr(node, "source", None)
    return any(isinstance(part, ast.VariableTable) and part.alias == target[-1] for part in walk(source))


def check_view(node: st.CreateModule, fields: Sequence[Field]) -> None:
    """The columns of a view have unique names (4511, 4506), and its rows no order (1033)."""
    assert node.query is not None
    refuse_order(node.query)
    seen: set[str] = set()
    for place, field in enumerate(fields):
        name = node.columns[place] if place < len(node.columns) else field.name
        if not name:
            raise error(4511, ordinal=place + 1)
        if name.lower() in seen:
            raise error(4506, column=name, name=node.name[-1])
        seen.add(name.lower())


def _steps(statements: Sequence[st.Statement], *, looping: bool) -> Iterator[tuple[st.Statement, bool]]:
    """All statements, and whether they are in a loop."""
    for node in statements:
        yield node, looping
        if isinstance(node, st.While):
            yield from _steps((node.body,), looping=True)
        elif isinstance(node, st.If):
            yield from _steps((node.then,) if node.otherwise is None else (node.then, node.otherwise), looping=looping)
        elif isinstance(node, st.Block):
            yield from _steps(node.body, looping=looping)
        elif isinstance(node, st.TryCatch):
            yield from _steps((*node.body, *node.handler), looping=looping)


def _at(node: st.Statement, number: int, **values: str) -> SqlError:
    failure = error(number, state=None, severity=None, **values)
    failure.line = node.line
    return failure
