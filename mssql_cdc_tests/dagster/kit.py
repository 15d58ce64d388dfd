"""Runs one connector in Dagster against the stand-in server: definitions, an instance, ticks and runs."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.instigation_logger import get_instigation_log_records
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from mssql_cdc.capture.database import Database
from mssql_cdc.config import Connector, connector_from_mapping, reveal
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.defs.setup import Setup
from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema
from mssql_cdc_tests.sandbox_source.kit import Shop
from mssql_cdc_tests.servers import grant

PASSWORD = "Pa$$-that-nobody-may-see"
READER_PASSWORD = "Reader/of&the test-1"
"""Escaped in another way by every library."""


def connector(name: str = "server1", database: str = "shop", **properties: Any) -> Connector:
    """A connector for tests of definitions, which never connect."""
    return connector_from_mapping(
        name,
        {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": "127.0.0.1",
            "database.user": "sa",
            "database.password": PASSWORD,
            "database.names": database,
            "topic.prefix": name,
            "delta.warehouse": "/nowhere",
            **{key.replace("_", "."): str(value) for key, value in properties.items()},
        },
    )


def table(name: str, *columns: str, schema: str = "dbo", database: str = "shop", keyless: bool = False) -> TableSchema:
    """A table with a key `id` and text columns."""
    texts = tuple(Column(one, SqlServerType("nvarchar", length=50)) for one in columns or ("name",))
    identity = Column("id", SqlServerType("int"), nullable=False)
    return TableSchema(TableId(database, schema, name), (identity, *texts), () if keyless else ("id",), object_id=1)


@dataclass
class Location:
    """A code location for one database of the stand-in server, and the instance in which it runs."""

    shop: Shop
    folder: Path
    instance: dg.DagsterInstance
    connector: Connector
    definitions: dg.Definitions
    repository: dg.RepositoryDefinition
    names: DatabaseNames
    tables: tuple[TableSchema, ...]
    cursor: str | None = None
    started: float | None = None
    requests: list[dg.RunRequest] = field(default_factory=list)
    tick_log: str = ""
    since: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def of(
        cls,
        shop: Shop,
        folder: Path,
        instance: dg.DagsterInstance,
        *,
        known: Collection[str] | None = None,
        **more: Any,
    ) -> Location:
        """Load the location in its current state; `known` limits its table list."""
        properties = {
            "topic.prefix": "test",
            "database.hostname": shop.connection.hostname,
            "database.port": str(shop.connection.port),
            "database.user": "sa",
            "database.password": shop.connection.password.read() if shop.connection.password else "",
            "database.names": shop.catalog,
            "driver.encrypt": "false",
            "delta.warehouse": str(folder / "lake"),
            "delta.current.interval": "0",
            "dagster.max.run.seconds": "0",
            "dagster.window": "day",
            "retriable.restart.connector.wait.ms": "1",
            **{key.replace("_", "."): str(value) for key, value in more.items()},
        }
        made = connector_from_mapping("test", properties)
        with shop.source().session(shop.catalog) as session:
            schemas = [one.newest.schema for one in session.tables()]
        chosen = [one for one in schemas if known is None or one.table_id.name in known]
        definitions = build_definitions(made, tables=chosen, since=datetime.now(UTC))
        names = DatabaseNames("test", shop.catalog, tuple(one.table_id for one in chosen))
        return cls(shop, folder, instance, made, definitions, definitions.get_repository_def(), names, tuple(chosen))

    def key(self, name: str) -> dg.AssetKey:
        """The key of a table's change log."""
        return self.names.log_key(TableId(self.shop.catalog, "dbo", name))

    def current(self, name: str) -> dg.AssetKey:
        """The key of a table's current table."""
        return self.names.current_key(TableId(self.shop.catalog, "dbo", name))

    def database(self) -> Database:
        """The database, without Spark."""
        return Setup.of(self.connector, self.shop.catalog, ()).open()

    def reloaded(self, *, since: datetime | None = None, **more: Any) -> Location:
        """The same location with other properties; the sensor keeps its cursor."""
        since = since or self.since
        properties = {name.replace("_", "."): str(value) for name, value in more.items()}
        made = connector_from_mapping("test", {**_texts(self.connector), **properties})
        definitions = build_definitions(made, tables=self.tables, since=since)
        repository = definitions.get_repository_def()
        return replace(self, connector=made, definitions=definitions, repository=repository, since=since)

    def launch(
        self, request: dg.RunRequest, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED
    ) -> dg.DagsterRun:
        """Record the run that the daemon would launch for a request, without executing it."""
        own = {"dagster/partition": request.partition_key or ""}
        job = self.repository.get_job(request.job_name or self.job.name)
        run = dg.DagsterRun(
            job_name=job.name,
            asset_selection=frozenset(request.asset_selection or job.asset_layer.selected_asset_keys),
            status=status,
            tags={**request.tags, **own, "dagster/sensor_name": self.sensor.name},
            remote_job_origin=self.origin(job.name),
        )
        return self.instance.add_run(run)

    def origin(self, job: str) -> RemoteJobOrigin:
        """Where Dagster would load a job from, which a queued run must know."""
        file = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(python_file="definitions.py"))
        return RemoteJobOrigin(RemoteRepositoryOrigin(file, "__repository__"), job)

    def tick_past_the_wait(self) -> Any:
        """Tick twice: the first tick starts the wait before a retry, the second one comes after it."""
        first = self.tick()
        assert "did not finish" in first.skip_message, first.skip_message
        time.sleep(0.05)
        return self.tick()

    @property
    def sensor(self) -> dg.SensorDefinition:
        """The database's sensor."""
        return self.repository.get_sensor_def(f"{self.names.stem}__sensor")

    @property
    def job(self) -> dg.JobDefinition:
        """The streaming job."""
        return self.repository.get_job(f"{self.names.stem}__stream")

    def tick(self) -> Any:
        """Tick once, and report the asset events like the daemon."""
        context = dg.build_sensor_context(
            instance=self.instance,
            instance_ref=self.instance.get_ref(),
            repository_def=self.repository,
            resources={},
            cursor=self.cursor,
            sensor_name=self.sensor.name,
            last_sensor_start_time=self.started,
        )
        log_key = [self.sensor.name, uuid.uuid4().hex]
        context._log_key = log_key  # As the daemon gives it; the function for tests does not.
        try:
            with context:
                result = self.sensor.evaluate_tick(context)
        finally:
            records = get_instigation_log_records(self.instance, log_key)
            self.tick_log = "\n".join(str(record["msg"]) for record in records)
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        if result.cursor:
            self.cursor = result.cursor
        self.requests = list(result.run_requests or ())
        return result

    def run(self, request: dg.RunRequest, *, raise_on_error: bool = False) -> dg.ExecuteInProcessResult:
        """Execute a run request of the sensor."""
        partition = {"dagster/partition": request.partition_key} if request.partition_key else {}
        tags = {"dagster/sensor_name": self.sensor.name, **partition}
        job = self.repository.get_job(request.job_name or self.job.name)
        return job.execute_in_process(
            instance=self.instance,
            partition_key=request.partition_key,
            run_config=request.run_config,
            asset_selection=list(request.asset_selection) if request.asset_selection else None,
            tags={**request.tags, **tags},
            raise_on_error=raise_on_error,
        )

    def materialize(
        self, *keys: dg.AssetKey, partition: str | None = None, tags: Mapping[str, str] | None = None, **more: Any
    ) -> dg.ExecuteInProcessResult:
        """Do what the Materialize button does for these assets."""
        job = self.repository.get_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            partition_key=partition,
            asset_selection=list(keys),
            tags=dict(tags or {}),
            raise_on_error=False,
            **more,
        )

    def said(self, result: dg.ExecuteInProcessResult) -> str:
        """The lines of a run's log."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "\n".join(entry.user_message for entry in self.instance.all_logs(result.run_id))

    @property
    def setup(self) -> Setup:
        """The database as the code location knows it."""
        return Setup.of(self.connector, self.shop.catalog, self.tables, since=self.since)

    @property
    def window(self) -> str:
        """The partition key of the current window."""
        return self.setup.windows.key(datetime.now(UTC))

    @property
    def snapshots(self) -> dg.AssetKey:
        """The key of the snapshots."""
        return self.names.extra_key("snapshots")

    def logged(self, name: str) -> dict[str, Any]:
        """The metadata of the newest materialization of a table's change log."""
        return metadata(self.materializations(self.key(name))[0])

    def settle(self, *, most: int = 12) -> list[dg.ExecuteInProcessResult]:
        """Tick and run until the sensor has nothing to request; every run must succeed."""
        results = []
        for _ in range(most):
            self.shop.scan()
            self.tick()
            if not self.requests:
                return results
            for request in self.requests:
                results.append(self.run(request))
                assert results[-1].success, failures(results[-1])
        raise AssertionError(f"the sensor still requests runs after {most} ticks: {self.requests}")

    def materializations(self, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
        """The asset's materializations, newest first."""
        found = self.instance.fetch_materializations(key, limit=100).records
        return [record.asset_materialization for record in found if record.asset_materialization]

    def checks(self, name: str) -> list[bool]:
        """The outcomes of a table's check, newest first."""
        return [one.passed for one in self.evaluations(name)]

    def evaluations(self, name: str) -> list[dg.AssetCheckEvaluation]:
        """The evaluations of a table's check, newest first."""
        key = dg.AssetCheckKey(self.key(name), "captured_faithfully")
        storage = self.instance.event_log_storage
        records = storage.get_asset_check_execution_history(key, limit=50)
        events = [record.event.dagster_event for record in records if record.event]
        evaluations = [event.event_specific_data for event in events if event]
        return [one for one in evaluations if isinstance(one, dg.AssetCheckEvaluation)]

    def verdict(self, name: str) -> tuple[bool, str, str]:
        """A table's check now: whether it passed, its severity, and its problem with what to do about it."""
        newest = self.evaluations(name)[0]
        found = {key.removeprefix("mssql_cdc/"): str(value.value) for key, value in newest.metadata.items()}
        text = "; ".join(found[key] for key in ("problem", "what_to_do") if key in found)
        return newest.passed, newest.severity.value, text

    def as_reader(self) -> Location:
        """The same location with a login of its own, which has the least rights: on each table of the shop."""
        name, shop = f"{self.shop.catalog}_reader", self.shop
        tables = [one.table_id for one in self.tables]
        shop.run(
            f"CREATE LOGIN [{name}] WITH PASSWORD = '{READER_PASSWORD}'",
            f"CREATE USER [{name}] FOR LOGIN [{name}]",
            f"GRANT SELECT ON SCHEMA::cdc TO [{name}]",
            grant("VIEW SERVER STATE", name, shop.catalog),
            *(f"GRANT SELECT ON [{table.schema}].[{table.name}] TO [{name}]" for table in tables),
        )
        return self.reloaded(database_user=name, database_password=READER_PASSWORD)

    def change_rights(self, *statements: str) -> None:
        """GRANT or REVOKE, where `reader` stands for the user of `as_reader`."""
        self.shop.run(*(one.replace("reader", f"[{self.shop.catalog}_reader]") for one in statements))


def _texts(connector: Connector) -> dict[str, str]:
    """A connector's properties as configured."""
    return {name: reveal(value) for name, value in connector.properties}


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """The error messages of a run's failed steps."""
    found = []
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            found.append(f"{error.message} {error.cause.message if error and error.cause else ''}" if error else "?")
    return found


def metadata(event: dg.AssetMaterialization) -> dict[str, Any]:
    """The values of an event's metadata."""
    return {name: value.value for name, value in event.metadata.items()}


def shown(instance: dg.DagsterInstance) -> str:
    """Everything that the instance stores about its runs, as text: tags, configuration, events."""
    texts = []
    for record in instance.get_run_records():
        run = record.dagster_run
        texts += [repr(run.tags), repr(run.run_config)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            texts += [repr(entry) for entry in instance.all_logs(run.run_id)]
    return "\n".join(texts)


__all__ = ["Location", "connector", "failures", "metadata", "shown", "table"]
