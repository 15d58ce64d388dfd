"""Change data capture of a server: one `DatabaseCapture` per enabled database, and the Agent."""

from __future__ import annotations

from contextlib import suppress

from mssql_sandbox.cdc.agent import Agent, run_scans
from mssql_sandbox.cdc.instance_metadata import disable_instance
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.job_settings import JOB_TYPES, defaults
from mssql_sandbox.cdc.job_table import JobTable
from mssql_sandbox.cdc.metadata import own_transaction
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error


class CdcService:
    """The state of change data capture, for the catalogue."""

    def __init__(self, server: Server, *, capture_interval: float | None = None) -> None:
        self.server = server
        self.agent = Agent(server, capture_interval)
        self._captures: dict[int, DatabaseCapture] = {}
        self._detached: dict[int, DatabaseCapture] = {}

    def capture(self, database: Database) -> DatabaseCapture | None:
        """The capture of a database, or None if it is not enabled."""
        found = self._captures.get(database.id)
        return found if found is not None and found.database is database else None

    def captures(self) -> list[DatabaseCapture]:
        """The captures of all enabled databases."""
        return list(self._captures.values())

    def add(self, capture: DatabaseCapture) -> None:
        """Register the capture of a database that has just been enabled."""
        self._captures[capture.database.id] = capture

    def database_dropped(self, database: Database) -> None:
        """Remove a dropped database: its jobs end, and Agent removes them [doc]."""
        self.remove(database)
        with own_transaction(self.server, "DROP DATABASE") as transaction:
            table = JobTable(self.server, transaction)
            for job_type in JOB_TYPES:
                table.drop(database, job_type)

    def remove(self, database: Database) -> None:
        """Remove a database."""
        capture = self._captures.pop(database.id, None)
        if capture is not None:
            self.agent.forget(capture)

    def detached(self, database: Database) -> None:
        """Detach a database: its jobs stop."""
        capture = self._captures.pop(database.id, None)
        if capture is not None:
            self._detached[database.id] = capture
            self.agent.forget(capture)

    def attached(self, database: Database) -> None:
        """Attach a database with its change data capture and its jobs [doc]."""
        capture = self._detached.pop(database.id, None)
        if capture is not None:
            self.add(capture)
            if self.server.agent_running:
                self._start_jobs([capture])

    def instance(self, database: Database, name: str | None) -> CaptureInstance | None:
        """A capture instance by name."""
        capture = self.capture(database)
        return capture.named(name) if capture is not None and name is not None else None

    def table_dropped(self, transaction: Transaction, table: Table) -> None:
        """A tracked table is dropped, and its instances with it [doc]."""
        capture = self.capture(table.database)
        for instance in capture.of_source(table.object_id) if capture is not None else ():
            disable_instance(capture, transaction, instance)  # type: ignore[arg-type]

    def dropping_index(self, table: Table, index: Index) -> None:
        """Error 22979 or 22983 if an instance identifies rows by this index."""
        capture = self.capture(table.database)
        instances = capture.of_source(table.object_id) if capture is not None else []
        if any(instance.index_name == index.name for instance in instances):
            number = 22979 if index.constraint else 22983
            raise cdc_error(number, index.name, table.name, procedure="")

    def switching(self, source: Table, target: Table) -> None:
        """Errors 22842, 22843 if a partitioned table is captured by an instance that does not allow it."""
        for number, table in ((22842, target), (22843, source)):
            capture = self.capture(table.database)
            instances = capture.of_source(table.object_id) if capture is not None else []
            if "partitioned" in table.properties and not all(one.partition_switch for one in instances):
                raise cdc_error(number, procedure="")

    def scan_now(self, database: Database) -> int:
        """Capture everything that is committed, even if the jobs are stopped; returns the number of transactions read.

        Raises:
            SqlError: 208, the database is not enabled.
        """
        capture = self.capture(database)
        if capture is None:
            raise error(208, name="cdc.lsn_time_mapping")
        total, settings = 0, defaults(self.server.version)["capture"]
        with suppress(SqlError):  # it is in `sys.dm_cdc_errors`
            while read := run_scans(capture, maxtrans=settings.maxtrans, maxscans=settings.maxscans):
                total += read
        return total

    def start_agent(self) -> None:
        """Start Agent and all jobs, as after a restart of the machine."""
        self.server.agent_running = True
        self._start_jobs(self.captures())

    def _start_jobs(self, captures: list[DatabaseCapture]) -> None:
        with own_transaction(self.server, "SQLServerAgent") as transaction:
            table = JobTable(self.server, transaction)
            for capture in captures:
                for job in table.jobs(capture.database):
                    if job.job_type == "cleanup":
                        self.agent.schedule_cleanup(capture, job.settings)
                    elif not self.agent.is_running(capture, "capture"):
                        self.agent.start(capture, "capture", job.settings)

    def stop_agent(self) -> None:
        """Stop Agent and all jobs."""
        self.server.agent_running = False
        self.agent.close()

    def close(self) -> None:
        """Stop all tasks: the server stops."""
        self.agent.close()
