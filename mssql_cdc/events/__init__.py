"""Neutral changes -> change-log rows: pure functions on Arrow batches that know no SQL Server and do no I/O."""

from mssql_cdc.events.change_log import to_change_log
from mssql_cdc.events.contract import check_batch
from mssql_cdc.events.masking import HashMask, Mask, StarMask, Truncate, mask_of

__all__ = ["HashMask", "Mask", "StarMask", "Truncate", "check_batch", "mask_of", "to_change_log"]
