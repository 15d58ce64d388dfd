"""Dagster resources: the Spark session of a run. Connections to the source are opened by `source/`, where needed."""

from __future__ import annotations

from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from mssql_cdc.spark.session import SparkSettings, start_session


class SparkResource(LazyPySparkResource):
    """One Spark session per run, started on first use and stopped at the run's end.

    `spark_config` holds Spark confs (`spark.*` of the connector); they win over the confs for small work.
    """

    spark_config: dict[str, Any] = {}  # noqa: RUF012 (a pydantic field)
    master: str = "local[2]"
    memory: str = "2g"
    _started: Any = PrivateAttr(default=None)

    @property
    def spark_session(self) -> Any:
        """The session; starts it (4-7 s) when this is the run's first use."""
        if self._started is None:
            confs = {name: str(value) for name, value in self.spark_config.items()}
            self._started = start_session(
                SparkSettings.from_environment(master=self.master, memory=self.memory, confs=confs)
            )
        return self._started

    def start(self) -> Any:
        """The session, for code that must not start Spark before it knows that there is work."""
        return self.spark_session

    def cancel_jobs(self) -> None:
        """Cancels what Spark is working on, from any thread."""
        if self._started is not None:
            self._started.sparkContext.cancelAllJobs()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 (Dagster's signature)
        """Stops the session: a later run must not inherit its static confs."""
        if self._started is not None:
            self._started.stop()
            self._started = None
