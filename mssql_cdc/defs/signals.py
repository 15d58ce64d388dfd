"""The `signals` asset: its launchpad asks for a snapshot of named tables, the recommended door (SIG-01, BLK-01)."""

import uuid

import dagster as dg
from pydantic import Field

from mssql_cdc.config.signals import expand_collections
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import ConfigurationError, MssqlCdcError
from mssql_cdc.stream.signals import ask_for_snapshot


class SnapshotRequest(dg.Config):
    """What the launchpad asks for. The field is required, so that a click on Materialize opens the launchpad."""

    tables: list[str] = Field(
        description="Tables to read again, for instance dbo.customers; the others stream on meanwhile."
    )


def build_signals(setup: Setup) -> dg.AssetsDefinition:
    """The asset of one database."""
    key = setup.names.extra_key("signals")

    @dg.multi_asset(
        name=f"signals__{setup.names.stem}",
        specs=[
            dg.AssetSpec(
                key,
                group_name=setup.names.group,
                kinds={"deltalake"},
                description="Signals: Materialize opens the launchpad, where a snapshot of tables can be asked for.",
                metadata={"dagster/uri": setup.layout.own("signals")},
            )
        ],
    )
    def signals(context: dg.AssetExecutionContext, config: SnapshotRequest) -> dg.MaterializeResult:
        try:
            chosen = _chosen(setup, config.tables)
            ask_for_snapshot(setup.open(run_id=context.run.run_id), str(uuid.uuid4()), chosen, channel="dagster")
        except MssqlCdcError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        context.log.info("Asked for a snapshot of %s; the sensor begins it at its next look.", ", ".join(chosen))
        return dg.MaterializeResult(key, metadata=event_metadata({"asked_for": ", ".join(chosen)}))

    return signals


def _chosen(setup: Setup, wanted: list[str]) -> list[str]:
    """Full names of the captured tables that were asked for; a name that means none is an error, not silence."""
    known = [(table.catalog or "", table.schema, table.name) for table in setup.names.tables]
    found, unmatched = expand_collections(wanted, known)
    if unmatched or not found:
        captured = ", ".join(".".join(name) for name in known)
        raise ConfigurationError(f"{', '.join(unmatched) or 'The empty list'} names no captured table of {captured}")
    return [".".join(name) for name in found]
