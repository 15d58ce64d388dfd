"""Security policies: a policy's definition, and the predicates that filter a table.

A predicate is the executor's own; here it only has a place. Evidence: Microsoft's documentation of row-level security.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction

POLICY = "SP"
_KEPT = "security_policies"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A filter predicate: its number in the policy, its table, its text in the catalogue, its condition."""

    number: int
    table: Table
    text: str
    rows: Any


@dataclass(frozen=True, slots=True)
class Policy:
    """The definition of a security policy."""

    predicates: tuple[Predicate, ...]
    enabled: bool
    schema_bound: bool = True
    for_replication: bool = True


def policies(database: Database) -> tuple[SchemaObject, ...]:
    """The security policies of a database."""
    return database.properties.get(_KEPT, ())


def keep(database: Database, transaction: Transaction, kept: tuple[SchemaObject, ...]) -> None:
    """Set the security policies of a database, undoably."""
    before = policies(database)
    database.properties[_KEPT] = kept
    transaction.on_undo(lambda: database.properties.__setitem__(_KEPT, before))


def filters(table: Table) -> list[Any]:
    """The conditions of enabled policies on the rows of a table, for every user [doc]."""
    if table.private or table.database is None:
        return []
    return [
        predicate.rows
        for policy in policies(table.database)
        if policy.definition.enabled
        for predicate in policy.definition.predicates
        if predicate.table is table
    ]


def binding(table: Table) -> SchemaObject | None:
    """A schema-bound policy with a predicate on the table."""
    bound = (one for one in policies(table.database) if one.definition.schema_bound)
    return next((one for one in bound if any(own.table is table for own in one.definition.predicates)), None)
