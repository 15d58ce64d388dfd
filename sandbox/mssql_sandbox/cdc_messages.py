"""Texts of the messages 22830..22999, as Microsoft documents them.

One table: number -> (severity, text). `%s` and `%d` are filled in order, as in `sys.messages`. All other
messages are in `error_messages`.
Source: "Database engine events and errors (22000 to 22999)" [doc].
"""

# ruff: noqa: E501

from __future__ import annotations

from mssql_sandbox.errors import SqlError

_RESUBMIT = "Use the action and error to determine the cause of the failure and resubmit the request."
_REFER = "Refer to previous errors in the current session to identify the cause and correct any associated problems."
_EXECUTING = "The failure occurred when executing the command '%s'. The error returned was %d: '%s'. " + _RESUBMIT
_SWITCH = (
    "Refer to books online for more information about partition switching behavior when using Change Data Capture."
)
_IDENTIFIERS = "See the topic 'Identifiers' in SQL Server Books Online for object name rules."
_OBSOLETE = (
    "If the current tracking options are not appropriate, disable change tracking for the obsolete instance by using "
    "sys.sp_cdc_disable_table and retry the operation."
)

# fmt: off
MESSAGES: dict[int, tuple[int, str]] = {
    12839: (16, "Replication, Change Data Capture, Change Feed and Change Tracking are not supported in contained databases. The option cannot be enabled on the contained database '%s'."),
    18752: (16, "Only one Log Reader Agent or log-related procedure (sp_repldone, sp_replcmds, and sp_replshowcmds) can connect to a database at a time. If you executed a log-related procedure, drop the connection over which the procedure was executed or execute sp_replflush over that connection before starting the Log Reader Agent or executing another log-related procedure."),
    18757: (16, "Unable to execute procedure. The database is not published. Execute the procedure in a database that is published for replication."),
    21050: (14, "Only members of the sysadmin fixed server role or db_owner fixed database role can perform this operation. Contact an administrator with sufficient permissions to perform this operation."),
    22801: (16, "Starting the Change Data Capture Collection Agent job. To report on the progress of the operation, query the sys.dm_cdc_log_scan_sessions dynamic management view."),
    22803: (16, "Change Data Capture has scanned the log from LSN{%s} to LSN{%s}, %d transactions with %d commands have been extracted. To report on the progress of the operation, query the sys.dm_cdc_log_scan_sessions dynamic management view."),
    22831: (16, "Could not update the metadata that indicates database %s is not enabled for Change Data Capture. " + _EXECUTING),
    22832: (16, "Could not update the metadata that indicates table %s is enabled for Change Data Capture. " + _EXECUTING),
    22837: (16, "Could not delete table entries or drop objects associated with capture instance '%s'. " + _EXECUTING),
    22838: (16, "All columns of a CDC unique index must be defined as NOT NULL. Index '%s' selected as the CDC unique index for source table '%s.%s' does not meet this requirement. Define all columns of the selected index as NOT NULL or select another unique index as the CDC index and resubmit the request."),
    22842: (16, "ALTER TABLE SWITCH statement failed because the partitioned destination table is enabled for Change Data Capture and does not have @allow_partition_switch set to 1."),
    22843: (16, "ALTER TABLE SWITCH statement failed because the partitioned source table is enabled for Change Data Capture and does not have @allow_partition_switch set to 1."),
    22844: (16, "The '%s' option must be either 1 or 0."),
    22850: (16, "The threshold value specified for the Change Data Capture cleanup process must be greater than 0. When creating or modifying the cleanup job, specify a positive threshold value. If this error is encountered when executing the sys.sp_cdc_cleanup_change_table stored procedure, reset the threshold value associated with the job to a non-negative value by using the sp_cdc_change_job stored procedure."),
    22852: (10, "Could not delete change table entries made obsolete by a change in one or more low water marks for capture instances of database %s. " + _EXECUTING),
    22854: (16, "Can not enable Change Data Capture on table '%s' or add ColumnSet column to it because CDC does not support ColumnSet."),
    22855: (10, "Warning: The @allow_partition_switch parameter is set to 1. Change data capture will not track changes introduced in the table resulting from a partition switch which will cause data inconsistency when changes are consumed. " + _SWITCH),
    22856: (10, "Warning: The @allow_partition_switch parameter is set to 0. ALTER TABLE ... SWITCH PARTITION statement will be disallowed on this partitioned table. " + _SWITCH),
    22857: (10, "Warning: The @allow_partition_switch parameter must be 1 for tables that are not partitioned. The explicit setting of the parameter to 0 was ignored. " + _SWITCH),
    22859: (16, "Log Scan process failed in processing log records. " + _REFER),
    22860: (16, "Log scan process failed in processing a ddl log record. " + _REFER),
    22862: (16, "The database snapshot '%s' does not exist. Correct the parameter value and resubmit the request."),
    22863: (16, "Failed to insert rows into Change Data Capture change tables. " + _REFER),
    22864: (16, "The call to sp_MScdc_capture_job by the Capture Job for database '%s' failed. Look at previous errors for the cause of the failure."),
    22865: (16, "The number of columns in the index '%s', used as the unique row identifier to support net changes for table '%s'.'%s', exceeds the limit of 14 columns. Set the parameter @supports_net_changes to 0 or use the @index_name parameter to identify a unique index with fewer than 15 columns as the unique row identifier and resubmit the request."),
    22874: (16, "Cannot set @enable_extended_ddl_handling parameter to 1 as this feature is not enabled."),
    22888: (16, "Could not alter captured column of a CDC tracked table with character/binary/unicode as target data type with ansi warnings turned off."),
    22891: (16, "Could not enable '%s' for database '%s'. '%s' cannot be enabled on a DB with delayed durability set."),
    22892: (16, "Could not enable delayed durability on DB. Delayed durability cannot be enabled on a DB while '%s' is enabled."),
    22901: (16, "The database '%s' is not enabled for Change Data Capture. Ensure that the correct database context is set and retry the operation. To report on the databases enabled for Change Data Capture, query the is_cdc_enabled column in the sys.databases catalog view."),
    22902: (16, "Caller is not authorized to initiate the requested action. %s privileges are required."),
    22903: (16, "Another connection with session ID %d is already running 'sp_replcmds' for Change Data Capture in the current database."),
    22904: (16, "Caller is not authorized to initiate the requested action. DBO privileges are required."),
    22905: (10, "Database '%s' is already enabled for Change Data Capture. Ensure that the correct database context is set, and retry the operation. To report on the databases enabled for Change Data Capture, query the is_cdc_enabled column in the sys.databases catalog view."),
    22906: (16, "The database '%s' cannot be enabled for Change Data Capture because a database user named 'cdc' or a schema named 'cdc' already exists in the current database. These objects are required exclusively by Change Data Capture. Drop or rename the user or schema and retry the operation."),
    22907: (16, "Parameter @role_name cannot be empty. Specify a value for @role_name and retry the operation. Supply null as the value if no role is to be used to gate access to captured change data."),
    22910: (16, "The cleanup request for database '%s' failed.  The database is not enabled for Change Data Capture."),
    22914: (16, "Only members of the sysadmin or db_owner or db_ddladmin roles can perform this operation when Change Data Capture is enabled for a database."),
    22918: (16, "One or more columns in the list of included columns was not a captured column of the change table %s."),
    22919: (16, "One or more columns in the list of columns needing update flags was not a captured column of the change table %s."),
    22920: (16, "The named capture instance %s does not exist for database %s."),
    22921: (16, "Unable to generate scripts for all capture instances that the caller is authorized to access. To generate all such scripts, the parameters @column_list and @update_flag_list must both be null or empty.'"),
    22925: (16, "The number of columns captured by capture instance '%s' exceeds the maximum allowed number: %d. Use the @captured_columns_list parameter to specify a subset of the columns less than or equal to the maximum allowed and resubmit the request."),
    22926: (16, "Could not create a capture instance because the capture instance name '%s' already exists in the current database. Specify an explicit unique name for the parameter @capture_instance."),
    22927: (16, "Capture instance name '%s' exceeds the length limit of 100 characters. Specify a name that satisfies the length constraint."),
    22928: (16, "Index name '%s' is not an index for table '%s.%s'. Specify a valid index name for the table."),
    22929: (16, "Index '%s' must be either a primary key or a unique index for table '%s.%s'. Specify an index that meets at least one of these requirements."),
    22930: (16, "Could not locate '%s' as a column of source table '%s.%s'. Specify a valid column name."),
    22931: (16, "Source table '%s.%s' does not exist in the current database. Ensure that the correct database context is set. Specify a valid schema and table name for the database."),
    22932: (16, "Capture instance name '%s' is invalid. Specify a valid name. " + _IDENTIFIERS),
    22938: (16, "Role name '%s' is invalid. Specify a valid name. " + _IDENTIFIERS),
    22939: (16, "The parameter @supports_net_changes is set to 1, but the source table does not have a primary key defined and no alternate unique index has been specified."),
    22942: (16, "Columns specified in the captured column list could not be mapped to columns in source table '%s.%s'. Verify that the columns specified in the parameter @captured_column_list are delimited properly and match columns in the source table."),
    22943: (16, "Columns used to uniquely identify a row for net change tracking must be included in the list of captured columns. Add either the primary key columns of the source table, or the columns defined for the index specified in the parameter @index_name to the list of captured columns and retry the operation."),
    22960: (16, "Change data capture instance '%s' has not been enabled for the source table '%s.%s'. Use sys.sp_cdc_help_change_data_capture to verify the capture instance name and retry the operation."),
    22962: (16, "Two capture instances already exist for source table '%s.%s'. A table can have at most two capture instances. " + _OBSOLETE),
    22963: (16, "Parameter '%s' cannot be null or empty. Specify a value for the named parameter and retry the operation."),
    22964: (16, "LSN %s, specified as the new low end point for change table cleanup must represent the start_lsn value of a current entry in the cdc.lsn_time_mapping table. Choose an LSN value that satisfies this requirement."),
    22965: (16, "A quoted column in the column list is not properly terminated. Verify that columns are correctly delimited and retry the operation. For more information, see 'Delimited Identifiers' in Books Online."),
    22969: (10, "Update mask evaluation will be disabled in net_changes_function because the CLR configuration option is disabled."),
    22970: (16, "The value for parameter @maxscans specified for the Change Data Capture job must be greater than 0."),
    22972: (16, "When calling stored procedure [sys].sp_cdc_help_change_data capture, if either @source_schema or @source_name is non-null and non-empty, the other parameter must also be non-null and non-empty."),
    22973: (16, "The specified filegroup '%s' is not a valid filegroup for database '%s'. Specify a valid existing filegroup or create the named filegroup, and retry the operation."),
    22974: (16, "Tables contained in the cdc schema cannot be enabled for Change Data Capture."),
    22975: (16, "Source table '%s' contains one of the following reserved column names: __$start_lsn, __$end_lsn, __$seqval, __$operation, and __$update_mask. To enable Change Data Capture for this table, specify a captured column list and ensure that these columns are excluded from the list."),
    22976: (16, "Could not alter column '%s' of change table '%s' in response to a data type change in the corresponding column of the source table '%s'. The Change Data Capture meta data for source table '%s' no longer accurately reflects the source table. " + _REFER),
    22979: (16, "The unique index '%s' on table '%s' is used by Change Data Capture. The constraint using this index cannot be dropped or disabled."),
    22980: (16, "The unique index '%s' on table '%s.%s' is disabled and cannot be used as a unique index by Change Data Capture. Enable the index."),
    22981: (16, "Object does not exist or access is denied."),
    22983: (16, "The unique index '%s' on source table '%s' is used by Change Data Capture. To alter or drop the index, you must first disable Change Data Capture on the table."),
    22985: (16, "Change data capture has not been enabled for source table '%s.%s'. Specify the name of a table enabled for Change Data Capture. To report on the tables enabled for Change Data Capture, query the is_tracked_by_cdc column in the sys.tables catalog view."),
    22988: (16, "This instance of SQL Server is the %s. Change data capture is only available in the Enterprise, Developer, Enterprise Evaluation, and Standard editions."),
    22989: (16, "Could not enable Change Data Capture for database '%s'. Change data capture is not supported on system databases, or on a distribution database."),
    22990: (16, "The value specified for the parameter @pollinginterval must be greater than or equal to 0 and less than 24 hours(Max: 86399 seconds). Specify a polling interval (in seconds) that is less than 24 hours (86,400 seconds)."),
    22991: (16, "The value specified for the parameter @maxtrans must be greater than 0."),
    22992: (16, "The specified @job_type, %s, is not supported. The value specified for the parameter @job_type must be N'capture' to indicate a capture job, or N'cleanup' to indicate a cleanup job."),
    22993: (16, "The Change Data Capture job table containing job information for database '%s' cannot be found in the msdb system database. Run the stored procedure 'sys.sp_cdc_add_job' to create the appropriate CDC capture or cleanup job. The stored procedure will create the required job table."),
    22994: (16, "The retention value specified for the Change Data Capture cleanup process must be greater than 0 and less than or equal to 52594800. When creating or modifying the cleanup job, specify a retention value (in minutes) that is within that range. If this error is encountered when executing the sys.sp_cdc_cleanup_change_table stored procedure, reset the retention value associated with the job to a non-negative value less than 52594800 by using the sp_cdc_change_job stored procedure."),
    22995: (16, "A value for the parameter @retention cannot be specified when the job type is 'capture'. Specify NULL for the parameter, or omit the parameter from the statement."),
    22996: (16, "When adding or modifying the CDC cleanup job, @pollinginterval, @maxtrans, @maxscans, and @continuous may not be assigned non-null values."),
    22997: (16, "The Change Data Capture '%s' job does not exist in the system table 'msdb.dbo.cdc_jobs'. Use the stored procedure 'sys.sp_cdc_add_job' to add the Change Data Capture job."),
    22998: (16, "The value specified for the parameter @continuous must be 0 or 1."),
    22999: (16, "The value specified for the parameter @pollinginterval must be null or 0 when the stored procedure 'sys.sp_cdc_scan' is not being run in continuous mode."),
}
# fmt: on

AGENT_NOT_RUNNING = "SQLServerAgent is not currently running so it cannot be notified of this action."


def cdc_error(number: int, *arguments: object, procedure: str) -> SqlError:
    """The documented error `number`, its `%s`/`%d` filled in order, raised by `procedure`.

    Raises:
        KeyError: the number is none of change data capture's.
    """
    severity, text = MESSAGES[number]
    return SqlError(number, text % arguments if arguments else text, severity=severity, procedure=procedure)


def no_such_endpoints(kind: str) -> SqlError:
    """Error 313 for any bad argument of a change function; `kind` is `all` or `net`.

    The text carries the name of the placeholder function, never that of the instance [doc][fab].
    """
    return SqlError(
        313,
        "An insufficient number of arguments were supplied for the procedure or function "
        f"cdc.fn_cdc_get_{kind}_changes_ ... .",
        state=3,
    )
