"""Syntax tree of XML and full-text definitions: schema collections, catalogues, and both kinds of indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, Name
from mssql_sandbox.tsql.flow_nodes import Statement


@dataclass(frozen=True, slots=True)
class XmlSchemaCollection(Statement):
    """CREATE | ALTER … ADD | DROP XML SCHEMA COLLECTION; `text` contains the schemas."""

    action: OneOf["create", "alter", "drop"]
    name: Name
    text: Expression | None = None


@dataclass(frozen=True, slots=True)
class CreateXmlIndex(Statement):
    """CREATE [PRIMARY] XML INDEX; a secondary one names its primary index and its purpose."""

    name: str
    table: Name
    column: str
    primary: str = ""
    purpose: OneOf["", "PATH", "PROPERTY", "VALUE"] = ""


@dataclass(frozen=True, slots=True)
class FullTextCatalog(Statement):
    """CREATE | DROP FULLTEXT CATALOG; `default`: AS DEFAULT."""

    action: OneOf["create", "drop"]
    name: str
    default: bool = False


@dataclass(frozen=True, slots=True)
class FullTextColumn:
    """A column of a full-text index, with its TYPE COLUMN and LANGUAGE as written."""

    name: str
    type_column: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class FullTextIndex(Statement):
    """CREATE | DROP FULLTEXT INDEX ON table."""

    action: OneOf["create", "drop"]
    table: Name
    columns: tuple[FullTextColumn, ...] = ()
    key_index: str = ""
    catalog: str = ""
