"""What a part is given: the sizes, a folder, sandboxes of its own, and a way to say how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mssql_cdc_tests.benchmarks.goals import GOALS
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.server import Server, sandbox
from mssql_cdc_tests.benchmarks.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Bench:
    """The place of a part.

    Attributes:
        folder: Where everything is written.
        sizes: How much it works on.
    """

    folder: Path
    sizes: Sizes

    @contextmanager
    def sandbox(self) -> Generator[Server]:
        """Start a sandbox; its memory is given back when the part ends it."""
        with sandbox(self.folder) as server:
            yield server

    def goal(self, key: str, value: float, *, note: str = "") -> Figure:
        """A figure with a target.

        Args:
            key: Which one (`GOALS`).
            value: What was measured.
            note: What has to be said of it.
        """
        return GOALS[key].figure(value, self.sizes, note=note)

    def say(self, text: str) -> None:
        """Print what is done now, with the time."""
        say(text)


def say(text: str) -> None:
    """Print a line of progress with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)  # noqa: T201 (a report)
