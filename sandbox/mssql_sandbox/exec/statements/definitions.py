"""CREATE and ALTER of views, procedures, functions and triggers; DROP of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.storage import schema_change
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject, is_private
from mssql_sandbox.engine.storage.policies import POLICY, binding
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.calls.tableparameters import check_module
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.definition_rights import may_drop, require_create
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.modules import Module
from mssql_sandbox.exec.query.commontables import named
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements import indexed_views, places, security_policies
from mssql_sandbox.exec.statements.administration import drop_principal
from mssql_sandbox.exec.statements.instead import check_new, triggers_of
from mssql_sandbox.exec.statements.small_objects import new_object
from mssql_sandbox.exec.text_rules import check_flow, check_function, check_view
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def _module_code(node: st.CreateModule) -> str:
    if node.kind == "function":
        return "FN" if node.returns is not None else "TF" if node.returns_table is not None else "IF"
    return {"view": "V", "procedure": "P", "trigger": "TR"}[node.kind]


def _create_module(frame: Frame, node: st.CreateModule) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        code = _module_code(node)
        if node.name[-1].startswith("#") and node.kind != "trigger":
            raise error(40517, option=node.name[-1])
        require_create(
            session, session.current_database, node.kind.upper(), compiler.names.schema_for_new(node.name)[1]
        )
        database = compiler.names.place(node.name).database
        found = None if node.form == "create" else compiler.names.find(node.name)
        if found is None and node.form == "alter":
            raise error(208, name=".".join(node.name))
        definition = Module(node, database, frozenset(node.events))
        check_module(compiler, node)
        check_flow(node.body, returns_values=node.kind in ("procedure", "function"))
        if node.kind == "function":
            check_function(node.body)
        if node.kind == "view":
            assert node.query is not None
            inner = frame.compiler()
            inner.names.module_schema = inner.names.schema_for_new(node.name)[1]
            plan = inner.query(node.query)
            check_view(node, plan.fields)
            named(plan.fields, node.columns, node.name[-1], node.name[-1])
        if found is not None:
            if found.type_code == "V":
                indexed_views.forget(transaction, found)
            _replace(transaction, found, code, definition, node.text)
            return
        parent = _triggered(compiler, node) if node.kind == "trigger" and node.table else None
        item = new_object(compiler, transaction, node.name, code, definition, node.text,
                          parent.object_id if parent is not None else 0)  # fmt: skip
        if parent is not None:
            definition.parent = parent
            triggers = triggers_of(parent)
            triggers.append(item)
            transaction.on_undo(lambda: triggers.remove(item))
            _retrigger(parent)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create")
    return None


def _refuse_bound(database: Database, table: Table, name: ast.Name) -> None:
    """3729: a module WITH SCHEMABINDING protects the tables that it names."""
    policy = binding(table)
    if policy is not None:
        raise SqlError(3729, f"Cannot DROP TABLE '{'.'.join(name)}' because it is being referenced by object "
                       f"'{policy.name}'.")  # fmt: skip
    for item in database.objects():
        node = getattr(item.definition, "node", None)
        if node is None or "SCHEMABINDING" not in node.options:
            continue
        named = (part for part in walk((node.query, node.body)) if isinstance(part, ast.NamedTable))
        if any(part.name[-2:] == (table.schema.name, table.name) for part in named):
            raise SqlError(3729, f"Cannot DROP TABLE '{'.'.join(name)}' because it is being referenced by object "
                           f"'{item.name}'.")  # fmt: skip


def _triggered(compiler: Compiler, node: st.CreateModule) -> Any:
    """The table or view of a trigger."""
    found = compiler.names.find(node.table)
    if found is None or found.type_code not in ("U", "V"):
        raise SqlError(8197, f"The object '{'.'.join(node.table)}' does not exist or is invalid for this operation.",
                       state=4)  # fmt: skip
    check_new(found, node.events, node.name[-1], node.timing)
    return found


def _retrigger(parent: Any) -> None:
    """Invalidate compiled statements after a view gets a trigger: they compare definitions by identity."""
    if not isinstance(parent, Table):
        parent.definition = replace(parent.definition)


def _replace(transaction: Transaction, found: SchemaObject, code: str, definition: Module, text: str) -> None:
    if found.type_code != code:
        raise error(2010, name=found.name)
    before = (found.definition, found.text, found.modify_date)
    definition.parent, definition.disabled = before[0].parent, before[0].disabled

    def undo() -> None:
        found.definition, found.text, found.modify_date = before

    transaction.on_undo(undo)
    found.definition, found.text = definition, text
    found.modify_date = transaction.manager.clock.local_datetime()


_CODES = {
    "table": ("U", "S"), "view": ("V",), "procedure": ("P",), "function": ("FN", "IF", "TF"), "trigger": ("TR",),
    "type": ("TYPE", "TT"), "sequence": ("SO",), "synonym": ("SN",),
    "security policy": ("SP",),
}  # fmt: skip


def _drop(frame: Frame, node: st.Drop) -> Steps:
    session = frame.session
    if node.kind.startswith("partition"):
        for name in node.names:
            places.drop_partition(session.current_database, node.kind, name[-1])
        yield session.done(frame, None, "drop")
        return None
    if node.kind in ("database", "login", "user", "role"):
        yield from drop_principal(frame, node)
        return None
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        for name in node.names:
            if node.kind == "schema":
                if node.if_exists and name[-1] not in session.current_database.schemas:
                    continue
                session.current_database.drop_schema(transaction, name[-1])
                continue
            _drop_object(compiler, transaction, node, name)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "drop")
    return None


def _drop_object(compiler: Compiler, transaction: Transaction, node: st.Drop, name: ast.Name) -> None:
    session = compiler.session
    if node.kind == "synonym":
        place = compiler.names.place(name)
        found = place.database.find(place.schema or session.default_schema(place.database), place.name)
    else:
        found = compiler.names.find(name)
    if found is None or found.type_code not in _CODES[node.kind]:
        if node.if_exists and found is None:
            return
        raise SqlError(
            3701, f"Cannot drop the {node.kind} '{'.'.join(name)}', because it does not exist or you do not have "
            "permission.", severity=11, state=5,
        )  # fmt: skip
    if is_private(found.name):
        session.temporary.drop(found.name, transaction)
        transaction.on_undo(session.routines.clear)
        session.routines.clear()
        return
    if not may_drop(session, compiler.names.place(name).database, found.schema.name, found.name):
        raise error(3701, kind=node.kind, name=".".join(name), state=20)
    database: Database = compiler.names.place(name).database
    if isinstance(found, Table):
        if "temporal_type" in found.properties:
            raise SqlError(
                13552, f"Drop table operation failed on table '{found.long_name}' because it is not a supported "
                "operation on system-versioned temporal tables."
            )  # fmt: skip
        _refuse_bound(database, found, name)
        if found.tracked:
            schema_change.log_ddl(found, transaction, "drop table", f"DROP TABLE {'.'.join(name)}")
        for trigger in list(found.triggers):
            database.drop_object(transaction, trigger)
    elif found.type_code == "V":
        indexed_views.forget(transaction, found)
    elif found.type_code == POLICY:
        security_policies.forget(transaction, database, found)
        session.routines.clear()
    elif found.type_code == "TR" and found.definition.parent is not None:
        parent = found.definition.parent
        triggers_of(parent).remove(found)
        transaction.on_undo(lambda: triggers_of(parent).append(found))
        _retrigger(parent)
    database.drop_object(transaction, found)
    catalog = session.server.catalog
    if isinstance(found, Table) and found.tracked and catalog is not None:
        catalog.cdc.table_dropped(transaction, found)


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateModule: _create_module,
    st.Drop: _drop,
}
