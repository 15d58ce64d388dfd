"""What happens to a change that cannot be rendered (`event.processing.failure.handling.mode`, ERR-01).

Only records leave such a change out; the lake has it. Messages about it have its position, and none of its values.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.config.record_settings import FailureHandling
from mssql_cdc.errors import ConversionError
from mssql_cdc.lsn import Lsn, Position
from mssql_cdc.records.connect_values import without_values
from mssql_cdc.schema import TableId

CONVERSION_ERRORS = (pa.ArrowException, ValueError, OverflowError)
"""What converters raise for a value. Everything else is not a problem of one change."""
logger = logging.getLogger("mssql_cdc")


@dataclass(frozen=True, slots=True)
class Failures:
    """Handles changes that cannot be rendered."""

    mode: FailureHandling = "fail"

    @classmethod
    def of(cls, connector: Connector) -> Failures:
        """Return the handling that the connector is configured for."""
        return cls(connector.records.failure_handling)

    def handle(self, table: TableId, position: str, error: Exception) -> None:
        """Handle a change; it is left out if this returns.

        Args:
            table: The table.
            position: `_pos` of the change.
            error: What a converter raised.

        Raises:
            ConversionError: Records stop at the change.
        """
        event = f"event at offset {_offset(position)} of {table} ({position})"
        what = f"Error while processing {event}: {without_values(error)}"
        if self.mode == "fail":
            raise ConversionError(
                f"{what}. Correct the modes of records, or leave such changes out of the records with "
                "event.processing.failure.handling.mode=warn"
            ) from None
        if self.mode == "warn":
            logger.warning("%s; its records are left out", what)


def _offset(position: str) -> str:
    """Return a change's LSNs as Debezium shows its offset; rows of snapshots have no LSN of their own."""
    at = Position.parse(position)
    change = f", change_lsn={Lsn(bytes.fromhex(at.change)).text}" if at.operation else ""
    return f"{{commit_lsn={at.commit_lsn.text}{change}}}"
