"""XML schema collections, XML indexes and full-text catalogues of a database, for the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import Schema
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.xml.schemas import SchemaCollection

_COLLECTIONS, _XML_INDEXES, _CATALOGS, _FULLTEXT = (
    "xml collections",
    "xml indexes",
    "full-text catalogs",
    "full-text index",
)
FIRST_COLLECTION = 65_536
FIRST_XML_INDEX = 256_000


@dataclass(slots=True, eq=False)
class XmlCollection:
    """A schema collection by name."""

    name: str
    collection_id: int
    schema: Schema
    create_date: int
    modify_date: int
    content: SchemaCollection = field(default_factory=SchemaCollection)


@dataclass(frozen=True, slots=True)
class XmlIndex:
    """An XML index; `primary` is the id of the primary one that a secondary index uses, `purpose` P, R, V or none."""

    name: str
    index_id: int
    column: str
    primary: int | None = None
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class TextCatalog:
    """A full-text catalogue."""

    name: str
    catalog_id: int
    is_default: bool


@dataclass(frozen=True, slots=True)
class TextIndex:
    """A full-text index: its unique key index, and its columns as (name, type column, language id)."""

    key_index: str
    catalog: TextCatalog
    columns: tuple[tuple[str, str, int], ...]


def xml_collections(database: Database) -> tuple[XmlCollection, ...]:
    """The schema collections of a database, oldest first."""
    return database.properties.get(_COLLECTIONS, ())


def xml_collection(database: Database, schema: str, name: str) -> XmlCollection | None:
    """A collection by schema and name, under the database's collation."""
    found = database.schemas.get(schema)
    same = (each for each in xml_collections(database) if each.schema is found)
    return next((each for each in same if each.name.casefold() == name.casefold()), None)


def xml_indexes(table: Table) -> tuple[XmlIndex, ...]:
    """The XML indexes of a table."""
    return table.properties.get(_XML_INDEXES, ())


def text_catalogs(database: Database) -> tuple[TextCatalog, ...]:
    """The full-text catalogues of a database."""
    return database.properties.get(_CATALOGS, ())


def text_index(table: Table) -> TextIndex | None:
    """The full-text index of a table."""
    return table.properties.get(_FULLTEXT)


def keep_collections(database: Database, transaction: Transaction, kept: tuple[XmlCollection, ...]) -> None:
    """Replace the list of collections, undone by a rollback."""
    _keep(database.properties, _COLLECTIONS, transaction, kept)


def keep_xml_indexes(table: Table, transaction: Transaction, kept: tuple[XmlIndex, ...]) -> None:
    """Replace a table's list of XML indexes."""
    _keep(table.properties, _XML_INDEXES, transaction, kept)


def keep_catalogs(database: Database, kept: tuple[TextCatalog, ...]) -> None:
    """Replace the list of full-text catalogues; full-text statements cannot be rolled back."""
    database.properties[_CATALOGS] = kept


def keep_text_index(table: Table, kept: TextIndex | None) -> None:
    """Set or remove the full-text index of a table."""
    if kept is None:
        table.properties.pop(_FULLTEXT, None)
    else:
        table.properties[_FULLTEXT] = kept


def _keep(properties: dict[str, Any], key: str, transaction: Transaction, kept: tuple[Any, ...]) -> None:
    before = properties.get(key, ())
    undo: Callable[[], None] = lambda: properties.__setitem__(key, before)  # noqa: E731 - one undo for both lists
    transaction.on_undo(undo)
    properties[key] = kept
