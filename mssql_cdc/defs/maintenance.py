"""The maintenance job of a database and its schedule, which is off by default.

The job may run while capture runs; `run/maintain.py` implements it.
"""

import dagster as dg

from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import shown
from mssql_cdc.lake.retention import RETAIN_HOURS
from mssql_cdc.run.maintain import maintain


class Retention(dg.Config):
    """How long old table versions stay readable."""

    retain_hours: int = RETAIN_HOURS


def build_maintenance(setup: Setup) -> dg.JobDefinition:
    """Build the job that runs OPTIMIZE and VACUUM on all tables of a database."""
    stem = setup.names.stem

    @dg.op(name=f"{stem}__join_and_remove_files", required_resource_keys={setup.names.spark})
    def join_and_remove_files(context: dg.OpExecutionContext, config: Retention) -> None:
        with shown(setup.connector, context.log.info):
            spark = getattr(context.resources, setup.names.spark)
            database = setup.open(spark=spark.lazy, run_id=context.run.run_id, log=context.log.info)
            for done in maintain(database, retain_hours=config.retain_hours):
                context.log.info("%s", setup.connector.redact(done.text))

    @dg.job(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        name=f"{stem}__maintain",
        executor_def=dg.in_process_executor,
        tags={"mssql_cdc/connector": setup.connector.topic_prefix},
        description=f"Compacts small files of {setup.database} and removes files that no retained version needs.",
    )
    def maintenance() -> None:
        join_and_remove_files()

    return maintenance


def nightly(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Build the nightly schedule, which is off until an operator turns it on."""
    return dg.ScheduleDefinition(
        name=f"{job.name}__nightly",
        job=job,
        cron_schedule="30 3 * * *",
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )
