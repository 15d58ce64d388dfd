"""`msdb.dbo.cdc_jobs`: the table with the jobs' settings. It is created with the first job [fab].

Azure SQL Database has one in each database, as `cdc.cdc_jobs` [doc].
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from mssql_sandbox.cdc.enable_database import Tool
from mssql_sandbox.cdc.job_runs import JobRuns
from mssql_sandbox.cdc.job_settings import JobSettings, JobType
from mssql_sandbox.cdc.layout import AZURE_JOBS, JOBS, TableLayout
from mssql_sandbox.cdc.metadata import Metadata, Record
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.transaction import Transaction


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of one database."""

    database_id: int
    job_type: JobType
    job_id: uuid.UUID
    settings: JobSettings


@dataclass(frozen=True, slots=True)
class JobTable:
    """The jobs of a server, through a transaction."""

    server: Server
    transaction: Transaction

    def _home(self, database: Database) -> Database:
        """The database of the table: msdb; in Azure SQL Database the database itself [doc]."""
        return database if self.server.version.is_azure else self.server.database("msdb")

    @property
    def _layout(self) -> TableLayout:
        return AZURE_JOBS if self.server.version.is_azure else JOBS

    @property
    def _runs(self) -> JobRuns:
        return self.server.catalog.cdc.agent.runs

    def exists(self, database: Database) -> bool:
        """Whether a job was ever added."""
        return self._home(database).table(self._layout.schema, JOBS.name) is not None

    def _rows(self, database: Database) -> Metadata:
        return Metadata(self._home(database), self.transaction)

    def jobs(self, database: Database) -> list[JobRow]:
        """The jobs of a database, the capture job first."""
        if not self.exists(database):
            return []
        records = self._rows(database).records(self._layout)
        found = [_job(database, record) for record in records if _is(database)(record)]
        return sorted(found, key=lambda job: job.job_type)

    def job(self, database: Database, job_type: JobType) -> JobRow | None:
        """One job of a database."""
        return next((job for job in self.jobs(database) if job.job_type == job_type), None)

    def add(self, database: Database, job_type: JobType, settings: JobSettings) -> JobRow:
        """Add a job, and create the table with the first one."""
        if not self.exists(database):
            Tool(self._home(database), self.transaction).create(self._layout)
        job = JobRow(database.id, job_type, uuid.uuid4(), settings)
        known = {"database_id": database.id, "job_type": job_type, "job_id": job.job_id, **_values(settings)}
        rows = self._rows(database)
        rows.insert(self._layout, tuple(known[column.name] for column in rows.table(self._layout).columns))
        self._runs.created[database.id, job_type] = self.server.clock.local_datetime()
        return job

    def change(self, database: Database, job_type: JobType, settings: JobSettings) -> None:
        """Change the settings of a job; a running job keeps those it started with."""
        self._rows(database).update(self._layout, _is(database, job_type), **_values(settings))

    def drop(self, database: Database, job_type: JobType) -> None:
        """Remove a job."""
        if self.exists(database):
            self._rows(database).delete(self._layout, _is(database, job_type))
            self._runs.forget((database.id, job_type))


def _is(database: Database, job_type: JobType | None = None) -> Callable[[Record], bool]:
    """Whether a record belongs to the database, and to the job if one is named."""
    return lambda record: (
        record.get("database_id", database.id) == database.id and job_type in (None, record["job_type"])
    )


def _job(database: Database, record: Record) -> JobRow:
    settings = JobSettings(
        maxtrans=record["maxtrans"],
        maxscans=record["maxscans"],
        continuous=bool(record["continuous"]),
        pollinginterval=record["pollinginterval"],
        retention=record["retention"],
        threshold=record["threshold"],
    )
    number = record.get("job_id") or uuid.uuid5(uuid.NAMESPACE_OID, f"{database.name}/{record['job_type']}")
    return JobRow(database.id, record["job_type"], number, settings)


def _values(settings: JobSettings) -> dict[str, object]:
    return {
        "maxtrans": settings.maxtrans,
        "maxscans": settings.maxscans,
        "continuous": int(settings.continuous),
        "pollinginterval": settings.pollinginterval,
        "retention": settings.retention,
        "threshold": settings.threshold,
    }
