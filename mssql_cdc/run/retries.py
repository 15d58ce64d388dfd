"""How a loop continues after errors that a retry may resolve: waits and their number (ERR-02).

`errors.max.retries` counts attempts without a success in between; `retriable.restart.connector.wait.ms` is the pause
before each. What an attempt does is up to the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mssql_cdc.config.model import StreamingSettings
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.run.interrupts import require_uninterrupted


@dataclass
class Retries:
    """The attempts of one database since its last success."""

    settings: StreamingSettings
    failed: int = 0

    def succeeded(self) -> None:
        """Restart the count."""
        self.failed = 0

    def wait_seconds(self, error: MssqlCdcError, log: Callable[[str], None]) -> float:
        """Return how long to wait before the next attempt, and log it; raise the error if there is to be none."""
        require_uninterrupted()
        self.failed += 1
        most = self.settings.max_retries
        if 0 <= most < self.failed:
            raise type(error)(f"{error}. Given up after {most} retries (errors.max.retries)") from error
        seconds = self.settings.retry_wait_ms / 1000
        limit = f" of {most}" if most >= 0 else ""
        log(f"{error}; retry {self.failed}{limit} in {seconds:g} s")
        return seconds
