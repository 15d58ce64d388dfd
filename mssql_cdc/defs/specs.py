"""Asset and check specs of one database: source tables, change logs, current tables and the database's own assets."""

from __future__ import annotations

import dagster as dg

from mssql_cdc.defs.metadata import (
    change_log_columns,
    change_log_lineage,
    current_columns,
    current_lineage,
    static_metadata,
)
from mssql_cdc.defs.setup import Setup

CHECK = "captured_faithfully"
LAKE_KINDS = {"deltalake", "pyspark"}


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
    """Return the assets that the capture step materializes: change logs, current tables and transactions."""
    layout = setup.layout
    specs: list[dg.AssetSpec] = []
    for table in setup.tables:
        home, name = layout.home(table.table_id), table.table_id
        log_key = setup.names.log_key(name)
        specs.append(
            dg.AssetSpec(
                log_key,
                deps=[setup.names.source_key(name)],
                partitions_def=setup.partitions,
                group_name=setup.names.group,
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
                    group_name=setup.names.current_group,
                    kinds=LAKE_KINDS,
                    skippable=True,
                    description=f"Current rows of {name}, merged from its change log.",
                    metadata={
                        **static_metadata(f"{name}.current", home.current, current_columns(table)),
                        "dagster/column_lineage": current_lineage(table, setup.names),
                    },
                )
            )
    specs.append(
        dg.AssetSpec(
            setup.transactions_key,
            deps=[setup.names.log_key(table.table_id) for table in setup.tables],
            partitions_def=setup.partitions,
            group_name=setup.names.group,
            kinds=LAKE_KINDS,
            skippable=True,
            description="Transactions of complete cuts (provide.transaction.metadata).",
            metadata={"dagster/uri": layout.own("transactions")},
        )
    )
    return specs


def event_specs(setup: Setup) -> list[dg.AssetSpec]:
    """Return `schema_history` and `notifications`, which events materialize when something happens, never a run."""
    layout = setup.layout
    texts = {
        "schema_history": "Every schema version of the captured tables; required to read old rows.",
        "notifications": "Debezium's notifications: started and completed snapshots, finished capture instances.",
    }
    return [
        dg.AssetSpec(
            setup.names.extra_key(name),
            group_name=setup.names.group,
            kinds={"deltalake"},
            description=text,
            metadata={"dagster/uri": layout.own(name)},
        )
        for name, text in texts.items()
    ]


def check_specs(setup: Setup) -> list[dg.AssetCheckSpec]:
    """Return one check per change log, evaluated inside the capture step."""
    return [
        dg.AssetCheckSpec(
            CHECK,
            asset=setup.names.log_key(table.table_id),
            description="Every batch fulfills the contract, positions are continuous, and schemas are equal.",
        )
        for table in setup.tables
    ]
