"""Dagster resources: the Spark session of a run. Connections to the source are opened by `source/`, where needed."""

from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from mssql_cdc.config import SparkConf
from mssql_cdc.spark.session import SparkSettings, start_session, verify_session


class SparkResource(LazyPySparkResource):
    """One Spark session per run, started on first use and stopped at the run's end.

    `settings` are the connector's `spark.*` properties; they win over the confs for small work. They are an object,
    not configuration, so that what they hold (keys of an object store) is never shown by Dagster.
    """

    spark_config: dict[str, Any] = {}  # noqa: RUF012 (a pydantic field)
    settings: dg.ResourceDependency[SparkConf]
    memory: str = "2g"
    _found: Any = PrivateAttr(default=None)
    _started: Any = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 (Dagster's signature)
        """Starts nothing; takes note of a session that somebody else has started in this process."""
        from pyspark.sql import SparkSession

        self._found = SparkSession.getActiveSession()

    @property
    def spark_session(self) -> Any:
        """The session; starts it (4-7 s) when this is the run's first use. A session that is there is used."""
        if self._found is not None:
            verify_session(self._found)
            return self._found
        if self._started is None:
            confs = self.settings.read() | {name: str(value) for name, value in self.spark_config.items()}
            self._started = start_session(SparkSettings.from_environment(memory=self.memory, confs=confs))
        return self._started

    def start(self) -> Any:
        """The session, for code that must not start Spark before it knows that there is work."""
        return self.spark_session

    def cancel_jobs(self) -> None:
        """Cancels what Spark is working on, from any thread."""
        session = self._started or self._found
        if session is not None:
            session.sparkContext.cancelAllJobs()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 (Dagster's signature)
        """Stops the session that the run has started: a later run must not inherit its static confs."""
        if self._started is not None:
            self._started.stop()
            self._started = None
