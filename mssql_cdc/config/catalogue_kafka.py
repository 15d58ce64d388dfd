"""The property table, part 5: what only Kafka, Kafka Connect or the Java process gives a meaning to.

All of it is accepted, so that a connector's JSON works unchanged; what is set gets one line of notice.
"""

from __future__ import annotations

from mssql_cdc.config.property import Kind, Property, Status

_CONNECT: tuple[tuple[str, Kind, str | None, str], ...] = (
    ("connector.class", "text", None, "Java class of the connector."),
    ("tasks.max", "int", "1", "Number of Kafka Connect tasks; every database has its own assets here."),
    ("transforms", "list", None, "Single message transforms; records are rendered without them."),
    ("transforms.*", "text", None, "Setting of a transform."),
    ("predicates", "list", None, "Predicates of transforms."),
    ("predicates.*", "text", None, "Setting of a predicate."),
    ("converters", "list", None, "Java value converters; columns keep their lossless types."),
    ("post.processors", "list", None, "Java post-processors."),
    ("key.converter", "text", None, "Kafka Connect converter of keys."),
    ("key.converter.*", "text", None, "Its settings."),
    ("value.converter", "text", None, "Kafka Connect converter of values."),
    ("value.converter.*", "text", None, "Its settings."),
    ("header.converter", "text", None, "Kafka Connect converter of headers."),
    ("header.converter.*", "text", None, "Its settings."),
    ("topic.creation.*", "text", None, "Creation of topics by Kafka Connect (TOP-10)."),
    ("topic.cache.size", "int", "10000", "Cache of topic names."),
    ("config.action.reload", "text", "restart", "Reaction of Kafka Connect to changed secrets."),
    ("config.providers", "list", None, "Kafka's configuration providers; `${env:…}` and `${file:…}` always work."),
    ("config.providers.*", "text", None, "Setting of a configuration provider."),
    ("errors.tolerance", "text", "none", "Kafka Connect's error tolerance."),
    ("errors.retry.*", "text", None, "Kafka Connect's retries of transforms and converters."),
    ("errors.log.*", "text", None, "Kafka Connect's error log."),
    ("errors.deadletterqueue.*", "text", None, "Kafka Connect's dead letter queue."),
    ("exactly.once.support", "text", "requested", "Exactly-once of Kafka Connect; here it is always on (PRE-10)."),
    ("transaction.boundary", "text", "poll", "Producer transactions of Kafka Connect."),
    ("transaction.boundary.*", "text", None, "Producer transactions of Kafka Connect."),
    ("offsets.storage.topic", "text", None, "Offsets topic of the connector."),
    ("offset.*", "text", None, "Offset storage of Debezium's engine and server; positions live in the Delta tables."),
    ("producer.*", "text", None, "Kafka producer setting."),
    ("consumer.*", "text", None, "Kafka consumer setting."),
    ("admin.*", "text", None, "Kafka admin client setting."),
    ("max.queue.size", "int", "8192", "Length of Debezium's queue; there is no queue here (ERR-05)."),
    ("max.queue.size.in.bytes", "int", "0", "Bytes of Debezium's queue (ERR-05)."),
    ("max.batch.size", "int", "2048", "Records per batch of Debezium's queue (ERR-05)."),
    ("executor.shutdown.timeout.ms", "int", "4000", "Grace of Debezium's threads (ERR-07)."),
    ("custom.metric.tags", "text", None, "Tags of JMX beans."),
    ("advanced.metrics.enable", "bool", "false", "Further JMX metrics."),
    ("statistics.metrics.enabled", "bool", "true", "Lag percentiles in JMX (newer than 3.3.1)."),
    ("connection.factory.class", "text", None, "Java class which opens connections."),
    ("change.column.filter.override", "text", None, "Internal of Debezium."),
    ("task.id", "text", None, "Set by Kafka Connect."),
)

_HISTORY: tuple[tuple[str, Kind, str | None, str], ...] = (
    (
        "",
        "text",
        "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        "Java class of the history's store; the history is the Delta table `_schema_history`.",
    ),
    (".kafka.topic", "text", None, "History topic."),
    (".kafka.bootstrap.servers", "text", None, "Brokers of the history topic."),
    (".kafka.recovery.poll.interval.ms", "int", "100", "Poll wait in recovery."),
    (".kafka.recovery.attempts", "int", "100", "Polls without data before recovery fails."),
    (".kafka.query.timeout.ms", "int", "3000", "Time limit of admin requests."),
    (".kafka.create.timeout.ms", "int", "30000", "Time limit of the topic's creation."),
    (".skip.unparseable.ddl", "bool", "false", "No DDL is parsed for SQL Server."),
    (".file.filename", "text", None, "File of the file store."),
    (".memory.optimization", "text", "off", "Memory of the history (newer than 3.3.1)."),
    (".*", "text", None, "Setting of the history's store, its producer or consumer."),
)

KAFKA = tuple(
    Property(name=name, kind=kind, default=default, text=text, status=Status.ACCEPTED)
    for name, kind, default, text in _CONNECT
)

SCHEMA_HISTORY = (
    *(
        Property(
            name="schema.history.internal" + name,
            kind=kind,
            default=default,
            text=text,
            status=Status.ACCEPTED,
            features=("SCH-01", "SCH-04"),
        )
        for name, kind, default, text in _HISTORY
    ),
    Property(
        name="schema.history.internal.store.only.captured.tables.ddl",
        kind="bool",
        default="false",
        features=("SNP-19", "SCH-11"),
        text="Keep the structure of captured tables only.",
    ),
    Property(
        name="schema.history.internal.store.only.captured.databases.ddl",
        kind="bool",
        default="false",
        features=("SCH-11",),
        text="Keep the structure of captured databases and schemas only.",
    ),
)
