"""The settings of the capture and the cleanup job, and their checks. Pure; storing them and running jobs is elsewhere.

Defaults and limits: `sys.sp_cdc_add_job`, `sys.sp_cdc_change_job` [doc]; error numbers [sys].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.product import ProductVersion

JobType = Literal["capture", "cleanup"]
JOB_TYPES: tuple[JobType, JobType] = ("capture", "cleanup")
MAX_POLLING = 86_399
MAX_RETENTION = 52_594_800


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The row of one job in `msdb.dbo.cdc_jobs`: seconds of polling, minutes of retention; 0 where not applicable."""

    maxtrans: int = 0
    maxscans: int = 0
    continuous: bool = False
    pollinginterval: int = 0
    retention: int = 0
    threshold: int = 0


RETENTION = 4320
"""Default number of minutes for which changes are kept."""


def defaults(version: ProductVersion) -> dict[JobType, JobSettings]:
    """The settings of new jobs on a server of this version."""
    own = version.capture
    return {
        "capture": JobSettings(own.maxtrans, own.maxscans, own.continuous, own.pollinginterval),
        "cleanup": JobSettings(retention=RETENTION, threshold=own.threshold),
    }


@dataclass(frozen=True, slots=True)
class JobChange:
    """The arguments of `sp_cdc_add_job` and `sp_cdc_change_job`; None means the default, or unchanged."""

    maxtrans: int | None = None
    maxscans: int | None = None
    continuous: bool | None = None
    pollinginterval: int | None = None
    retention: int | None = None
    threshold: int | None = None


def check_job_type(job_type: object, *, procedure: str) -> JobType:
    """The job type in its canonical spelling.

    Raises:
        SqlError: 22992, it is neither `capture` nor `cleanup`.
    """
    text = str(job_type).strip().lower() if job_type is not None else ""
    if text == "capture":
        return "capture"
    if text == "cleanup":
        return "cleanup"
    raise cdc_error(22992, "(null)" if job_type is None else job_type, procedure=procedure)


def check_change(job_type: JobType, change: JobChange, *, procedure: str) -> None:
    """Refuse settings of the other job type and wrong values (22996, 22995, 22990, 22991, 22970, 22994, 22850)."""
    capture_only = (change.maxtrans, change.maxscans, change.continuous, change.pollinginterval)
    if job_type == "cleanup" and any(value is not None for value in capture_only):
        raise cdc_error(22996, procedure=procedure)
    if job_type == "capture" and (change.retention is not None or change.threshold is not None):
        raise cdc_error(22995, procedure=procedure)
    if change.pollinginterval is not None and not 0 <= change.pollinginterval <= MAX_POLLING:
        raise cdc_error(22990, procedure=procedure)
    if change.maxtrans is not None and change.maxtrans <= 0:
        raise cdc_error(22991, procedure=procedure)
    if change.maxscans is not None and change.maxscans <= 0:
        raise cdc_error(22970, procedure=procedure)
    if change.retention is not None and not 0 < change.retention <= MAX_RETENTION:
        raise cdc_error(22994, procedure=procedure)
    if change.threshold is not None and change.threshold <= 0:
        raise cdc_error(22850, procedure=procedure)


def added(settings: JobSettings, change: JobChange) -> JobSettings:
    """The settings of a new job: given values or defaults; a one-shot job does not poll by default [sys]."""
    result = replace(settings, **_given(change))
    return result if result.continuous or change.pollinginterval is not None else replace(result, pollinginterval=0)


def changed(settings: JobSettings, change: JobChange) -> JobSettings:
    """The settings after a change: a one-shot job does not poll, and a polling interval makes a job continuous."""
    result = replace(settings, **_given(change))
    if change.continuous is False:
        return replace(result, pollinginterval=0)
    if change.continuous is None and change.pollinginterval:
        return replace(result, continuous=True)
    return result


def _given(change: JobChange) -> dict[str, Any]:
    return {name: value for name in JobChange.__dataclass_fields__ if (value := getattr(change, name)) is not None}
