"""CREATE, ALTER and DROP SECURITY POLICY with filter predicates [doc]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.policies import POLICY, Policy, Predicate, keep, policies
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame, forget_plans
from mssql_sandbox.exec.security import may
from mssql_sandbox.exec.statements.small_objects import new_object
from mssql_sandbox.tsql import render
from mssql_sandbox.tsql import statements as st


def _security_policy(frame: Frame, node: st.SecurityPolicy) -> Steps:
    session, compiler = frame.session, frame.compiler()
    database = compiler.names.place(node.name).database
    if not may(session, database, "ALTER ANY SECURITY POLICY", "", ""):
        raise error(262, permission=f"{'ALTER' if node.alter else 'CREATE'} SECURITY POLICY", database=database.name)

    def work(transaction: Transaction) -> None:
        if not node.alter:
            made = Policy((), bool(node.enabled), node.schema_bound, node.for_replication)
            made = _changed(compiler, made, node)
            item = new_object(compiler, transaction, node.name, POLICY, made)
            keep(database, transaction, (*policies(database), item))
            return
        found = compiler.names.find(node.name)
        if found is None or found.type_code != POLICY:
            raise error(208, name=".".join(node.name))
        before = (found.definition, found.modify_date)

        def undo() -> None:
            found.definition, found.modify_date = before

        transaction.on_undo(undo)
        found.definition = _changed(compiler, found.definition, node)
        found.modify_date = transaction.manager.clock.local_datetime()

    yield from session.transactions.run(work)
    forget_plans(frame)
    yield session.done(frame, None, "alter security policy" if node.alter else "create security policy")
    return None


def _changed(compiler: Compiler, policy: Policy, node: st.SecurityPolicy) -> Policy:
    """The policy after the statement's changes."""
    predicates = list(policy.predicates)
    for one in node.predicates:
        table = compiler.names.find(one.table)
        if not isinstance(table, Table):
            raise error(208, name=".".join(one.table))
        if one.action == "drop":
            predicates = [known for known in predicates if known.table is not table]
            continue
        function = compiler.names.find(one.function)
        if function is None or function.type_code != "IF":
            raise error(208, name=".".join(one.function))
        if any(known.table is table for known in predicates):
            raise error(40517, option="ADD FILTER PREDICATE")
        number = max((known.number for known in predicates), default=0) + 1
        arguments = ", ".join(render.render(argument) for argument in one.arguments)
        text = f"[{function.schema.name}].[{function.name}]({arguments})"
        predicates.append(Predicate(number, table, text, one.rows))
    enabled = policy.enabled if node.enabled is None else node.enabled
    return replace(policy, predicates=tuple(predicates), enabled=enabled)


def forget(transaction: Transaction, database: Any, item: SchemaObject) -> None:
    """Take a dropped policy off its tables."""
    keep(database, transaction, tuple(one for one in policies(database) if one is not item))


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.SecurityPolicy: _security_policy}
