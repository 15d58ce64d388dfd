"""Asset and check specs of one database: source tables, change logs, current tables and the database's own assets."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from mssql_cdc.defs.metadata import (
    change_log_columns,
    change_log_lineage,
    current_columns,
    current_lineage,
    static_metadata,
)
from mssql_cdc.defs.records_asset import records_check, records_spec
from mssql_cdc.defs.setup import Setup

CHECK = "captured_faithfully"
LAKE_KINDS = {"deltalake", "pyspark"}
HEARTBEAT = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=5), warn_window=timedelta(minutes=2))
"""The database's heartbeat is one event a minute."""
HOURLY = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=135), warn_window=timedelta(minutes=75))
"""Current tables are reported at least once in every window."""


def source_specs(setup: Setup) -> list[dg.AssetSpec]:
    """Return the SQL Server tables as external assets."""
    return [
        dg.AssetSpec(
            setup.names.source_key(table.table_id),
            group_name=setup.names.source_group,
            kinds={"sqlserver"},
            description=f"Source table {table.table_id}, captured by change data capture.",
            metadata={"dagster/table_name": table.table_id.text},
        )
        for table in setup.tables
    ]


def capture_specs(setup: Setup) -> list[dg.AssetSpec]:
    """Return the assets that the capture step materializes: those of the tables and of the whole database."""
    layout = setup.layout
    specs: list[dg.AssetSpec] = []
    # Without an explicit mapping, Dagster would pair windows with tables by their keys.
    every = dg.AssetDep(setup.snapshots_key, partition_mapping=dg.AllPartitionMapping())
    snapshots = [] if setup.names.has_many_tables else [every]
    for table in setup.tables:
        home, name = layout.home(table.table_id), table.table_id
        log_key = setup.names.log_key(name)
        specs.append(
            dg.AssetSpec(
                log_key,
                deps=[setup.names.source_key(name), *snapshots],
                partitions_def=setup.windows.definition,
                group_name=setup.names.log_group(name),
                kinds=LAKE_KINDS,
                skippable=True,
                description=f"Change log of {name}: one row per change event, appended exactly once.",
                metadata={
                    **static_metadata(f"{name}.changes", home.changes, change_log_columns(table)),
                    "dagster/column_lineage": change_log_lineage(table, setup.names),
                },
            )
        )
        if table.key_columns:
            specs.append(
                dg.AssetSpec(
                    setup.names.current_key(name),
                    deps=[log_key],
                    group_name=setup.names.current_group(name),
                    kinds=LAKE_KINDS,
                    skippable=True,
                    freshness_policy=_freshness(setup),
                    description=f"Current rows of {name}, merged from its change log.",
                    metadata={
                        **static_metadata(f"{name}.current", home.current, current_columns(table)),
                        "dagster/column_lineage": current_lineage(table, setup.names),
                    },
                )
            )
    specs.append(_heartbeat_spec(setup))
    if setup.has_transactions:
        specs.append(_transactions_spec(setup))
    target = setup.connector.delta.records_output_of(setup.database)
    specs = specs if target is None else [*specs, records_spec(setup, target)]
    return [with_notices(setup, one) for one in specs]


def _heartbeat_spec(setup: Setup) -> dg.AssetSpec:
    """Return the asset that shows that capture is running, whether anything changes or not."""
    return dg.AssetSpec(
        setup.heartbeat_key,
        freshness_policy=HEARTBEAT if setup.connector.dagster.max_run_seconds and setup.streams else None,
        group_name=setup.names.operations_group,
        kinds={"sqlserver"},
        skippable=True,
        description="Shows that capture is running: reported once a minute while a run reads the source, even if "
        "nothing changes, but not while the database is late. Materialize it to check once.",
    )


def _transactions_spec(setup: Setup) -> dg.AssetSpec:
    """Return the asset that shows which transactions were written, and only those."""
    return dg.AssetSpec(
        setup.transactions_key,
        deps=[setup.names.log_key(table.table_id) for table in setup.tables],
        group_name=setup.names.group,
        kinds={"deltalake"},
        skippable=True,
        description="Transactions of complete cuts (provide.transaction.metadata): a BEGIN and an END row each, with "
        "event counts per table. Materialize it alone to write what is missing.",
        metadata={"dagster/uri": setup.layout.own("transactions")},
    )


def snapshots_spec(setup: Setup) -> dg.AssetSpec:
    """Return the asset whose partitions are the tables: materializing one takes a blocking snapshot of it."""
    made = dg.AssetSpec(
        setup.snapshots_key,
        deps=[setup.names.source_key(table.table_id) for table in setup.tables],
        partitions_def=dg.StaticPartitionsDefinition(sorted(setup.snapshot_keys)),
        group_name=setup.names.operations_group,
        kinds=LAKE_KINDS,
        skippable=True,
        description="Blocking snapshots: materialize a table's partition to read the whole table again. The other "
        "tables keep streaming. The initial snapshot materializes all partitions.",
        metadata={"dagster/uri": setup.layout.own("snapshots")},
    )
    return with_notices(setup, made)


def _freshness(setup: Setup) -> dg.FreshnessPolicy:
    """Return the policy of current tables, which are reported at least once in every window."""
    length = setup.windows.length
    if length <= timedelta(hours=1):
        return HOURLY
    return dg.FreshnessPolicy.time_window(fail_window=2 * length, warn_window=length + timedelta(hours=1))


def event_specs(setup: Setup) -> list[dg.AssetSpec]:
    """Return `schema_history` and `notifications`, which events materialize when something happens, never a run."""
    layout = setup.layout
    texts = {
        "schema_history": "Every schema version of the captured tables; required to read old rows.",
        "notifications": "Debezium's notifications: started, progressing and completed snapshots.",
    }
    specs = [
        dg.AssetSpec(
            setup.names.extra_key(name),
            group_name=setup.names.group,
            kinds={"deltalake"},
            description=text,
            metadata={"dagster/uri": layout.own(name)},
        )
        for name, text in texts.items()
    ]
    return [with_notices(setup, one) for one in specs]


def with_notices(setup: Setup, spec: dg.AssetSpec) -> dg.AssetSpec:
    """The asset with the properties that have no effect in its metadata, if there are any."""
    lines = [setup.connector.redact(line) for line in setup.connector.notices]
    return (
        spec.merge_attributes(metadata={"mssql_cdc/notices": dg.MetadataValue.text("\n".join(lines))})
        if lines
        else spec
    )


def check_specs(setup: Setup) -> list[dg.AssetCheckSpec]:
    """Return one check per change log, evaluated inside the capture step, and the check of the output of records."""
    output = [records_check(setup)] if setup.connector.delta.records_output else []
    return output + [
        dg.AssetCheckSpec(
            CHECK,
            asset=setup.names.log_key(table.table_id),
            description="Every batch meets the contract, positions are continuous, and schemas are equal. A "
            "warning: the table is late. An error: changes were lost, or the lake differs from the source.",
        )
        for table in setup.tables
    ]
