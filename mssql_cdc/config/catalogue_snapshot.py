"""The property table, part 2: snapshots, signals and notifications."""

from __future__ import annotations

from mssql_cdc.config.property import Property, Status

_BASED = "snapshot.mode.configuration.based."

SNAPSHOT = (
    Property(
        name="snapshot.mode",
        kind="choice",
        default="initial",
        choices=(
            "always",
            "initial",
            "initial_only",
            "no_data",
            "recovery",
            "when_needed",
            "when_needed_no_data",
            "configuration_based",
            "custom",
        ),
        refused=("custom",),
        old_values=(
            ("schema_only", "no_data"),
            ("initial_schema_only", "no_data"),
            ("schema_only_recovery", "recovery"),
        ),
        features=("SNP-02", "SNP-04", "SNP-08"),
        text="When rows and structure are read at the start. `schema_only` is an older name of `no_data`.",
    ),
    *(
        Property(name=_BASED + name, kind="bool", default="false", features=("SNP-08",), text=text)
        for name, text in (
            ("snapshot.data", "Mode `configuration_based`: read rows."),
            ("snapshot.schema", "Mode `configuration_based`: read the structure."),
            ("start.stream", "Mode `configuration_based`: stream afterwards."),
            ("snapshot.on.schema.error", "Mode `configuration_based`: read the structure again when it is lost."),
            ("snapshot.on.data.error", "Mode `configuration_based`: snapshot again when the position is gone."),
        )
    ),
    *(
        Property(
            name=f"snapshot.{part}.custom.name",
            kind="text",
            status=Status.REFUSED,
            features=(feature,),
            text=f"Name of a Java implementation of the {what}.",
        )
        for part, feature, what in (
            ("mode", "SNP-09", "snapshotter"),
            ("locking.mode", "SPI-03", "snapshot lock"),
            ("query.mode", "SPI-02", "snapshot query"),
        )
    ),
    Property(
        name="snapshot.locking.mode",
        kind="choice",
        default="exclusive",
        choices=("exclusive", "none", "custom"),
        refused=("custom",),
        features=("SNP-16",),
        text="Whether tables are locked while a snapshot begins.",
    ),
    Property(
        name="snapshot.query.mode",
        kind="choice",
        default="select_all",
        choices=("select_all", "custom"),
        refused=("custom",),
        features=("SNP-24",),
        text="How rows are selected.",
    ),
    Property(
        name="snapshot.isolation.mode",
        kind="choice",
        default="repeatable_read",
        choices=("read_uncommitted", "read_committed", "repeatable_read", "snapshot", "exclusive"),
        features=("SNP-14", "SNP-15"),
        text="Isolation of a snapshot's reads; a read-only connection makes it `snapshot`.",
    ),
    Property(
        name="snapshot.include.collection.list",
        kind="regexes",
        features=("SNP-25",),
        text="Captured tables whose rows a snapshot reads, as `db.schema.table` (or `schema.table`). Default: all.",
    ),
    Property(
        name="snapshot.lock.timeout.ms",
        kind="int",
        default="10000",
        minimum=-1,
        features=("SNP-17",),
        text="Longest wait for a table lock; 0 = none, -1 = for ever.",
    ),
    Property(
        name="snapshot.delay.ms",
        kind="int",
        default="0",
        minimum=0,
        status=Status.PLANNED,
        features=("SNP-30",),
        text="Wait before a snapshot.",
    ),
    Property(
        name="snapshot.fetch.size",
        kind="int",
        default="2000",
        minimum=1,
        features=("SNP-31",),
        text="Rows per fetch in snapshots.",
    ),
    Property(
        name="snapshot.max.threads",
        kind="int",
        default="1",
        minimum=1,
        features=("SNP-29",),
        text="Largest number of snapshot chunks read side by side.",
    ),
    Property(
        name="legacy.snapshot.max.threads",
        kind="bool",
        default="false",
        status=Status.ACCEPTED,
        features=("SNP-29",),
        text="One thread per table as before 3.7; chunks are parallel here.",
    ),
    Property(
        name="snapshot.select.statement.overrides",
        kind="list",
        features=("SNP-23",),
        text="Tables (`schema.table` or `db.schema.table`) with a SELECT of their own in snapshots.",
    ),
    Property(
        name="snapshot.select.statement.overrides.<table>",
        kind="text",
        features=("SNP-23",),
        text="The SELECT statement of one table; every `*` stands for the captured columns.",
    ),
    Property(
        name="snapshot.tables.order.by.row.count",
        kind="choice",
        default="disabled",
        choices=("disabled", "ascending", "descending"),
        status=Status.ACCEPTED,
        features=("SNP-26",),
        text="No effect for SQL Server.",
    ),
    Property(
        name="snapshot.scan.all.columns.force",
        kind="bool",
        default="false",
        status=Status.PLANNED,
        features=("SNP-22",),
        text="Scan all columns even where some are filtered.",
    ),
    Property(
        name="incremental.snapshot.chunk.size",
        kind="int",
        default="1024",
        minimum=1,
        features=("INC-06",),
        text="Rows per chunk of an incremental snapshot.",
    ),
    Property(
        name="incremental.snapshot.allow.schema.changes",
        kind="bool",
        default="false",
        status=Status.PLANNED,
        features=("EVO-10", "INC-18"),
        text="Tolerate ALTER TABLE while an incremental snapshot runs.",
    ),
    Property(
        name="incremental.snapshot.watermarking.strategy",
        kind="choice",
        default="insert_insert",
        choices=("insert_insert", "insert_delete"),
        status=Status.ACCEPTED,
        features=("INC-08",),
        text="Watermarks are log positions here; no watermark rows are written.",
    ),
    Property(
        name="incremental.snapshot.option.recompile",
        kind="bool",
        default="false",
        features=("INC-17",),
        text="Add OPTION (RECOMPILE) to chunk statements.",
    ),
)

SIGNALS = (
    Property(
        name="signal.data.collection",
        kind="list",
        features=("SIG-02",),
        text="Signal table as `db.schema.table`; several (one per database) are separated by commas.",
    ),
    Property(
        name="signal.enabled.channels",
        kind="choices",
        default="source",
        choices=("source", "kafka", "file", "jmx"),
        planned=("kafka", "file", "jmx"),
        features=("SIG-01",),
        text="Where signals come from; the launchpad of the `signals` asset is always open.",
    ),
    Property(
        name="signal.poll.interval.ms",
        kind="int",
        default="5000",
        minimum=1,
        status=Status.ACCEPTED,
        features=("SIG-01",),
        text="Signals are looked for by the sensor.",
    ),
    Property(
        name="signal.file",
        kind="text",
        default="file-signals.txt",
        status=Status.PLANNED,
        features=("SIG-06",),
        text="File of the `file` channel.",
    ),
    *(
        Property(name=name, kind="text", default=default, status=Status.ACCEPTED, features=("SIG-05",), text=text)
        for name, default, text in (
            ("signal.kafka.topic", None, "Signal topic (default `<prefix>-signal`)."),
            ("signal.kafka.groupId", "kafka-signal", "Consumer group of the signal topic."),
            ("signal.kafka.bootstrap.servers", None, "Brokers of the signal topic."),
            ("signal.kafka.poll.timeout.ms", "100", "Poll wait of the signal topic."),
            ("signal.consumer.*", None, "Kafka consumer setting of the signal channel."),
        )
    ),
    Property(
        name="notification.enabled.channels",
        kind="choices",
        default="",
        choices=("sink", "log", "jmx"),
        planned=("sink", "jmx"),
        features=("NOT-01",),
        text="Channels of notifications; the `notifications` asset always has them all.",
    ),
    Property(
        name="notification.sink.topic.name",
        kind="text",
        status=Status.PLANNED,
        features=("NOT-01",),
        text="Topic of notification records; required with the channel `sink`.",
    ),
)
