"""What a run tells OpenLineage, as the configuration says it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.run.lineage import reported
from mssql_cdc_tests.lineage_kit import read_events, to_file
from mssql_cdc_tests.unit.config.observed.world import world


def told(connector: Connector) -> Any:
    """The job of each event of a run, or why there is no run; the client is configured where it is by default."""
    _, events = to_file(Path())
    events.unlink(missing_ok=True)
    with world(connector) as own:
        try:
            with reported([own.database]) as saw:
                follower = own.follower()
                follower.saw = partial(saw, own.database)
                own.settle(follower)
        except ConfigurationError as error:
            return str(error)
    return [(one["eventType"], one["job"]) for one in read_events(events)]
