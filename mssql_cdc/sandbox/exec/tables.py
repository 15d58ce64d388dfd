"""Table variables and temporary tables: tables that one session owns, made from a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.table import Table
    from mssql_cdc.sandbox.exec.session import Session
    from mssql_cdc.sandbox.tsql import statements as st


def make_variable_table(session: Session, name: str, definition: st.TableDefinition | Any) -> Table:
    """The table behind a table variable; its rows survive rollbacks."""
    from mssql_cdc.sandbox.exec.statements.tables import build_private_table

    return build_private_table(session, name, definition, kind="variable")


def empty_table(table: Table) -> None:
    """Make a table variable new for the next run of its routine."""
    if not table.heap:
        return
    table.heap, table.free, table.versions = [], [], 0
    for index in table.indexes:
        index.entries.build(())
    if table.identity is not None:
        table.identity.last = None
