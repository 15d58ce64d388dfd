"""`mssql-cdc records --follow` as a process of its own: its records, its events, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any

from mssql_cdc_tests.end_to_end.kit import Place

Line = dict[str, Any]


@dataclass
class Followed:
    """A running process; `records` and `events` grow while it runs; `noise` are lines that are neither."""

    process: subprocess.Popen[str]
    records: list[Line] = field(default_factory=list[Line])
    events: list[Line] = field(default_factory=list[Line])
    noise: list[str] = field(default_factory=list[str])
    _readers: list[Thread] = field(default_factory=list[Thread])

    def wait_for(self, condition: Callable[[Followed], object], *, timeout: float = 120) -> None:
        """Wait until the condition holds; fail if the process ends first."""
        end = time.monotonic() + timeout
        while not condition(self):
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.events[-5:]}"
            assert time.monotonic() < end, f"{len(self.records)} records; {self.events[-5:]}"
            time.sleep(0.02)

    def changes(self, count: int) -> list[Line]:
        """Wait for so many records of tables, and return their keys, operations and values."""
        self.wait_for(lambda one: len(data_of(one.records)) >= count)
        return data_of(self.records)

    def command(self, **members: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(members) + "\n")
        self.process.stdin.flush()

    def begin_to_read(self) -> None:
        """Read the records, which waited in the pipe until now."""
        assert self.process.stdout is not None
        self.read(self.process.stdout, self.records)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self, timeout: float = 120) -> int:
        """Wait for the end, and return the exit code."""
        code = self.process.wait(timeout)
        for reader in self._readers:
            reader.join()
        return code

    def read(self, stream: IO[str], into: list[Line]) -> None:
        """Collect the lines of a stream; a last line that a kill cut off is no line."""

        def collect() -> None:
            for line in stream:
                if not line.endswith("\n"):
                    continue
                try:
                    into.append(json.loads(line))
                except ValueError:
                    self.noise.append(line)

        self._readers.append(Thread(target=collect, daemon=True))
        self._readers[-1].start()


def follow(place: Place, *options: str, control: bool = False, state: bool = True) -> subprocess.Popen[str]:
    """Start the process with pipes; the arguments are those of `followed`."""
    where = ["--state-dir", str(place.folder / "state")] if state else ["--warehouse", str(place.warehouse)]
    arguments = ["--config", str(place.config), *where, "--follow", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", "records", *arguments],
        stdin=subprocess.PIPE if control else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",  # A kill may cut off the last line within a character.
        start_new_session=True,
        env={**os.environ, **({"MSSQL_CDC_CONTROL": "stdin"} if control else {})},
    )


@contextmanager
def followed(
    place: Place, *options: str, control: bool = False, reads: bool = True, state: bool = True
) -> Iterator[Followed]:
    """Follow a place's connector; its state is kept in the folder `state`.

    Args:
        place: The place.
        options: Further options of the command.
        control: Whether commands come from standard input.
        reads: Whether records are read as they come; otherwise from `begin_to_read` on.
        state: Whether it has a state directory; otherwise, it captures into the place's lake.
    """
    process = follow(place, *options, control=control, state=state)
    found = Followed(process)
    assert process.stderr is not None
    if reads:
        found.begin_to_read()
    found.read(process.stderr, found.events)
    with process:  # Closes the pipes.
        try:
            yield found
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            found.ended()
    assert not found.noise, "each line of both outputs is one JSON object"


def data_of(records: Sequence[Line]) -> list[Line]:
    """Return the records of tables: neither schema changes nor transactions nor heartbeats, nor tombstones."""
    return [one for one in records if one["value"] is not None and "op" in (one["value"]["payload"] or {})]


def keys_of(records: Sequence[Line]) -> list[Any]:
    """Return the operation and the key of each record of a table."""
    found = ((one["value"]["payload"]["op"], one["key"]["payload"]) for one in data_of(records))
    return [(op, *key.values()) for op, key in found]


def offsets_file(folder: Path, record: Line) -> Path:
    """Write the offset of a record as Kafka Connect's REST API shows it."""
    path = folder / "offsets.json"
    entry = {"partition": record["sourcePartition"], "offset": record["sourceOffset"]}
    path.write_text(json.dumps({"offsets": [entry]}), encoding="utf-8")
    return path
