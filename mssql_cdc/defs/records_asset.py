"""The asset `records`: which of Debezium's records the connector's output has, and whether it can be written.

Only its check turns red when the output fails: tables, runs and the sensor do not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.config.delta_settings import DELTA, output_name
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.recorder import Recorder
from mssql_cdc.defs.setup import Setup
from mssql_cdc.run.known_lags import KnownLags
from mssql_cdc.run.records_output import RecordsOutput, Written

CHECK = "written"
REPORT_SECONDS = 60.0
END_SECONDS = 20.0


def records_spec(setup: Setup, target: str) -> dg.AssetSpec:
    """Return the asset."""
    return dg.AssetSpec(
        setup.records_key,
        deps=[setup.names.log_key(table.table_id) for table in setup.tables],
        group_name=setup.names.group,
        kinds={"deltalake"} if target.startswith(DELTA) else {output_name(target) or "json"},
        skippable=True,
        description="Debezium's records of the change logs, written to delta.records.output as cuts become complete. "
        "Materialize it alone to bring the output up to date.",
        metadata={"mssql_cdc/output": setup.connector.redact(target)},  # Dagster stores it.
    )


def records_check(setup: Setup) -> dg.AssetCheckSpec:
    """Return the check that turns red when the output cannot be written."""
    return dg.AssetCheckSpec(
        CHECK, asset=setup.records_key, description="The output has the records of every complete cut."
    )


@dataclass
class RecordsAsset:
    """Writes the output during a run; reports it when it begins to fail or to work, else once a minute."""

    setup: Setup
    writer: Recorder
    output: RecordsOutput
    lags: KnownLags
    _count: int = 0
    _newest: Written | None = None
    _is_due: bool = False
    _failed: bool | None = None
    _reported: datetime | None = None
    _begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def of(cls, setup: Setup, database: Database, recorder: Recorder, lags: KnownLags) -> RecordsAsset | None:
        """Return the asset of a run; None without an output.

        Args:
            setup: The database.
            database: Where the lake is.
            recorder: Stores events; its thread does all reporting.
            lags: The lags of the tables.
        """
        if setup.connector.delta.records_output_of(setup.database) is None:
            return None
        made: list[RecordsAsset] = []

        def tell(written: Written) -> None:
            recorder.post(partial(made[0].add, written))

        output = RecordsOutput(database, warehouse=setup.warehouse, tell=tell)
        made.append(cls(setup, recorder, output, lags))
        return made[0]

    def add(self, written: Written) -> None:
        """Record the result of an attempt; report it at once if the check turns green or red."""
        self._count += written.count
        self._newest, self._is_due = written, True
        failed = written.error is not None
        if failed != self._failed:
            self._failed = failed
            self._check(written)
            self._report()

    def turn(self) -> None:
        """Report if a minute has passed since the last time."""
        since = self._reported or self._begun
        if self._is_due and (datetime.now(UTC) - since).total_seconds() >= REPORT_SECONDS:
            self._report()

    def finish(self) -> None:
        """Report what is still due at the end of the run."""
        if self._is_due and (self._count or self._reported is None or self._failed):
            self._report()

    def failure_text(self, written: Written) -> str | None:
        """Return the text about a failed attempt."""
        error = written.error
        return None if error is None else self.setup.connector.redact(f"{type(error).__name__}: {error}")

    def _values(self, written: Written) -> dict[str, Any]:
        return {
            "dagster/row_count": written.total,
            "records": self._count,
            "commit_lsn": written.commit_lsn,
            "lag_seconds": max(written.lag_seconds, self.lags.largest() or 0.0),
        }

    def _report(self) -> None:
        written = self._newest
        assert written is not None, "there was an attempt"
        key, values = self.setup.records_key, event_metadata(self._values(written))
        if written.error is None:
            self.writer.write(dg.AssetMaterialization(key, metadata=values))
        else:
            self.writer.write(dg.AssetObservation(key, metadata=values))
        self._count, self._is_due, self._reported = 0, False, datetime.now(UTC)

    def _check(self, written: Written) -> None:
        values = {
            "problem": self.failure_text(written),
            "what_to_do": None
            if written.error is None
            else "Mend the output; the next run, or materializing records, writes what it lacks",
            "lag_seconds": written.lag_seconds,
        }
        self.writer.write(
            dg.AssetCheckEvaluation(
                asset_key=self.setup.records_key,
                check_name=CHECK,
                passed=written.error is None,
                metadata=event_metadata(values),
            )
        )
