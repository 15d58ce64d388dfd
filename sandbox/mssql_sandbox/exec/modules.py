"""Stored modules: views, procedures, functions, triggers; compiling their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.flow import MAX_NESTING
from mssql_sandbox.tsql import statements as st


@dataclass(slots=True)
class Module:
    """The server's record of a module: its syntax tree, the database it was created in, switches of triggers."""

    node: st.CreateModule
    database: Any
    events: frozenset[str] = frozenset()
    disabled: bool = False
    parent: Any = None


def inside(compiler: Compiler, found: SchemaObject) -> Compiler:
    """A compiler for a module's text: in its database, without the caller's variables."""
    if compiler.module_depth >= MAX_NESTING:
        raise error(217)
    own = Compiler(compiler.session)
    own.names.database = found.definition.database
    own.names.module_schema = found.schema.name
    own.names.dependencies = compiler.names.dependencies
    own.module_depth = compiler.module_depth + 1
    return own
