"""Filegroups, partition functions and schemes. Rows are in memory, but the names must be valid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.tables.partitions import PartitionFunction, PartitionScheme, functions, schemes
from mssql_sandbox.tsql import statements as st

PRIMARY = "PRIMARY"


def filegroups(database: Database) -> list[str]:
    """Filegroups of a database, PRIMARY first."""
    return database.properties.setdefault("filegroups", [PRIMARY])


def check_places(database: Database, options: Sequence[tuple[str, str]]) -> None:
    """Error 1921 if ON names neither a filegroup nor a partition scheme."""
    known = {name.lower() for name in filegroups(database)} | schemes(database).keys() | {"default"}
    for option, name in options:
        if option == "ON" and name.lower() not in known:
            raise SqlError(1921, f"Invalid filegroup '{name}' specified.")


def change_filegroup(database: Database, action: str, name: str) -> None:
    """ALTER DATABASE … ADD | REMOVE | MODIFY FILEGROUP, or adding a file to one."""
    groups = filegroups(database)
    known = name.lower() in {group.lower() for group in groups}
    if action == "add":
        if known:
            raise SqlError(1828, f'The logical file name "{name}" is already in use. Choose a different name.')
        groups.append(name)
    elif not known:
        raise SqlError(5050, f"Cannot change the properties of empty filegroup '{name}'. The filegroup must contain at "
                       "least one file.")  # fmt: skip
    elif action == "remove":
        groups[:] = [group for group in groups if group.lower() != name.lower()]


def _create_function(frame: Frame, node: st.CreatePartitionFunction) -> Steps:
    session = frame.session
    known = functions(session.current_database)
    if node.name.lower() in known:
        raise SqlError(7704, f"The partition function '{node.name}' already exists.")
    compiler = frame.compiler()
    type_ = compiler.type_of(node.type)
    context = frame.context()
    values = [coerce(compiler.value(value), type_).fn((), context) for value in node.boundaries]
    key = sort_key(type_) or (lambda item: item)
    ordered = tuple(sorted(values, key=key))
    if len(set(map(key, ordered))) < len(ordered):
        raise SqlError(7708, "Duplicate range boundary values are not allowed in partition function boundary values "
                       "list.")  # fmt: skip
    known[node.name.lower()] = PartitionFunction(node.name, 65536 + len(known), type_, ordered, node.right)
    yield session.done(frame, None, "create partition function")
    return None


def _function(database: Database, name: str) -> PartitionFunction:
    found = functions(database).get(name.lower())
    if found is None:
        raise SqlError(7715, f'The specified partition function "{name}" does not exist.')
    return found


def _create_scheme(frame: Frame, node: st.CreatePartitionScheme) -> Steps:
    session = frame.session
    database = session.current_database
    function = _function(database, node.function)
    check_places(database, [("ON", name) for name in node.filegroups])
    wanted = len(function.boundaries) + 1
    groups = node.filegroups * wanted if node.every else node.filegroups
    if len(groups) < wanted:
        raise SqlError(7707, f"The associated partition function '{function.name}' generates more partitions than "
                             "there "
                       f"are file groups mentioned in the scheme '{node.name}'.")  # fmt: skip
    known = schemes(database)
    scheme = PartitionScheme(node.name, 65601 + len(known), function, groups[:wanted])
    scheme.next_used = groups[wanted] if len(groups) > wanted else groups[0] if node.every else None
    known[node.name.lower()] = scheme
    yield session.done(frame, None, "create partition scheme")
    return None


def drop_partition(database: Database, kind: str, name: str) -> None:
    """DROP PARTITION FUNCTION | SCHEME; 7710 if a scheme still uses it, 3701 for unknown names."""
    table: dict[str, Any] = functions(database) if kind.endswith("function") else schemes(database)
    found = table.get(name.lower())
    if found is None:
        raise SqlError(3701, f"Cannot drop the {kind} '{name}', because it does not exist or you do not have "
                       "permission.", severity=11, state=5)  # fmt: skip
    if any(scheme.function is found for scheme in schemes(database).values()):
        raise SqlError(7706, f"Partition function '{name}' is being used by one or more partition schemes.")
    del table[name.lower()]


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreatePartitionFunction: _create_function,
    st.CreatePartitionScheme: _create_scheme,
}
