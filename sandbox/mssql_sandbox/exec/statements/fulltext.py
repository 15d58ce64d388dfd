"""FULLTEXT CATALOG and FULLTEXT INDEX, kept for the catalogue only: published scripts define them.

They are not allowed in a transaction, as in the server (574).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.documents import (
    TextCatalog,
    TextIndex,
    keep_catalogs,
    keep_text_index,
    text_catalogs,
    text_index,
)
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st

_FIRST_CATALOG = 5
_ENGLISH = 1033
_KEY = (
    "A full-text search key must be a unique, non-nullable, single-column index which is not offline, is not defined "
    "on a non-deterministic or imprecise nonpersisted computed column, does not have a filter, and has maximum size of "
    "900 bytes. Choose another index for the full-text key."
)
_RIGHT = "user does not have permission to perform this action."


def _outside_transactions(frame: Frame, statement: str) -> None:
    if frame.session.transactions.count:
        raise SqlError(574, f"{statement} statement cannot be used inside a user transaction.")


def _catalog(frame: Frame, node: st.FullTextCatalog) -> Steps:
    _outside_transactions(frame, f"{node.action.upper()} FULLTEXT CATALOG")
    database = frame.session.current_database
    known = text_catalogs(database)
    if node.action == "create":
        if any(each.name.casefold() == node.name.casefold() for each in known):
            raise SqlError(7642, f"A full-text catalog named '{node.name}' already exists in this database. Use a "
                           "different name.")  # fmt: skip
        number = max((each.catalog_id for each in known), default=_FIRST_CATALOG - 1) + 1
        keep_catalogs(database, (*known, TextCatalog(node.name, number, is_default=node.default)))
    else:
        found = _named(database, node.name)
        if any(index is not None and index.catalog is found for index in map(text_index, database.tables())):
            raise SqlError(7668, f"Cannot drop full-text catalog '{node.name}' because it contains a full-text index.")
        keep_catalogs(database, tuple(each for each in known if each is not found))
    yield frame.session.done(frame, None, f"{node.action} fulltext catalog")
    return None


def _index(frame: Frame, node: st.FullTextIndex) -> Steps:
    _outside_transactions(frame, f"{node.action.upper()} FULLTEXT INDEX")
    table = frame.compiler().names.find(node.table)
    if not isinstance(table, Table):
        raise error(1088, name=".".join(node.table))
    require_alter(frame.session, table)
    found = text_index(table)
    if node.action == "create":
        if found is not None:
            raise SqlError(
                7652, f"A full-text index for table or indexed view '{table.name}' has already been created."
            )
        keep_text_index(table, _made(table, node))
    elif found is None:
        raise SqlError(7605, f"Table or indexed view '{table.name}' does not have a full-text index or {_RIGHT}")
    else:
        keep_text_index(table, None)
    yield frame.session.done(frame, None, f"{node.action} fulltext index")
    return None


def _made(table: Table, node: st.FullTextIndex) -> TextIndex:
    key = table.index(node.key_index)
    column = table.column(key.columns[0][0]) if key is not None else None
    if key is None or not key.unique or len(key.columns) != 1 or column is None or column.nullable:
        raise SqlError(7653, f"'{node.key_index}' is not a valid index to enforce a full-text search key. {_KEY}")
    return TextIndex(key.name, _catalog_of(table.database, node.catalog), _columns(table, node))


def _catalog_of(database: Database, name: str) -> TextCatalog:
    if name:
        return _named(database, name)
    found = next((each for each in text_catalogs(database) if each.is_default), None)
    if found is None:
        raise SqlError(9967, f"A default full-text catalog does not exist in database '{database.name}' or {_RIGHT}")
    return found


def _named(database: Database, name: str) -> TextCatalog:
    found = next((each for each in text_catalogs(database) if each.name.casefold() == name.casefold()), None)
    if found is None:
        raise SqlError(7641, f"Full-Text catalog '{name}' does not exist or {_RIGHT}")
    return found


def _columns(table: Table, node: st.FullTextIndex) -> tuple[tuple[str, str, int], ...]:
    found = []
    for each in node.columns:
        column = table.column(each.name)
        if column is None:
            raise error(1911, column=each.name)
        language = int(each.language, 0) if each.language[:1].isdigit() else _ENGLISH
        found.append((column.name, each.type_column, language))
    return tuple(found)


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.FullTextCatalog: _catalog, st.FullTextIndex: _index}
