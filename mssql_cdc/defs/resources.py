"""Dagster resources: the Spark session of a run. `source/` opens the connections to the source where needed."""

from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from mssql_cdc.config import SparkConf
from mssql_cdc.spark.lazy import LazySpark
from mssql_cdc.spark.session import SparkSettings, cancel_jobs, start_session


class SparkResource(LazyPySparkResource):
    """One Spark session per run, started on first use (or ahead) and stopped at the end of the run.

    `settings` are the connector's `spark.*` properties; they override the confs for small work. They are an object
    instead of Dagster configuration, so that Dagster never shows their values (such as object store keys).
    """

    spark_config: dict[str, Any] = {}  # noqa: RUF012 (a pydantic field)
    settings: dg.ResourceDependency[SparkConf]
    memory: str = "2g"
    _spark: Any = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 (Dagster's signature)
        """Start nothing; a session that other code has already started in this process will be used."""
        self._spark = LazySpark(self._start)

    @property
    def spark_session(self) -> Any:
        """The session; the first use in the run starts it (4-7 s), unless the process already has one."""
        return self._spark()

    def begin(self) -> None:
        """Start the session in a thread; an error is raised where the session is needed."""
        self._spark.begin()

    @property
    def lazy(self) -> LazySpark:
        """Returns the session when called, for code that must not start Spark before it knows that there is work."""
        return self._spark

    def cancel_jobs(self) -> None:
        """Cancel all Spark jobs, from any thread."""
        session = self._spark.running
        if session is not None:
            cancel_jobs(session)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002 (Dagster's signature)
        """Stop the session if this run started it: a later run must not inherit its static confs."""
        self._spark.stop()

    def _start(self) -> Any:
        confs = self.settings.read() | {name: str(value) for name, value in self.spark_config.items()}
        return start_session(SparkSettings.from_environment(memory=self.memory, confs=confs))
