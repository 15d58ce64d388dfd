"""Typed xml columns: finding their schema collection, and validating values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.documents import XmlCollection, xml_collection
from mssql_sandbox.engine.xml.parsing import parse
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.tsql import ast


def collection_named(compiler: Compiler, name: ast.Name) -> XmlCollection:
    """The collection of xml(name); 6314 if there is none."""
    place = compiler.names.place(name)
    for schema in [place.schema] if place.schema else compiler.names.search_path(place.database):
        found = xml_collection(place.database, schema, place.name)
        if found is not None:
            return found
    raise SqlError(6314, f"Collection specified does not exist in metadata : '{name[-1]}'")


def holding(assign: Callable[[Any], Any], column: Column) -> Callable[[Any], Any]:
    """The assignment to a typed column: values that its schemas do not allow are refused (6913, 6926)."""

    def checked(value: Any) -> Any:
        text = assign(value)
        if column.xml_schema is not None:
            column.xml_schema.check(parse(text, keep_blanks=True))
        return text

    return checked
