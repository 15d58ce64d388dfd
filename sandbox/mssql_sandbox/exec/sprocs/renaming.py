"""sp_rename: objects, columns, indexes; without a type the item is searched among all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mssql_sandbox.engine.events import Message, RpcParameter
from mssql_sandbox.engine.storage import alter, schema_change
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.names import Names
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import named_arguments
from mssql_sandbox.tsql.ast import Name
from mssql_sandbox.tsql.parser import Parser

_KINDS = ("OBJECT", "COLUMN", "INDEX")
_PARTS_WITH_DATABASE = 3
_CAUTION = "Caution: Changing any part of an object name could break scripts and stored procedures."

Work = Callable[[Transaction], None]


def rename(session: SessionState, database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_rename @objname, @newname [, @objtype].

    Errors: 15225 nothing of this name (no type given), 15248 not one item of the given type, or of any;
    15249 unknown type; 15335 the new name is taken; 4928 a captured column.
    """
    given = named_arguments(("objname", "newname", "objtype"), parameters)
    text, new, kind = str(given["objname"]), str(given["newname"]), given.get("objtype")
    if kind is not None and str(kind).upper() not in _KINDS:
        raise SqlError(15249, f"Error: Explicit @objtype '{kind}' is unrecognized.", severity=11)
    names = Names(session)
    names.database = database
    path = Parser(text).name()
    wanted = _KINDS if kind is None else (str(kind).upper(),)
    found = [work for candidate, work in _candidates(names, path, text, new) if candidate in wanted]
    if len(found) != 1:
        raise _not_found(text, database, kind, ambiguous=bool(found))
    yield from session.transactions.run(found[0])
    yield Message(15477, 1, 10, _CAUTION, "sp_rename", 1)
    return 0, []


def _candidates(names: Names, path: Name, text: str, new: str) -> Iterator[tuple[str, Work]]:
    """What the name may refer to, and how each would be renamed."""
    item = names.find(path) if _may_be_object(names.database, path) else None
    if item is not None:
        yield "OBJECT", lambda transaction: names.database.rename(transaction, item, new)
    *outer, last = path
    table = names.find(tuple(outer)) if outer else None
    if not isinstance(table, Table):
        return
    if table.ordinal(last) is not None:
        yield "COLUMN", lambda transaction: _rename_column(table, transaction, last, text, new)
    index = table.index(last)
    if index is not None:
        yield "INDEX", lambda transaction: _rename_index(index, transaction, new)


def _may_be_object(database: Database, path: Name) -> bool:
    """Whether the parts can be [[database.]schema.]object."""
    return len(path) < _PARTS_WITH_DATABASE or (
        len(path) == _PARTS_WITH_DATABASE and path[0].casefold() == database.name.casefold()
    )


def _rename_column(table: Table, transaction: Transaction, old: str, text: str, new: str) -> None:
    alter.rename_column(table, transaction, old, new)
    schema_change.log_ddl(table, transaction, "rename", f"EXEC sp_rename '{text}', '{new}', 'COLUMN'", column=old)


def _rename_index(index: Index, transaction: Transaction, new: str) -> None:
    old = index.name
    index.name = new
    transaction.on_undo(lambda: setattr(index, "name", old))


def _not_found(text: str, database: Database, kind: str | None, *, ambiguous: bool) -> SqlError:
    if kind is None and not ambiguous:
        return error(15225, name=text, database=database.name, kind="(null)")
    return error(15248, kind=kind or "(null)")
