"""What Dagster shows and requests: partitions of change logs, and the run requests of the sensor."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock, patch

import dagster as dg

from mssql_cdc.config import Connector
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.handover import STATE_TAG
from mssql_cdc.run.loop import run_for
from mssql_cdc_tests.unit.config.observed.things import THINGS
from mssql_cdc_tests.unit.config.observed.world import World, world


def keys(connector: Connector) -> Any:
    """The keys of the assets, and where their tables are."""
    specs = build_definitions(connector, tables=[THINGS]).resolve_all_asset_specs()
    return sorted((spec.key.to_user_string(), str(spec.metadata.get("dagster/uri"))) for spec in specs)


def jobs(connector: Connector) -> Any:
    """The names of the jobs."""
    return sorted(one.name for one in build_definitions(connector, tables=[]).jobs or ())


def pause_of_ticks(connector: Connector) -> Any:
    """The pause between two ticks."""
    (found,) = list(build_definitions(connector, tables=[THINGS]).sensors or ())
    return found.minimum_interval_seconds  # type: ignore[union-attr]


def pauses_of_a_run(connector: Connector) -> Any:
    """The pauses that a run asks for when there is nothing to do."""
    pauses: list[float] = []
    with (
        world(connector) as own,
        patch("mssql_cdc.run.follower.time", Mock(wraps=time, sleep=pauses.append)),
    ):
        run_for([own.database], seconds=None, merge=False, watch=lambda *_: len(pauses) > 2)
    return pauses


def windows(connector: Connector) -> Any:
    """The length of a window of change logs, and how many days of them there are."""
    with world(connector) as own:
        repository = _definitions(connector, own).get_repository_def()
        (definition,) = {
            node.partitions_def
            for node in repository.asset_graph.asset_nodes
            if isinstance(node.partitions_def, dg.TimeWindowPartitionsDefinition)
        }
        first, second = definition.get_partition_keys()[:2]
        starts = [definition.time_window_for_partition_key(key).start for key in (first, second)]
        return starts[1] - starts[0], (datetime.now(UTC) - starts[0]).days


def requested(connector: Connector) -> Any:
    """The states of the runs that a tick on a database without changes requests."""
    with world(connector) as own:
        own.settle(own.follower())
        repository = _definitions(connector, own).get_repository_def()
        with (
            dg.DagsterInstance.ephemeral() as instance,
            patch("mssql_cdc.capture.database.open_source", lambda _: own.database.source),
        ):
            (sensor,) = repository.sensor_defs
            context = dg.build_sensor_context(
                instance=instance, repository_def=repository, resources={}, sensor_name=sensor.name
            )
            with context:
                found = sensor.evaluate_tick(context)
        return [one.tags.get(STATE_TAG) for one in found.run_requests or ()]


def longest_runs(connector: Connector) -> Any:
    """How long runs may take."""
    jobs = build_definitions(connector, tables=[THINGS]).get_repository_def().get_all_jobs()
    return sorted((job.name, job.tags.get("dagster/max_runtime")) for job in jobs)


def _definitions(connector: Connector, own: World) -> dg.Definitions:
    with own.database.session() as session:
        tables = [one.newest.schema for one in session.tables()]
    return build_definitions(connector, tables=tables, warehouse=str(own.folder))
