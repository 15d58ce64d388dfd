"""Views about features that are not here, so that nothing is in them: a server without such objects shows none either.

Columns are the published ones [doc]; tools ask for these views whatever is in them.
"""

from __future__ import annotations

from mssql_sandbox.catalog.definitions import SystemView, view

_NAMED = "name sysname, principal_id int?, "
_COLUMNS = {
    "sys.assemblies": _NAMED + "assembly_id int, clr_name nvarchar(4000)?, permission_set tinyint?, "
    "permission_set_desc nvarchar(60)?, is_visible bit, create_date datetime, modify_date datetime, "
    "is_user_defined bit?",
    "sys.assembly_modules": "object_id int, assembly_id int, assembly_class sysname?, assembly_method sysname?, "
    "null_on_null_input bit?, execute_as_principal_id int?",
    "sys.asymmetric_keys": "name sysname, principal_id int?, asymmetric_key_id int, pvt_key_encryption_type char(2), "
    "pvt_key_encryption_type_desc nvarchar(60)?, thumbprint varbinary(32), algorithm char(2), "
    "algorithm_desc nvarchar(60)?, key_length int, sid varbinary(85)?, string_sid nvarchar(128)?, "
    "public_key varbinary(max), attested_by nvarchar(260)?, provider_type nvarchar(120)?, "
    "cryptographic_provider_guid uniqueidentifier?, cryptographic_provider_algid sql_variant?",
    "sys.availability_groups": "group_id uniqueidentifier, name sysname?, resource_id nvarchar(40)?, "
    "resource_group_id nvarchar(40)?, failure_condition_level int?, health_check_timeout int?, "
    "automated_backup_preference tinyint?, automated_backup_preference_desc nvarchar(60)?, version smallint?, "
    "basic_features bit?, dtc_support bit?, db_failover bit?, is_distributed bit?, cluster_type tinyint?, "
    "cluster_type_desc nvarchar(60)?, required_synchronized_secondaries_to_commit int?, "
    "sequence_number bigint?, is_contained bit?",
    "sys.availability_replicas": "replica_id uniqueidentifier?, group_id uniqueidentifier?, "
    "replica_metadata_id int?, replica_server_name nvarchar(256)?, owner_sid varbinary(85)?, "
    "endpoint_url nvarchar(128)?, availability_mode tinyint?, availability_mode_desc nvarchar(60)?, "
    "failover_mode tinyint?, failover_mode_desc nvarchar(60)?, session_timeout int?, "
    "primary_role_allow_connections tinyint?, primary_role_allow_connections_desc nvarchar(60)?, "
    "secondary_role_allow_connections tinyint?, secondary_role_allow_connections_desc nvarchar(60)?, "
    "create_date datetime?, modify_date datetime?, backup_priority int?, read_only_routing_url nvarchar(256)?, "
    "seeding_mode tinyint?, seeding_mode_desc nvarchar(60)?, read_write_routing_url nvarchar(256)?",
    "sys.certificates": "name sysname, certificate_id int, principal_id int?, pvt_key_encryption_type char(2), "
    "pvt_key_encryption_type_desc nvarchar(60)?, is_active_for_begin_dialog bit?, issuer_name nvarchar(442)?, "
    "cert_serial_number nvarchar(64)?, sid varbinary(85)?, string_sid nvarchar(128)?, subject nvarchar(4000)?, "
    "expiry_date datetime?, start_date datetime?, thumbprint varbinary(32), attested_by nvarchar(260)?, "
    "pvt_key_last_backup_date datetime?, key_length int?",
    "sys.change_tracking_databases": "database_id int, is_auto_cleanup_on tinyint?, retention_period int?, "
    "retention_period_units tinyint?, retention_period_units_desc nvarchar(60)?, max_cleanup_version bigint?",
    "sys.change_tracking_tables": "object_id int, is_track_columns_updated_on bit?, min_valid_version bigint?, "
    "begin_version bigint?, cleanup_version bigint?",
    "sys.column_encryption_keys": "name sysname, column_encryption_key_id int, create_date datetime, "
    "modify_date datetime",
    "sys.column_master_keys": "name sysname, column_master_key_id int, create_date datetime, modify_date datetime, "
    "key_store_provider_name sysname, key_path nvarchar(4000)?, allow_enclave_computations bit, "
    "signature varbinary(max)?",
    "sys.credentials": "credential_id int, name sysname, credential_identity nvarchar(4000)?, create_date datetime, "
    "modify_date datetime, target_type nvarchar(100)?, target_id int?",
    "sys.dm_hadr_availability_group_states": "group_id uniqueidentifier, primary_replica nvarchar(128)?, "
    "primary_recovery_health tinyint?, primary_recovery_health_desc nvarchar(60)?, "
    "secondary_recovery_health tinyint?, secondary_recovery_health_desc nvarchar(60)?, "
    "synchronization_health tinyint?, synchronization_health_desc nvarchar(60)?",
    "sys.dm_hadr_availability_replica_states": "replica_id uniqueidentifier, group_id uniqueidentifier, "
    "is_local bit, role tinyint?, role_desc nvarchar(60)?, operational_state tinyint?, "
    "operational_state_desc nvarchar(60)?, connected_state tinyint?, connected_state_desc nvarchar(60)?, "
    "recovery_health tinyint?, recovery_health_desc nvarchar(60)?, synchronization_health tinyint?, "
    "synchronization_health_desc nvarchar(60)?, last_connect_error_number int?, "
    "last_connect_error_description nvarchar(1024)?, last_connect_error_timestamp datetime?, "
    "write_lease_remaining_ticks bigint?, current_configuration_commit_start_time_utc datetime?, is_internal bit?",
    "sys.external_data_sources": "data_source_id int, name sysname, location nvarchar(4000), type_desc nvarchar(255)?, "
    "type tinyint, resource_manager_location nvarchar(4000)?, credential_id int, database_name sysname?, "
    "shard_map_name sysname?, connection_options nvarchar(4000)?, pushdown nvarchar(256)?",
    "sys.linked_logins": "server_id int, local_principal_id int?, uses_self_credential bit, remote_name sysname?, "
    "modify_date datetime",
    "sys.plan_guides": "plan_guide_id int, name sysname, create_date datetime, modify_date datetime, is_disabled bit, "
    "query_text nvarchar(max)?, scope_type tinyint, scope_type_desc nvarchar(60)?, scope_object_id int?, "
    "scope_batch nvarchar(max)?, parameters nvarchar(max)?, hints nvarchar(max)?",
    "sys.security_policies": "name sysname, object_id int, principal_id int?, schema_id int, parent_object_id int, "
    "type varchar(2), type_desc nvarchar(60)?, create_date datetime, modify_date datetime, is_ms_shipped bit, "
    "is_enabled bit?, is_not_for_replication bit, uses_database_collation bit?, is_schema_bound bit?",
    "sys.symmetric_keys": "name sysname, principal_id int?, symmetric_key_id int, key_length int, "
    "key_algorithm char(2), algorithm_desc nvarchar(60)?, create_date datetime, modify_date datetime, "
    "key_guid uniqueidentifier?, key_thumbprint sql_variant?, provider_type nvarchar(120)?, "
    "cryptographic_provider_guid uniqueidentifier?, cryptographic_provider_algid sql_variant?",
}


def _empty(name: str, specification: str) -> SystemView:
    return view(name, specification, lambda _scope: ())


VIEWS = tuple(_empty(name, specification) for name, specification in _COLUMNS.items())
