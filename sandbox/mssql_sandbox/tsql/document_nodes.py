"""Syntax tree of what XML and full-text search define: schema collections, catalogues, and both kinds of indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, Name
from mssql_sandbox.tsql.flow_nodes import Statement


@dataclass(frozen=True, slots=True)
class XmlSchemaCollection(Statement):
    """CREATE | ALTER … ADD | DROP XML SCHEMA COLLECTION; `text` holds the schemas."""

    action: OneOf["create", "alter", "drop"]
    name: Name
    text: Expression | None = None


@dataclass(frozen=True, slots=True)
class CreateXmlIndex(Statement):
    """CREATE [PRIMARY] XML INDEX; a secondary one names its primary index and what it is for."""

    name: str
    table: Name
    column: str
    primary: str = ""
    purpose: OneOf["", "PATH", "PROPERTY", "VALUE"] = ""


@dataclass(frozen=True, slots=True)
class FullTextCatalog(Statement):
    """CREATE | ALTER | DROP FULLTEXT CATALOG; `default`: AS DEFAULT; `accents` None where not said."""

    action: OneOf["create", "alter", "drop"]
    name: str
    default: bool = False
    accents: bool | None = None


@dataclass(frozen=True, slots=True)
class FullTextColumn:
    """A column of a full-text index, with its TYPE COLUMN and LANGUAGE as written."""

    name: str
    type_column: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class FullTextIndex(Statement):
    """CREATE | DROP FULLTEXT INDEX ON table; ALTER with `change` ENABLE, DISABLE, ADD, DROP, SET or a population."""

    action: OneOf["create", "alter", "drop"]
    table: Name
    columns: tuple[FullTextColumn, ...] = ()
    key_index: str = ""
    catalog: str = ""
    change: str = ""
    options: tuple[tuple[str, str], ...] = ()
