"""Sequences, alias types and table types [doc]: `sys.sequences`, `sys.table_types`, and INFORMATION_SCHEMA's."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.measures import measures
from mssql_sandbox.catalog.names import all_objects
from mssql_sandbox.catalog.views.columns import type_ids
from mssql_sandbox.catalog.views.information_schema import character_set
from mssql_sandbox.catalog.views.tables import OBJECT, object_values
from mssql_sandbox.engine.types import reported_name


def _sequences(scope: Scope) -> Iterator[tuple]:
    rows = {row.object_id: row for row in all_objects(scope.database) if row.type_code == "SO"}
    for item in scope.database.objects():
        if item.object_id not in rows:
            continue
        sequence = item.definition
        kind = sequence.type
        following = sequence.next_value
        current = sequence.start if following is None else following - sequence.increment
        values = (sequence.start, sequence.increment, sequence.minimum, sequence.maximum)
        spent = following is not None and not sequence.minimum <= following <= sequence.maximum and not sequence.cycle
        shape = (*type_ids(kind, scope.database), kind.precision, kind.scale)
        last = None if following is None else (kind, current)
        told = (*((kind, value) for value in values), int(sequence.cycle), *shape, (kind, current), int(spent), last)
        yield (*object_values(rows[item.object_id]), *told)


def _sequences_shown(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.type_code == "SO":
            sequence = item.definition
            kind, sizes = sequence.type, measures(sequence.type)
            place = (scope.database.name, item.schema.name, item.name)
            values = (sequence.start, sequence.minimum, sequence.maximum, sequence.increment)
            shape = (reported_name(kind), sizes.precision, sizes.radix, sizes.scale)
            yield (*place, *shape, *((kind, value) for value in values), "YES" if sequence.cycle else "NO")


def _table_types(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.type_code == "TT":
            yield (item.name, item.object_id, item.schema.schema_id, item.object_id)


def _domains(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.type_code == "TYPE":
            kind, sizes = item.definition, measures(item.definition)
            place = (scope.database.name, item.schema.name, item.name)
            collation = kind.collation.name if kind.collation is not None else None
            lengths = (reported_name(kind) if not kind.alias else kind.name, sizes.characters, sizes.octets)
            numbers = (sizes.precision, sizes.radix, sizes.scale, sizes.fraction)
            yield (*place, *lengths, collation, character_set(kind), *numbers)


VIEWS = (
    view(
        "sys.sequences",
        OBJECT + ", start_value sql_variant, increment sql_variant, minimum_value sql_variant, "
        "maximum_value sql_variant, is_cycling bit?, is_cached bit? = 1, cache_size int? = NULL, "
        "system_type_id tinyint, user_type_id int, precision tinyint, scale tinyint, current_value sql_variant, "
        "is_exhausted bit, last_used_value sql_variant?",
        _sequences,
    ),
    view(
        "sys.table_types",
        "name sysname, system_type_id tinyint = 243, user_type_id int, schema_id int, principal_id int? = NULL, "
        "max_length smallint = -1, precision tinyint = 0, scale tinyint = 0, collation_name sysname? = NULL, "
        "is_nullable bit? = 0, is_user_defined bit = 1, is_assembly_type bit = 0, default_object_id int = 0, "
        "rule_object_id int = 0, is_table_type bit = 1, type_table_object_id int, is_memory_optimized bit? = 0",
        _table_types,
    ),
    view(
        "INFORMATION_SCHEMA.SEQUENCES",
        "SEQUENCE_CATALOG nvarchar(128)?, SEQUENCE_SCHEMA nvarchar(128)?, SEQUENCE_NAME sysname, "
        "DATA_TYPE nvarchar(128)?, NUMERIC_PRECISION tinyint?, NUMERIC_PRECISION_RADIX smallint?, NUMERIC_SCALE int?, "
        "START_VALUE sql_variant, MINIMUM_VALUE sql_variant, MAXIMUM_VALUE sql_variant, INCREMENT sql_variant, "
        "CYCLE_OPTION nvarchar(3)?, DECLARED_DATA_TYPE nvarchar(128)? = NULL, "
        "DECLARED_NUMERIC_PRECISION int? = NULL, DECLARED_NUMERIC_SCALE int? = NULL",
        _sequences_shown,
    ),
    view(
        "INFORMATION_SCHEMA.DOMAINS",
        "DOMAIN_CATALOG nvarchar(128)?, DOMAIN_SCHEMA nvarchar(128)?, DOMAIN_NAME sysname, DATA_TYPE nvarchar(128)?, "
        "CHARACTER_MAXIMUM_LENGTH int?, CHARACTER_OCTET_LENGTH int?, COLLATION_CATALOG sysname? = NULL, "
        "COLLATION_SCHEMA sysname? = NULL, COLLATION_NAME nvarchar(128)?, CHARACTER_SET_CATALOG sysname? = NULL, "
        "CHARACTER_SET_SCHEMA sysname? = NULL, CHARACTER_SET_NAME nvarchar(128)?, NUMERIC_PRECISION tinyint?, "
        "NUMERIC_PRECISION_RADIX smallint?, NUMERIC_SCALE tinyint?, DATETIME_PRECISION smallint?, "
        "DOMAIN_DEFAULT nvarchar(4000)? = NULL",
        _domains,
    ),
)
