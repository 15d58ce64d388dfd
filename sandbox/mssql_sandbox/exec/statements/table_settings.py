"""ALTER TABLE without new columns: SET, CHECK and NOCHECK, triggers on and off, SWITCH, REBUILD."""

from __future__ import annotations

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec import temporal
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.tsql import statements as st


def apply(compiler: Compiler, table: Table, transaction: Transaction, node: st.AlterTableSet) -> None:
    """Apply the statement to the table."""
    action = node.action
    if action in ("check", "nocheck"):
        _switch_constraints(table, node.names, enabled=action == "check")
    elif action.endswith(" trigger"):
        for trigger in table.triggers:
            if not node.names or any(trigger.name.lower() == name.lower() for name in node.names):
                trigger.definition.disabled = action.startswith("disable")
    elif action == "set":
        _set_options(compiler, table, transaction, node.options)
    elif action != "rebuild":
        raise SqlError(102, f"Incorrect syntax near '{action}': not known to this server.", severity=15)


def _set_options(compiler: Compiler, table: Table, transaction: Transaction, options: temporal.Options) -> None:
    """ALTER TABLE … SET: locks are never escalated here, so only the setting is stored; unknown options are refused."""
    for name, text in options:
        if name == "SYSTEM_VERSIONING":
            temporal.set_versioning(table, transaction, text, compiler)
        elif name == "LOCK_ESCALATION" and text.upper() in ("AUTO", "TABLE", "DISABLE"):
            table.properties["lock_escalation"] = text.upper()
        else:
            raise SqlError(102, f"Incorrect syntax near '{name}'.", severity=15)


def _switch_constraints(table: Table, names: tuple[str, ...], *, enabled: bool) -> None:
    lowered = {name.lower() for name in names}
    for constraint in (*table.checks, *table.foreign_keys):
        if not lowered or constraint.name.lower() in lowered:
            constraint.enabled = enabled
            constraint.trusted = constraint.trusted and enabled
