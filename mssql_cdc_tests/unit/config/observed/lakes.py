"""Current tables, the lake's folders, Spark, and the records that wait for their reader."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deltalake.exceptions import TableNotFoundError

from mssql_cdc.capture.database import Database
from mssql_cdc.config import Connector
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.table_log import TableLog, load_log
from mssql_cdc.records.outputs import OutputBatch, Progress
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.follower import Follower
from mssql_cdc.serve.renderer import Renderer
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.storm.lake import home_of
from mssql_cdc_tests.unit.config.observed.records import in_folder
from mssql_cdc_tests.unit.config.observed.world import World, lake_world
from mssql_cdc_tests.unit.records.kit import Lake, table

_LATER = timedelta(seconds=8)


def layout(connector: Connector) -> Any:
    """How a current table is laid out, and the features that its readers need."""
    with lake_world(connector) as own:
        log = _merged(own, own.follower(merge=True))
        return log.metadata["partitionColumns"], log.cluster_by, sorted(log.protocol.get("readerFeatures") or ())


def merged_after_some_seconds(connector: Connector) -> Any:
    """Whether a current table has a change that comes eight seconds behind its last commit."""
    with lake_world(connector) as own:
        follower = own.follower(merge=True)
        before = _merged(own, follower)
        own.change(("orders", 1, "changed"))
        own.scan(500)
        later = datetime.now(UTC) + _LATER
        with patch("mssql_cdc.capture.current_tables.datetime", wraps=datetime) as clock:
            clock.now.return_value = later
            follower.step()
        return _current(own).version > before.version


def _merged(own: World, follower: Follower) -> TableLog:
    own.fill(3)
    own.settle(follower)
    return _current(own)


def _current(own: World) -> TableLog:
    log = load_log(home_of(own.database, "orders").current)
    assert log is not None
    return log


def storage_options(connector: Connector) -> Any:
    """The options that `deltalake` gets with a table."""
    database = Database.of(connector, "shop", spark=lambda: None, warehouse="s3://bucket")  # type: ignore[arg-type,return-value]
    with patch("mssql_cdc.lake.opened.DeltaTable", side_effect=TableNotFoundError) as opened:
        assert load_state("s3://bucket/t", owner="me", storage=database.storage) is None
    return opened.call_args.kwargs


def warehouse_in_a_line(connector: Connector) -> Any:
    """A line of a log that names the lake."""
    return connector.redact(f"the lake is in {connector.delta.warehouse}")


def spark_options(connector: Connector) -> Any:
    """The configuration that Spark is started with."""
    with (
        patch("mssql_cdc.run.databases.start_session") as started,
        patch("mssql_cdc.run.databases.real_names", lambda given, **_: given),
        patch("mssql_cdc.spark.lazy.active_session", lambda: None),
        open_databases(connector) as (database, *_),
    ):
        database.spark()
    return started.call_args.args[0].confs


class _Parts:
    """An output that, as standard output, remembers nothing; it notes how many records it gets at a time."""

    remembers = False
    kept: Progress | None = None

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write(self, batch: OutputBatch) -> None:
        self.sizes.append(batch.records.num_rows)

    def keep(self) -> None:
        """They are not kept."""


def written_at_once(connector: Connector) -> Any:
    """The sizes of the parts in which twenty records are handed to an output."""
    output = _Parts()
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        schema = lake.add(table("things"))
        lake.append(schema, *(Change(5, "c", after={"id": key}, sequence=key) for key in range(1, 21)))
        lake.cut(7)
        own = in_folder(connector, folder)
        renderer = Renderer(own, output, Progress(own.topic_prefix), offsets={}, warehouse=None)
        assert renderer.finish()
        assert renderer.error is None
    return output.sizes
