"""Debezium's tests outside snapshots, and where their ideas are: in a workload, in another test, or why in none.

The names are those of Debezium 3.3.1, a few of later versions. A script's `restates` is one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMES: Mapping[str, str] = {
    "SqlServerConnectorIT": """
        createAndDeleteWithDataQueryModeFunctionWithoutFetchThreshold
        createAndDeleteWithDataQueryModeFunctionWithFetchThreshold
        createAndDeleteWithDataQueryModeDirectWithoutFetchThreshold
        createAndDeleteWithDataQueryModeDirectWithFetchThreshold createAndDeleteInDataQueryDirectMode
        readOnlyApplicationIntent timestampAndTimezone deleteWithoutTombstone update updatePrimaryKey
        updatePrimaryKeyWithRestartInMiddle updatePrimaryKeyTwiceWithRestartInMiddleOfTx streamChangesWhileStopped
        verifyOffsets testIncludeTable shouldReportConfigurationErrorForUserNotHavingAccessToCDCTableInInitialMode
        shouldNotReportConfigurationErrorForUserNotHavingAccessToCDCTableInInitialOnlyMode testTableIncludeList
        testTableExcludeList blacklistColumnWhenCdcColumnsDoNotMatchWithOriginalSnapshot testColumnExcludeList
        testColumnIncludeList shouldHandleInvalidColumnFilter shouldConsumeEventsWithMaskedHashedColumns
        shouldConsumeEventsWithMaskedAndTruncatedColumns
        whenCaptureInstanceExcludesColumnsExpectSnapshotAndStreamingToExcludeColumns
        whenMultipleCaptureInstancesExcludesColumnsExpectLatestCDCTableUtilized
        whenCaptureInstanceExcludesColumnsAndColumnsRenamedExpectNoErrors
        excludeColumnWhenCaptureInstanceExcludesColumns
        excludeColumnWhenCaptureInstanceExcludesColumnInMiddleOfTable
        includeColumnsWhenCaptureInstanceExcludesColumnInMiddleOfTable
        excludeMultipleColumnsWhenCaptureInstanceExcludesSingleColumn
        includeMultipleColumnsWhenCaptureInstanceExcludesSingleColumn shouldPropagateDatabaseDriverProperties
        restartInTheMiddleOfTxAfterSnapshot restartInTheMiddleOfTxAfterCompletedTx restartInTheMiddleOfTx
        testEmptySchemaWarningAfterApplyingFilters testNoEmptySchemaWarningAfterApplyingFilters keylessTable
        shouldRewriteIdentityKey shouldCaptureTableSchema shouldDetectPurgedHistory
        useShortTableNamesForColumnMapper useLongTableNamesForColumnMapper useLongTableNamesForKeyMapper
        useShortTableNamesForKeyMapper shouldPropagateSourceTypeByDatatype
        shouldNotStreamWhenUsingSnapshotModeInitialOnly testMaxLsnSelectStatementWithoutLimit
        testMaxLsnSelectStatementWithLimit shouldEmitNoEventsForSkippedUpdateAndDeleteOperations
        shouldReturnSingleTaskConfig shouldHandleMaxTasksGreaterThanNumberOfDatabaseNames shouldReturnTwoTaskConfigs
        shouldIncludeDatabaseNameIntoTopicAndSchemaNamesInMultiPartitionMode shouldApplySchemaFilters
        shouldFailWhenUserDoesNotHaveAccessToDatabase shouldIgnoreNullOffsetsWhenRecoveringHistory
        shouldStreamToOldTableAfterRename shouldStreamToNewTableAfterRestart
        shouldStopRetriableRestartsAtConfiguredMaximumDuringSnapshot
        shouldStopRetriableRestartsAtConfiguredMaximumDuringStreaming shouldNotUseOffsetWhenSnapshotIsAlways
        shouldCreateSnapshotSchemaOnlyRecovery shouldProcessPurgedLogsWhenDownAndSnapshotNeeded
        shouldAllowForCustomSnapshot shouldCaptureTableSchemaForAllTablesIncludingNonCaptured
        shouldOnlyCaptureTableSchemaForIncluded shouldExecuteHeartbeatActionQuery
        shouldValidateGuardrailLimitsExceedsMaximumTables
        shouldValidateGuardrailLimitsExceedsMaximumTablesAndFailConnector
        shouldStartSuccessfullyWithinGuardrailLimits
    """,
    "SqlServerChangeTableSetIT": """
        addTable removeTable addColumnToTableEndOfBatchWithoutLsnLimit addColumnToTableEndOfBatchWithLsnLimit
        addColumnToTableMiddleOfBatchWithoutLsnLimit addColumnToTableMiddleOfBatchWithLsnLimit removeColumnFromTable
        removeColumnFromTableWithoutChangingCapture addColumnToTableWithParallelWrites readHistoryAfterRestart
        renameColumn changeColumn addDefaultValue alterDefaultValue
    """,
    "SqlServerConnectionIT": """
        shouldEnableCdcForDatabase shouldEnableCdcWithWrapperFunctionsForTable shouldProperlyGetDefaultColumnValues
        shouldProperlyGetDefaultColumnNullValues testAccessToCDCTableBasedOnUserRoleAccess
        shouldConnectToASingleDatabase shouldNotConnectToAnyOfMultipleDatabase
        whenQueryTakesMoreThenConfiguredQueryTimeoutAnExceptionMustBeThrown
    """,
    "SchemaHistoryTopicIT": """
        streamingSchemaChanges snapshotSchemaChanges schemaChangeAfterSnapshot
        shouldContainPartitionInSchemaChangeEvent
    """,
    "TransactionMetadataIT": """
        transactionMetadata restartInTheMiddleOfTxAfterSnapshot restartInTheMiddleOfTxAfterCompletedTx
        restartInTheMiddleOfTx
    """,
    "SpecialCharsInNamesIT": """
        shouldParseWhitespaceChars shouldParseSpecialChars shouldHandleSpecialCharactersInDatabaseNames
    """,
    "CaseSensitivenessIT": """
        caseInsensitiveDatabase caseSensitiveDatabase
    """,
    "SqlServerBinaryModeIT": """
        shouldReceiveRawBinary shouldReceiveHexBinary shouldReceiveBase64Binary shouldReceiveBase64UrlSafeBinary
    """,
    "SQLServerNumericColumnIT": """
        decimalModeConfigString decimalModeConfigDouble decimalModeConfigPrecise
    """,
    "TablesWithoutPrimaryKeyIT": """
        shouldProcessFromSnapshot shouldProcessFromStreaming
    """,
    "TablesWithUniqueIndexOnlyIT": """
        shouldProcessFromSnapshot shouldProcessFromStreaming
    """,
    "SqlServerSchemaNameAdjustmentModeIT": """
        shouldAdjustNamesForAvro shouldNotAdjustNames
    """,
    "EventProcessingFailureHandlingIT": """
        warn ignore fail
    """,
    "SqlServerSkipMessagesWithNoUpdateConfigIT": """
        shouldSkipEventsWithNoChangeInIncludedColumnsWhenSkipEnabled
        shouldSkipEventsWithNoChangeInIncludedColumnsWhenSkipEnabledWithExcludeConfig
        shouldNotSkipEventsWithNoChangeInIncludedColumnsWhenSkipDisabled
    """,
    "SqlServerConnectorMultiPartitionModeIT": """
        snapshotAndStreaming
    """,
    "SourceInfoTest": """
        versionIsPresent connectorIsPresent serverNameIsPresent changeLsnIsPresent commitLsnIsPresent
        eventSerialNoIsPresent snapshotIsPresent timestampIsPresent tableIdIsPresent schemaIsCorrect
    """,
    "SqlServerConnectorConfigTest": """
        nullDatabaseNames emptyDatabaseNames nonEmptyDatabaseNames hostnameAndDefaultPortConnectionUrl
        hostnameAndPortConnectionUrl hostnameAndInstanceConnectionUrl hostnameAndInstanceAndPortConnectionUrl
        validQueryFetchSizeDefaults validQueryFetchSizeAvailable
    """,
    "SqlServerConnectorTest": """
        testValidateUnableToConnectNoThrow shouldReturnConfigurationDefinition
    """,
    "SignalsIT": """
        jmxSignals
    """,
    "OpenLineageIT": """
        shouldProduceMultipleOpenLineageJobRunningEvent
    """,
    "NotificationsIT": """
        completeReadingFromACaptureInstanceNotificationEmitted notificationCorrectlySentOnItsTopic
        notificationNotSentIfNoChannelIsConfigured
        reportErrorWhenSinkChannelIsEnabledAndNoTopicConfigurationProvided notificationCorrectlySentOnJmx
        emittingDebeziumNotificationWillGenerateAJmxNotification
        sinkNotificationWillCorrectlySaveOffsetAfterSnapshot
    """,
    "SqlServerMetricsIT": """
        testSnapshotAndStreamingMetrics testSnapshotAndStreamingWithCustomMetrics testLifecycle
        testSnapshotOnlyMetrics testStreamingOnlyMetrics testAdvancedStreamingMetrics
        testPauseAndResumeAdvancedStreamingMetrics
    """,
    "ByLogicalTableRouterTest": """
        testBrokenKeyReplacementConfigurationNullValue testBrokenKeyReplacementConfigurationEmptyValue
        testKeyReplacementWorkingConfigurationWithAvroSchemaNameAdjustment
        testKeyReplacementWorkingConfigurationWithNoSchemaNameAdjustment testHeartbeatMessageTopicReplacementTopic
        testBrokenTopicReplacementConfigurationNullValue testBrokenTopicReplacementConfigurationEmptyValue
        testKeyNullValue testNamespaceReplacementWithoutKeyChange shouldHandleSchemaChangeEvent
    """,
    "DatatypesFromStreamingIT": """
        intTypes fpTypes stringTypes dateTimeTypes dateTimeTypesAsConnect otherTypes uniqueIdentifierTypes
    """,
    "AbstractReselectProcessorTest": """
        testNoColumnsReselectedWhenNullAndUnavailableColumnsAreDisabled testNoColumnsReselectedWhenNotNullSnapshot
        testNoColumnsReselectedWhenNotNullStreaming testColumnsReselectedWhenValueIsNullSnapshot
        testColumnsReselectedWhenValueIsNullStreaming shouldThrowAnExceptionWhenConfigurationAreNotProvided
    """,
    "SpecialTableTypesIT": """
        shouldIgnoreTemporalTable
    """,
    "SqlServerMaxColumnTest": """
        shouldIdentifyMaxColumnFromColumnModel
    """,
    "SnapshotIT": """
        takeSnapshotFromTableWithReservedName takeSchemaOnlySnapshotAndSendHeartbeat
        shouldSendHeartbeatsWhenNoRecordsAreSent shouldOutputRecordsInCloudEventsFormat
    """,
}
TESTS = frozenset(f"{group}.{name}" for group, names in _NAMES.items() for name in names.split())
"""All tests, `class.method`."""
_SHOWN: Mapping[str, str] = {
    "stream/create and delete/fetch 3": """
        SqlServerConnectorIT.createAndDeleteWithDataQueryModeFunctionWithFetchThreshold
    """,
    "stream/create and delete/direct": """
        SqlServerConnectorIT.createAndDeleteWithDataQueryModeDirectWithoutFetchThreshold
    """,
    "stream/keys that move/direct": "SqlServerConnectorIT.createAndDeleteWithDataQueryModeDirectWithFetchThreshold",
    "stream/create and delete/no tombstones": "SqlServerConnectorIT.deleteWithoutTombstone",
    "stream/create and delete/schemas": "SqlServerConnectorIT.streamChangesWhileStopped",
    "filters/dbo.f_a/include lists": """
        SqlServerConnectorIT.testIncludeTable SqlServerConnectorIT.testColumnIncludeList
    """,
    "filters/other.f_b/include lists": "SqlServerConnectorIT.testTableIncludeList",
    "filters/dbo.f_a/exclude lists": "SqlServerConnectorIT.testTableExcludeList",
    "stream/captured columns/schemas": "SqlServerConnectorIT.excludeColumnWhenCaptureInstanceExcludesColumns",
    "stream/captured columns/direct": """
        SqlServerConnectorIT.includeColumnsWhenCaptureInstanceExcludesColumnInMiddleOfTable
    """,
    "stream/captured columns/source types": """
        SqlServerConnectorIT.excludeMultipleColumnsWhenCaptureInstanceExcludesSingleColumn
    """,
    "stream/captured columns/no unchanged": """
        SqlServerConnectorIT.includeMultipleColumnsWhenCaptureInstanceExcludesSingleColumn
    """,
    "end_to_end/test_instances.py::test_a_second_instance_takes_over_and_the_first_may_be_dropped": """
        SqlServerConnectorIT.whenMultipleCaptureInstancesExcludesColumnsExpectLatestCDCTableUtilized
    """,
    "end_to_end/test_follow_start.py::test_tables_may_come_after_the_start": """
        SqlServerConnectorIT.testEmptySchemaWarningAfterApplyingFilters
    """,
    "stream/update/own keys": "SqlServerConnectorIT.shouldRewriteIdentityKey",
    "filters/dbo.f_a/masks": "SqlServerConnectorIT.useShortTableNamesForColumnMapper",
    "filters/dbo.f_a/masks, long names": "SqlServerConnectorIT.useLongTableNamesForColumnMapper",
    "stream/key update/own keys": "SqlServerConnectorIT.useLongTableNamesForKeyMapper",
    "stream/no key/own keys": "SqlServerConnectorIT.useShortTableNamesForKeyMapper",
    "stream/another schema/source data types": "SqlServerConnectorIT.shouldPropagateSourceTypeByDatatype",
    "stream/update/fetch 3": "SqlServerConnectorIT.testMaxLsnSelectStatementWithoutLimit",
    "stream/update/direct": "SqlServerConnectorIT.testMaxLsnSelectStatementWithLimit",
    "stream/create and delete/skipped u,d": """
        SqlServerConnectorIT.shouldEmitNoEventsForSkippedUpdateAndDeleteOperations
    """,
    "databases/both of database 1/two databases": """
        SqlServerConnectorIT.shouldIncludeDatabaseNameIntoTopicAndSchemaNamesInMultiPartitionMode
        SpecialCharsInNamesIT.shouldHandleSpecialCharactersInDatabaseNames
    """,
    "moved/renamed table/live": "SqlServerConnectorIT.shouldStreamToNewTableAfterRestart",
    "evolution/add column/live": """
        SqlServerChangeTableSetIT.addColumnToTableEndOfBatchWithLsnLimit SchemaHistoryTopicIT.streamingSchemaChanges
    """,
    "stream/defaults/schemas": "SqlServerConnectionIT.shouldProperlyGetDefaultColumnNullValues",
    "evolution/change type/live": "SchemaHistoryTopicIT.schemaChangeAfterSnapshot",
    "structure/captured table/all tables": "SchemaHistoryTopicIT.shouldContainPartitionInSchemaChangeEvent",
    "stream/odd names/schemas": """
        SpecialCharsInNamesIT.shouldParseWhitespaceChars SqlServerSchemaNameAdjustmentModeIT.shouldNotAdjustNames
    """,
    "types/binary(10)/isostring": "SqlServerBinaryModeIT.shouldReceiveHexBinary",
    "types/binary(10)/microseconds": "SqlServerBinaryModeIT.shouldReceiveBase64Binary",
    "types/binary(10)/connect": "SqlServerBinaryModeIT.shouldReceiveBase64UrlSafeBinary",
    "stream/no key/schemas": "TablesWithoutPrimaryKeyIT.shouldProcessFromStreaming",
    "stream/unique index/schemas": "TablesWithUniqueIndexOnlyIT.shouldProcessFromSnapshot",
    "stream/odd names/avro": "SqlServerSchemaNameAdjustmentModeIT.shouldAdjustNamesForAvro",
    "conformance/test_failures.py::test_debezium_ends_at_the_change": "EventProcessingFailureHandlingIT.fail",
    "unchanged/columns that nobody wants/excluded": """
        SqlServerSkipMessagesWithNoUpdateConfigIT.shouldSkipEventsWithNoChangeInIncludedColumnsWhenSkipEnabledWithExcludeConfig
    """,
    "unchanged/columns that nobody wants/kept": """
        SqlServerSkipMessagesWithNoUpdateConfigIT.shouldNotSkipEventsWithNoChangeInIncludedColumnsWhenSkipDisabled
    """,
    "naming/tables of one topic/regex of the field": """
        ByLogicalTableRouterTest.testKeyReplacementWorkingConfigurationWithAvroSchemaNameAdjustment
    """,
    "naming/tables of one topic/regex": "ByLogicalTableRouterTest.testKeyNullValue",
    "naming/tables of one topic/regex without a field": """
        ByLogicalTableRouterTest.testNamespaceReplacementWithoutKeyChange
    """,
    "naming/table that does not match/regex": "ByLogicalTableRouterTest.shouldHandleSchemaChangeEvent",
    "types/datetime2(7)/connect": "DatatypesFromStreamingIT.dateTimeTypesAsConnect",
    "reselect/null while streaming/neither": """
        AbstractReselectProcessorTest.testNoColumnsReselectedWhenNullAndUnavailableColumnsAreDisabled
    """,
    "reselect/no null/nulls": "AbstractReselectProcessorTest.testNoColumnsReselectedWhenNotNullSnapshot",
    "reselect/null while streaming/nulls": """
        AbstractReselectProcessorTest.testColumnsReselectedWhenValueIsNullSnapshot
    """,
    "databases/both of database 0/heartbeats": "SnapshotIT.takeSchemaOnlySnapshotAndSendHeartbeat",
    "end_to_end/test_follow_heartbeats.py::test_heartbeats_come_at_their_interval_while_the_source_is_idle": """
        SnapshotIT.shouldSendHeartbeatsWhenNoRecordsAreSent
    """,
    "conformance/test_notifications.py::test_both_connectors_write_the_same_notifications_of_an_initial_snapshot": """
        NotificationsIT.notificationCorrectlySentOnItsTopic
    """,
    "end_to_end/test_instances.py::test_an_instance_that_is_read_to_its_end_is_told_once": """
        NotificationsIT.completeReadingFromACaptureInstanceNotificationEmitted
    """,
    "dagster/test_sensor.py::test_the_heartbeat_statement_runs_when_its_interval_has_passed": """
        SqlServerConnectorIT.shouldExecuteHeartbeatActionQuery
    """,
    "end_to_end/test_losses.py::test_cleanup_that_overtakes_capture_is_data_loss_and_a_snapshot_repairs_it": """
        SqlServerConnectorIT.shouldDetectPurgedHistory
    """,
    "end_to_end/test_take_over.py::test_two_databases_move_over_with_the_offsets_of_kafka_connect": """
        SqlServerConnectorIT.shouldIgnoreNullOffsetsWhenRecoveringHistory
    """,
    "spark/test_loss.py::test_when_needed_repairs_a_loss_automatically_and_leaves_the_gap_open": """
        SqlServerConnectorIT.shouldProcessPurgedLogsWhenDownAndSnapshotNeeded
    """,
    "filters/dbo.f_c/exclude lists": "SqlServerConnectorIT.shouldHandleInvalidColumnFilter",
}
SHOWN: Mapping[str, str] = {name: place for place, names in _SHOWN.items() for name in names.split()}
"""Tests whose ideas are in a reading of a workload (`course/script/reading`), or in a test of another folder."""
_REASONS: Mapping[str, str] = {
    "Debezium is stopped at a record inside a transaction: `make debezium-its-follow` plays it with this connector": """
        SqlServerConnectorIT.updatePrimaryKeyWithRestartInMiddle
        SqlServerConnectorIT.restartInTheMiddleOfTxAfterSnapshot
        SqlServerConnectorIT.restartInTheMiddleOfTxAfterCompletedTx
        TransactionMetadataIT.restartInTheMiddleOfTxAfterSnapshot
        TransactionMetadataIT.restartInTheMiddleOfTxAfterCompletedTx TransactionMetadataIT.restartInTheMiddleOfTx
    """,
    "is about the connection, the login or the driver, not about records: `make debezium-its-follow` plays it": """
        SqlServerConnectorIT.readOnlyApplicationIntent SqlServerConnectorIT.timestampAndTimezone
        SqlServerConnectorIT.shouldReportConfigurationErrorForUserNotHavingAccessToCDCTableInInitialMode
        SqlServerConnectorIT.shouldNotReportConfigurationErrorForUserNotHavingAccessToCDCTableInInitialOnlyMode
        SqlServerConnectorIT.shouldPropagateDatabaseDriverProperties
        SqlServerConnectorIT.shouldFailWhenUserDoesNotHaveAccessToDatabase
        SqlServerConnectorIT.shouldStopRetriableRestartsAtConfiguredMaximumDuringSnapshot
        SqlServerConnectorIT.shouldStopRetriableRestartsAtConfiguredMaximumDuringStreaming
        SqlServerConnectionIT.shouldEnableCdcForDatabase
        SqlServerConnectionIT.shouldEnableCdcWithWrapperFunctionsForTable
        SqlServerConnectionIT.testAccessToCDCTableBasedOnUserRoleAccess
        SqlServerConnectionIT.shouldConnectToASingleDatabase
        SqlServerConnectionIT.shouldNotConnectToAnyOfMultipleDatabase
        SqlServerConnectionIT.whenQueryTakesMoreThenConfiguredQueryTimeoutAnExceptionMustBeThrown
    """,
    "is about snapshot modes: tests of snapshots show it": """
        SqlServerConnectorIT.shouldNotStreamWhenUsingSnapshotModeInitialOnly
        SqlServerConnectorIT.shouldNotUseOffsetWhenSnapshotIsAlways
        SqlServerConnectorIT.shouldCreateSnapshotSchemaOnlyRecovery
        SqlServerConnectorIT.shouldAllowForCustomSnapshot
    """,
    "is about guardrails and configuration, which have no records: `unit/config` and `make debezium-its-follow`": """
        SqlServerConnectorIT.shouldValidateGuardrailLimitsExceedsMaximumTables
        SqlServerConnectorIT.shouldValidateGuardrailLimitsExceedsMaximumTablesAndFailConnector
        SqlServerConnectorIT.shouldStartSuccessfullyWithinGuardrailLimits
        SqlServerConnectorConfigTest.nullDatabaseNames SqlServerConnectorConfigTest.emptyDatabaseNames
        SqlServerConnectorConfigTest.nonEmptyDatabaseNames
        SqlServerConnectorConfigTest.hostnameAndDefaultPortConnectionUrl
        SqlServerConnectorConfigTest.hostnameAndPortConnectionUrl
        SqlServerConnectorConfigTest.hostnameAndInstanceConnectionUrl
        SqlServerConnectorConfigTest.hostnameAndInstanceAndPortConnectionUrl
        SqlServerConnectorConfigTest.validQueryFetchSizeDefaults
        SqlServerConnectorConfigTest.validQueryFetchSizeAvailable
        SqlServerConnectorTest.testValidateUnableToConnectNoThrow
        SqlServerConnectorTest.shouldReturnConfigurationDefinition
        AbstractReselectProcessorTest.shouldThrowAnExceptionWhenConfigurationAreNotProvided
        ByLogicalTableRouterTest.testBrokenKeyReplacementConfigurationEmptyValue
        ByLogicalTableRouterTest.testBrokenTopicReplacementConfigurationNullValue
        ByLogicalTableRouterTest.testBrokenTopicReplacementConfigurationEmptyValue
    """,
    "is about tasks of Kafka Connect: one process reads all databases": """
        SqlServerConnectorIT.shouldReturnSingleTaskConfig
        SqlServerConnectorIT.shouldHandleMaxTasksGreaterThanNumberOfDatabaseNames
        SqlServerConnectorIT.shouldReturnTwoTaskConfigs
    """,
    "every workload compares each field of the source block and its schema": """
        SourceInfoTest.versionIsPresent SourceInfoTest.connectorIsPresent SourceInfoTest.serverNameIsPresent
        SourceInfoTest.changeLsnIsPresent SourceInfoTest.commitLsnIsPresent SourceInfoTest.eventSerialNoIsPresent
        SourceInfoTest.snapshotIsPresent SourceInfoTest.timestampIsPresent SourceInfoTest.tableIdIsPresent
        SourceInfoTest.schemaIsCorrect
    """,
    "is disabled in Debezium: it does not pass": """
        SqlServerConnectorIT.whenCaptureInstanceExcludesColumnsAndColumnsRenamedExpectNoErrors
    """,
    "is about JMX: `end_to_end/test_follow_metrics.py` and `test_follow_notifications.py`": """
        SqlServerMetricsIT.testSnapshotAndStreamingMetrics
        SqlServerMetricsIT.testSnapshotAndStreamingWithCustomMetrics SqlServerMetricsIT.testLifecycle
        SqlServerMetricsIT.testSnapshotOnlyMetrics SqlServerMetricsIT.testStreamingOnlyMetrics
        SqlServerMetricsIT.testAdvancedStreamingMetrics
        SqlServerMetricsIT.testPauseAndResumeAdvancedStreamingMetrics SignalsIT.jmxSignals
        NotificationsIT.notificationNotSentIfNoChannelIsConfigured
        NotificationsIT.reportErrorWhenSinkChannelIsEnabledAndNoTopicConfigurationProvided
        NotificationsIT.notificationCorrectlySentOnJmx
        NotificationsIT.emittingDebeziumNotificationWillGenerateAJmxNotification
        NotificationsIT.sinkNotificationWillCorrectlySaveOffsetAfterSnapshot
    """,
    "is about events of OpenLineage, not records: `unit/run/test_lineage.py` and `end_to_end/test_lineage.py`": """
        OpenLineageIT.shouldProduceMultipleOpenLineageJobRunningEvent
    """,
    "the router is a transform; the naming strategies leave heartbeats where they are": """
        ByLogicalTableRouterTest.testHeartbeatMessageTopicReplacementTopic
    """,
}
REASONS: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Tests that have no workload, and why."""
