"""XML indexes, primary and secondary, kept for the catalogue only. Queries read the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.documents import FIRST_XML_INDEX, XmlIndex, keep_xml_indexes, xml_indexes
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st

_PURPOSES = {"PATH": "P", "PROPERTY": "R", "VALUE": "V", "": ""}


def _create_xml_index(frame: Frame, node: st.CreateXmlIndex) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        table = compiler.names.find(node.table)
        if not isinstance(table, Table):
            raise error(1088, name=".".join(node.table))
        require_alter(session, table)
        known = xml_indexes(table)
        made = XmlIndex(
            node.name, FIRST_XML_INDEX + len(known), _column(table, node), _primary(known, table, node),
            _PURPOSES[node.purpose],
        )  # fmt: skip
        keep_xml_indexes(table, transaction, (*known, made))

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create xml index")
    return None


def _column(table: Table, node: st.CreateXmlIndex) -> str:
    column = table.column(node.column)
    taken = {index.name.casefold() for index in (*table.indexes, *xml_indexes(table))}
    if node.name.casefold() in taken:
        raise error(1913, index=node.name, table=table.full_name)
    if column is None:
        raise error(1911, column=node.column)
    if column.type.name != "xml":
        raise error(1919, column=column.name, table=table.full_name)
    clustered = table.clustered
    if clustered is None or clustered.constraint != "PRIMARY KEY":
        needs = "needs to have a clustered primary key with less than 16 columns in it"
        raise SqlError(6332, f"Table '{table.full_name}' {needs} in order to create a primary XML index on it.")
    return column.name


def _primary(known: tuple[XmlIndex, ...], table: Table, node: st.CreateXmlIndex) -> int | None:
    """The id of the primary index that a secondary one uses; a column has one primary index."""
    column, place = node.column, f"on table '{table.full_name}' column '{node.column}'"
    first = next((each for each in known if each.primary is None and each.column.casefold() == column.casefold()), None)
    if not node.primary:
        if first is not None:
            raise SqlError(6342, f"Cannot create primary xml index '{node.name}' {place}, because PRIMARY XML INDEX "
                           f"'{first.name}' already exists on that column.")  # fmt: skip
        return None
    if first is None or first.name.casefold() != node.primary.casefold():
        raise SqlError(6343, f"Cannot create secondary xml index '{node.name}' {place}: there is no primary XML index "
                       f"'{node.primary}' on that column.")  # fmt: skip
    return first.index_id


def drop(table: Table, transaction: Transaction, name: str) -> bool:
    """DROP INDEX of an XML index, and of those that use it; False if there is no such index."""
    known = xml_indexes(table)
    found = next((each for each in known if each.name.casefold() == name.casefold()), None)
    if found is None:
        return False
    kept = tuple(each for each in known if each is not found and each.primary != found.index_id)
    keep_xml_indexes(table, transaction, kept)
    return True


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.CreateXmlIndex: _create_xml_index}
