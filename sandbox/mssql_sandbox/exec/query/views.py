"""Views: planned again for each reference, in their own database and without the context of the reference."""

from __future__ import annotations

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.modules import Module, inside
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.commontables import Renamed, named


def plan_view(compiler: Compiler, found: SchemaObject) -> Operator:
    """The plan of a view's query."""
    definition: Module = found.definition
    own = inside(compiler, found)
    assert definition.node.query is not None
    plan = own.query(definition.node.query)
    fields = named(plan.fields, definition.node.columns, found.name, found.name)
    return Renamed(plan, fields)
