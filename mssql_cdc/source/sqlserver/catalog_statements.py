"""The T-SQL that reads the catalog. `catalog` reads the rows by these column names."""

from __future__ import annotations

TYPE_NAME = "COALESCE(b.name, t.name, N'a type that is hidden')"
JOIN_TYPES = """LEFT JOIN sys.types b ON b.user_type_id = c.system_type_id
LEFT JOIN sys.types t ON t.user_type_id = c.user_type_id"""
"""The base type of a column `c` of `sys.columns`, and where its name comes from.

`sys.types` shows base types to everyone, but user-defined types only to logins with a permission on them. A column of
an alias type has the base type's `system_type_id`; all CLR types share one, for which there is no row.
"""

DATABASE = """
SELECT name, is_cdc_enabled, CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition,
       CAST(SERVERPROPERTY('ProductMajorVersion') AS int) AS major
FROM sys.databases WHERE name = ?"""

LOG_SCANS = "SELECT TOP (0) session_id FROM sys.dm_cdc_log_scan_sessions"

# In Azure SQL Database, DB_ID() is not a database_id of sys.databases.
DATABASE_COLLATION = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Collation') AS nvarchar(128))"

CAPTURE_INSTANCES = """
SELECT ct.object_id, ct.source_object_id, ct.capture_instance, ct.start_lsn, ct.create_date,
       ss.name AS source_schema, st.name AS source_table, cs.name AS change_schema, co.name AS change_table,
       st.modify_date AS source_modified, co.modify_date AS change_modified
FROM cdc.change_tables ct
JOIN sys.tables st ON st.object_id = ct.source_object_id
JOIN sys.schemas ss ON ss.schema_id = st.schema_id
LEFT JOIN sys.tables co ON co.object_id = ct.object_id
LEFT JOIN sys.schemas cs ON cs.schema_id = co.schema_id
WHERE ct.start_lsn IS NOT NULL  -- Before that nothing can be read from the instance.
ORDER BY ct.source_object_id, ct.start_lsn, ct.create_date"""

# Tables that are not captured, as instances: their own object id takes the place of a change table's.
UNCAPTURED = """
SELECT t.object_id, t.object_id AS source_object_id, QUOTENAME(s.name) + '.' + QUOTENAME(t.name) AS capture_instance,
       CAST(0x00000000000000000001 AS binary(10)) AS start_lsn, t.create_date, s.name AS source_schema,
       t.name AS source_table, NULL AS change_schema, NULL AS change_table, t.modify_date AS source_modified,
       t.modify_date AS change_modified
FROM sys.tables t
JOIN sys.schemas s ON s.schema_id = t.schema_id
WHERE t.is_ms_shipped = 0 AND s.name <> 'cdc'
  AND NOT EXISTS (SELECT 1 FROM cdc.change_tables ct WHERE ct.source_object_id = t.object_id)
ORDER BY t.object_id"""

# By the object ids of their change tables. For a table without partitions, `partition_switch` is always 1.
SWITCHED = """
SELECT ct.object_id FROM cdc.change_tables ct
WHERE ct.partition_switch = 1
  AND EXISTS (SELECT 1 FROM sys.partitions p WHERE p.object_id = ct.source_object_id AND p.partition_number > 1)"""

CAPTURED_COLUMNS = """
SELECT object_id, column_name, column_id, column_ordinal, is_computed
FROM cdc.captured_columns ORDER BY object_id, column_ordinal"""

_TYPED_COLUMNS = f"""
SELECT c.object_id, c.name, c.column_id, {TYPE_NAME} AS type_name, c.max_length, c.precision, c.scale,
       c.collation_name{{more}}
FROM sys.columns c
{JOIN_TYPES}{{joins}}
WHERE c.object_id IN ({{ids}})
ORDER BY c.object_id, c.column_id"""

CHANGE_TABLE_COLUMNS = _TYPED_COLUMNS.format(more="", joins="", ids="SELECT object_id FROM cdc.change_tables")

# The columns of the rows that a statement would return; not available before SQL Server 2012.
RESULT_COLUMNS = f"""
SELECT d.name, {TYPE_NAME} AS type_name, d.max_length, d.precision, d.scale, d.collation_name
FROM sys.dm_exec_describe_first_result_set(?, NULL, 0) AS d
LEFT JOIN sys.types b ON b.user_type_id = d.system_type_id
LEFT JOIN sys.types t ON t.user_type_id = COALESCE(d.user_type_id, TYPE_ID(d.system_type_name))"""

CAPTURED_TABLES = "SELECT source_object_id FROM cdc.change_tables"
ALL_TABLES = "SELECT object_id FROM sys.tables"
"""Which tables the statements below are about."""

SOURCE_COLUMNS = _TYPED_COLUMNS.format(
    more=", c.is_nullable, c.is_identity, c.is_computed, d.definition AS default_text, t.name AS declared_type",
    joins="\nLEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id",
    ids="{tables}",
)

# The columns of every table, captured or not.
STRUCTURES = f"""
SELECT c.object_id, s.name AS schema_name, o.name AS table_name, c.name, c.column_id,
       {TYPE_NAME} AS type_name, c.max_length, c.precision, c.scale, c.collation_name,
       c.is_nullable, c.is_identity, c.is_computed, d.definition AS default_text, t.name AS declared_type
FROM sys.tables o
JOIN sys.schemas s ON s.schema_id = o.schema_id
JOIN sys.columns c ON c.object_id = o.object_id
{JOIN_TYPES}
LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id
ORDER BY c.object_id, c.column_id"""

# A hypothetical index, which the tuning advisor leaves behind, enforces nothing.
STRUCTURE_KEYS = """
SELECT i.object_id, i.index_id, i.name AS index_name, i.is_primary_key, c.name AS column_name
FROM sys.indexes i
JOIN sys.tables o ON o.object_id = i.object_id
JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE i.is_unique = 1 AND i.is_hypothetical = 0 AND ic.key_ordinal > 0
ORDER BY i.object_id, i.index_id, ic.key_ordinal"""

UNIQUE_INDEXES = f"""
SELECT i.object_id, i.index_id, i.name AS index_name, i.is_primary_key, i.has_filter, i.is_disabled, ic.key_ordinal,
       k.object_id AS constraint_id,
       c.name AS column_name, c.is_computed, c.collation_name, {TYPE_NAME} AS type_name
FROM sys.indexes i
JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
{JOIN_TYPES}
LEFT JOIN sys.key_constraints k ON k.parent_object_id = i.object_id AND k.unique_index_id = i.index_id
WHERE i.is_unique = 1 AND i.is_hypothetical = 0 AND ic.key_ordinal > 0 AND i.object_id IN ({{tables}})
ORDER BY i.object_id, i.index_id, ic.key_ordinal"""

# The descriptions of tables (column 0) and their columns. sql_variant holds up to 8,000 bytes.
DESCRIPTIONS = """
SELECT p.major_id AS object_id, p.minor_id AS column_id, CAST(p.value AS nvarchar(4000)) AS description
FROM sys.extended_properties p
WHERE p.class = 1 AND p.name = N'MS_Description'
  AND p.major_id IN ({tables})"""

# Changes that a table's modify_date may not show.
INDEX_STATES = """
SELECT object_id, index_id, is_disabled FROM sys.indexes
WHERE is_unique = 1 AND is_hypothetical = 0 AND object_id IN ({tables})
ORDER BY object_id, index_id"""
