"""The views of XML and full-text search: schema collections, catalogues, and both kinds of indexes."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.storage.documents import (
    FIRST_COLLECTION,
    TextIndex,
    text_catalogs,
    text_index,
    xml_collections,
    xml_indexes,
)
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.xml.tree import XS

_PURPOSES = {"": None, "P": "PATH", "R": "PROPERTY", "V": "VALUE"}
_SYSTEM = 1
"""The id of the collection `sys`, which every database has."""


def _collections(scope: Scope) -> Iterator[tuple]:
    made = scope.database.create_date
    yield (_SYSTEM, 4, "sys", made, made)
    for each in xml_collections(scope.database):
        yield (each.collection_id, each.schema.schema_id, each.name, each.create_date, each.modify_date)


def _namespaces(scope: Scope) -> Iterator[tuple]:
    yield (_SYSTEM, XS, 1)
    for each in xml_collections(scope.database):
        for number, space in enumerate(dict.fromkeys(each.content.spaces), 1):
            yield (each.collection_id, space, number)


def _column_usages(scope: Scope) -> Iterator[tuple]:
    by_content = {id(each.content): each.collection_id for each in xml_collections(scope.database)}
    for table in scope.tables():
        for column in table.columns:
            if column.xml_schema is not None:
                yield (table.object_id, column.column_id, by_content.get(id(column.xml_schema), FIRST_COLLECTION))


def _xml_indexes(scope: Scope) -> Iterator[tuple]:
    for table in scope.tables():
        for each in xml_indexes(table):
            kind = (0, "PRIMARY_XML") if each.primary is None else (1, "SECONDARY_XML")
            yield (
                table.object_id, each.name, each.index_id, each.primary, each.purpose or None, _PURPOSES[each.purpose],
                *kind,
            )  # fmt: skip


def _catalogs(scope: Scope) -> Iterator[tuple]:
    for each in text_catalogs(scope.database):
        yield (each.catalog_id, each.name, int(each.is_default))


def _searched(scope: Scope) -> Iterator[tuple[Table, TextIndex]]:
    for table in scope.tables():
        found = text_index(table)
        if found is not None:
            yield table, found


def _text_indexes(scope: Scope) -> Iterator[tuple]:
    for table, each in _searched(scope):
        key = table.index(each.key_index)
        yield (
            table.object_id,
            1 if key is None else key.index_id,
            each.catalog.catalog_id,
        )


def _text_columns(scope: Scope) -> Iterator[tuple]:
    for table, each in _searched(scope):
        for name, type_column, language in each.columns:
            column, kind = table.column(name), table.column(type_column) if type_column else None
            if column is not None:
                yield (table.object_id, column.column_id, None if kind is None else kind.column_id, language)


VIEWS = (
    view("sys.xml_schema_collections",
         "xml_collection_id int, schema_id int, principal_id int? = NULL, name sysname, create_date datetime, "
         "modify_date datetime", _collections),
    view("sys.xml_schema_namespaces", "xml_collection_id int, name nvarchar(4000), xml_namespace_id int", _namespaces),
    view("sys.column_xml_schema_collection_usages", "object_id int, column_id int, xml_collection_id int",
         _column_usages),
    view("sys.xml_indexes",
         "object_id int, name sysname?, index_id int, type tinyint = 3, type_desc nvarchar(60)? = 'XML', "
         "is_unique bit? = 0, data_space_id int? = 1, ignore_dup_key bit? = 0, is_primary_key bit? = 0, "
         "is_unique_constraint bit? = 0, fill_factor tinyint = 0, is_padded bit? = 0, is_disabled bit? = 0, "
         "is_hypothetical bit? = 0, is_ignored_in_optimization bit? = 0, allow_row_locks bit? = 1, "
         "allow_page_locks bit? = 1, using_xml_index_id int?, secondary_type char(1)?, "
         "secondary_type_desc nvarchar(60)?, has_filter bit = 0, filter_definition nvarchar(max)? = NULL, "
         "xml_index_type tinyint?, xml_index_type_description nvarchar(60)?, path_id int? = NULL, "
         "auto_created bit? = 0", _xml_indexes),
    view("sys.fulltext_catalogs",
         "fulltext_catalog_id int, name sysname, path nvarchar(260)? = NULL, is_default bit, "
         "is_accent_sensitivity_on bit = 1, data_space_id int? = NULL, file_id int? = NULL, principal_id int? = 1, "
         "is_importing bit = 0", _catalogs),
    view("sys.fulltext_indexes",
         "object_id int, unique_index_id int, fulltext_catalog_id int?, is_enabled bit = 1, "
         "change_tracking_state char(1)? = 'A', "
         "change_tracking_state_desc nvarchar(60)? = 'AUTO', has_crawl_completed bit = 1, crawl_type char(1)? = 'F', "
         "crawl_type_desc nvarchar(60)? = 'FULL_CRAWL', crawl_start_date datetime? = NULL, "
         "crawl_end_date datetime? = NULL, incremental_timestamp binary(8)? = NULL, stoplist_id int? = 0, "
         "data_space_id int = 1, property_list_id int? = NULL", _text_indexes),
    view("sys.fulltext_index_columns",
         "object_id int, column_id int, type_column_id int?, language_id int, statistical_semantics int = 0",
         _text_columns),
)  # fmt: skip
