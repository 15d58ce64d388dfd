"""Properties without a meaning here: those of Kafka, Kafka Connect and Java, and those that Debezium ignores as well.

They are accepted so that a connector's JSON works unchanged; one notice line lists those that are set. Their values are
checked and then dropped: `Connector` does not have them. With those that change the records that consumers receive, the
rendering of records is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from mssql_cdc.config.property import Effect, GivenProperty, Group, prop, section

Names = tuple[str, ...]
Family = tuple[GivenProperty, ...]

_kafka = partial(prop, effect=Effect.INERT)
_shape = partial(prop, effect=Effect.NO_RECORDS)
_lineage = partial(prop, effect=Effect.INERT, group=Group.LINEAGE, features="OL-02")
_history = partial(prop, effect=Effect.INERT, group=Group.HISTORY, features="SCH-01 SCH-04")
_record = partial(prop, effect=Effect.INERT, group=Group.RECORD)
_snapshot = partial(prop, effect=Effect.INERT, group=Group.SNAPSHOT)
_stream = partial(prop, effect=Effect.INERT, group=Group.STREAM)

_HISTORY = "schema.history.internal"
_HISTORY_CLASS = "io.debezium.storage.kafka.history.KafkaSchemaHistory"


@section(Group.KAFKA)
class InertSettings:
    """One field for each property; nothing reads them."""

    # Kafka Connect
    tasks_max: int = _kafka("tasks.max", 1)
    """Limits Kafka Connect's tasks. Here each database has its own assets."""
    tasks_max_enforce: bool = _kafka("tasks.max.enforce", True)
    """Makes Kafka Connect refuse more tasks than `tasks.max`."""
    plugin_version: str | None = _kafka("connector.plugin.version", None)
    """Selects the version of the connector's plugin that Kafka Connect loads."""
    transforms: Names = _shape("transforms", ())
    """Lists single message transforms, which change records."""
    transforms_settings: Family = _kafka("transforms.*", ())
    """Sets an option of a transform."""
    predicates: Names = _kafka("predicates", ())
    """Lists predicates of transforms."""
    predicates_settings: Family = _kafka("predicates.*", ())
    """Sets an option of a predicate."""
    key_converter_settings: Family = _kafka("key.converter.*", ())
    """Sets an option of the key converter."""
    value_converter_settings: Family = _kafka("value.converter.*", ())
    """Sets an option of the value converter."""
    cloud_events_name: str | None = _kafka("value.converter.schema.cloudevents.name", None, features="EVT-26")
    """Names the schema of CloudEvents, which only Avro shows."""
    cloud_events_adjustment: str = _kafka("value.converter.schema.name.adjustment.mode", "avro", features="EVT-26")
    """Adjusts the name of the schema of CloudEvents, which only Avro shows."""
    header_converter_settings: Family = _kafka("header.converter.*", ())
    """Sets an option of the header converter."""
    topic_creation: Family = _kafka("topic.creation.*", ())
    """Tells Kafka Connect how to create topics (TOP-10)."""
    topic_cache_size: int = _kafka("topic.cache.size", 10_000)
    """Sizes the cache of topic names."""
    config_reload: str = _kafka("config.action.reload", "restart")
    """Tells Kafka Connect how to react to new secrets."""
    config_providers: Names = _kafka("config.providers", ())
    """Lists Kafka's configuration providers. `${env:…}` and `${file:…}` always work."""
    config_providers_settings: Family = _kafka("config.providers.*", ())
    """Sets an option of a provider."""
    errors_tolerance: str = _kafka("errors.tolerance", "none")
    """Sets Kafka Connect's tolerance of errors."""
    errors_retry: Family = _kafka("errors.retry.*", ())
    """Makes Kafka Connect retry transforms and converters."""
    errors_log: Family = _kafka("errors.log.*", ())
    """Makes Kafka Connect log errors."""
    errors_queue: Family = _kafka("errors.deadletterqueue.*", ())
    """Sets up Kafka Connect's dead letter queue."""
    exactly_once: str = _kafka("exactly.once.support", "requested")
    """Requests exactly-once support from Kafka Connect. Here it is always on (PRE-10)."""
    transaction_boundary: str = _kafka("transaction.boundary", "poll")
    """Bounds the producer's transactions."""
    transaction_boundary_settings: Family = _kafka("transaction.boundary.*", ())
    """Bounds transactions by time."""
    offsets_topic: str | None = _kafka("offsets.storage.topic", None)
    """Names the topic of the connector's offsets."""
    offset: Family = _kafka("offset.*", ())
    """Sets up Debezium's offset storage. Positions live in the Delta tables."""
    producer: Family = _kafka("producer.*", ())
    """Sets an option of the Kafka producer."""
    consumer: Family = _kafka("consumer.*", ())
    """Sets an option of the Kafka consumer."""
    admin: Family = _kafka("admin.*", ())
    """Sets an option of the Kafka admin client."""

    # Debezium's process
    queue_bytes: int = _kafka("max.queue.size.in.bytes", 0)
    """Limits the bytes in Debezium's queue (ERR-05)."""
    batch_size: int = _kafka("max.batch.size", 2048)
    """Limits the records that leave Debezium's queue at once (ERR-05)."""
    dispatch_interval_ms: int = _stream("poll.dispatch.interval.ms", 0)
    """Delays Debezium's queue (newer than 3.3.1). There is no queue here."""
    shutdown_timeout_ms: int = _kafka("executor.shutdown.timeout.ms", 4000)
    """Limits the time that Debezium's threads have to stop (ERR-07)."""
    record_processing: Family = _kafka("record.processing.*", ())
    """Sets how Debezium's engine calls its consumer."""
    task_management_timeout_ms: int = _kafka("task.management.timeout.ms", 180_000)
    """Limits the time that Debezium's engine gives tasks to start and stop."""
    metric_tags: str | None = _kafka("custom.metric.tags", None)
    """Adds tags to the names of JMX beans."""
    advanced_metrics: bool = _kafka("advanced.metrics.enable", False)
    """Adds JMX metrics."""
    statistics_metrics: bool = _kafka("statistics.metrics.enabled", True)
    """Adds percentiles of the lag to JMX (newer than 3.3.1)."""
    connection_factory: str | None = _kafka("database.connection.factory.class", None)
    """Names the Java class that opens connections."""
    connection_factory_elsewhere: str | None = _kafka("connection.factory.class", None)
    """Also names that class, as in Debezium's documentation; Debezium reads `database.connection.factory.class`."""
    column_filter: str | None = _kafka("change.column.filter.override", None)
    """Is internal to Debezium."""

    # Schema history
    history_class: str = _history(_HISTORY, _HISTORY_CLASS, older=("database.history",))
    """Names the Java class of the store. Here the history is the table `_schema_history`."""
    history_topic: str | None = _history(f"{_HISTORY}.kafka.topic", None)
    """Names the history topic."""
    history_servers: str | None = _history(f"{_HISTORY}.kafka.bootstrap.servers", None)
    """Names the brokers of the history topic."""
    history_poll_ms: int = _history(f"{_HISTORY}.kafka.recovery.poll.interval.ms", 100)
    """Limits how long one poll waits in recovery."""
    history_attempts: int = _history(f"{_HISTORY}.kafka.recovery.attempts", 100)
    """Limits the polls without data in recovery."""
    history_query_ms: int = _history(f"{_HISTORY}.kafka.query.timeout.ms", 3000)
    """Limits the time of admin requests."""
    history_create_ms: int = _history(f"{_HISTORY}.kafka.create.timeout.ms", 30_000)
    """Limits the time to create the topic."""
    history_skip: bool = _history(f"{_HISTORY}.skip.unparseable.ddl", False)
    """Skips DDL that cannot be parsed. SQL Server's DDL is not parsed."""
    history_file: str | None = _history(f"{_HISTORY}.file.filename", None)
    """Names the file of the file store."""
    history_memory: str = _history(f"{_HISTORY}.memory.optimization", "off")
    """Saves memory in the history (newer than 3.3.1)."""
    history_settings: Family = _history(f"{_HISTORY}.*", (), older=("database.history.*",))
    """Sets an option of the store, its producer or its consumer."""

    # Always, or never, the case here
    scan_all_columns: bool = _snapshot("snapshot.scan.all.columns.force", False, features="SNP-22")
    """Reads the structure of all tables, even if some are filtered out. Here one statement reads all."""
    check_position: bool = _stream("log.position.check.enable", True, features="SNP-12")
    """Checks that the log still has the position. Here the check cannot be turned off."""

    # Without effect on records
    timestamp_mode: Literal["commit", "processing"] = _record("source.timestamp.mode", "commit", features="STR-13")
    """Selects the time in the source block. Debezium has removed the choice: it is always the commit time."""

    # Incremental snapshots
    incremental_schema_changes: bool = _snapshot(
        "incremental.snapshot.allow.schema.changes", False, features="EVO-10 INC-18"
    )
    """Tolerates ALTER TABLE while an incremental snapshot runs. Here it is always tolerated: chunks that were read
    before the structure changed are read again."""

    # OpenLineage
    lineage_datasets: str | None = _lineage("openlineage.integration.dataset.kafka.bootstrap.servers", None)
    """Names the brokers of output topics. Here the output datasets are tables of the lake."""

    # Also without effect in Debezium's SQL Server connector
    replication_slot: Family = _stream("slot.*", ())
    """Belongs to Debezium's PostgreSQL connector."""
    publication: Family = _stream("publication.*", ())
    """Belongs to Debezium's PostgreSQL connector."""
    schema_comments: bool = _record("include.schema.comments", False)
    """Has no effect for SQL Server."""
    source_version: Literal["v1", "v2"] = _record("source.struct.version", "v2")
    """Has no effect in Debezium 3 either."""
    converting_failure: Literal["fail", "warn", "skip"] = _stream("event.converting.failure.handling.mode", "warn")
    """Has no effect for SQL Server."""
    lsn_optimization: bool = _stream("streaming.lsn.optimization", True, features="STR-02")
    """Has no effect in Debezium either."""
    order_by_row_count: Literal["disabled", "ascending", "descending"] = _snapshot(
        "snapshot.tables.order.by.row.count", "disabled", features="SNP-26"
    )
    """Has no effect for SQL Server."""
    legacy_threads: bool = _snapshot("legacy.snapshot.max.threads", False, features="SNP-29")
    """Reads each table in one thread, as before Debezium 3.7. Here chunks are read in parallel."""
