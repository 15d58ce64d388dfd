"""`mssql-cdc …` in a process that announces the step it is in, so that a test can kill it there.

`python -m mssql_cdc_tests.end_to_end.announced_run FD AIM run --config …` writes a line `<phase> <step> <number>` to
the file descriptor whenever a step begins or ends. `AIM` is such a line or `-`: there the process stops and waits for
the kill. Groups and chunks are small, so that a few hundred rows take several. Nothing else is changed. The test is
`test_snapshot_kills.py`.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

PLACES = {
    "read": ["capture.range.write_together", "capture.snapshot.chunk_groups._results"],
    "commit": ["capture.range.commit", "capture.snapshot.chunk_groups.commit", "capture.incremental.emission.commit"],
    "offsets": [
        "capture.range.append_offsets",
        "capture.snapshot.begin.append_offsets",
        "capture.snapshot.finish.append_offsets",
        "capture.incremental.emission.append_offsets",
        "follow.incremental_step.append_offsets",
        "follow.sweeps.append_offsets",
    ],
    "fold": ["lake.current.CurrentTables._apply"],
    "stage": ["follow.incremental_step.read_group"],
    "emit": ["capture.incremental.emission.emit"],
    "sweep": ["follow.sweeps._find", "follow.sweeps._Work._commit", "follow.sweeps._apply", "follow.sweeps._note"],
}
"""The functions of each step, under the names by which they are called."""
SMALL = {
    "capture.snapshot.take.CHUNK_ROWS": 40,
    "capture.snapshot.take.GROUP_CHUNKS": 1,
    "capture.incremental.chunks.GROUP_ROWS": 50,
    "follow.incremental_step.MOST_STAGED": 3,
}


@dataclass
class Announcer:
    """Writes the steps to a file descriptor, and stops at the aim: before or after a call that is not an earlier one.

    Attributes:
        descriptor: Where lines are written to.
        aim: Phase, step and number; None: nowhere.
    """

    descriptor: int
    aim: tuple[str, str, int] | None
    _numbers: dict[str, itertools.count[int]] = field(
        default_factory=lambda: {step: itertools.count(1) for step in PLACES}
    )

    def say(self, phase: str, step: str, number: int) -> None:
        """Announce a step, and stop there if it is the aim."""
        os.write(self.descriptor, f"{phase} {step} {number}\n".encode())
        if self.aim is not None and self.aim[:2] == (phase, step) and number >= self.aim[2]:
            Event().wait()

    def announced(self, step: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which announces that it begins and that it ends."""

        def call(*arguments: Any, **named: Any) -> Any:
            if step == "fold" and not arguments[1]:
                return real(*arguments, **named)  # There is nothing to apply.
            number = next(self._numbers[step])
            self.say("before", step, number)
            try:
                result = real(*arguments, **named)
            except BaseException:
                self.say("failed", step, number)
                raise
            self.say("after", step, number)
            return result

        return call


def replace(name: str, change: Callable[[Any], Any]) -> None:
    """Replace what a name of the product stands for.

    Args:
        name: The name, below `mssql_cdc`; it has to be there.
        change: Makes the new value of the old one.
    """
    path, _, last = name.rpartition(".")
    module, _, owner = path.rpartition(".")
    is_class = owner[:1].isupper() or owner[:2] == "_W"
    found = importlib.import_module(f"mssql_cdc.{module if is_class else path}")
    holder = getattr(found, owner) if is_class else found
    setattr(holder, last, change(getattr(holder, last)))


def main() -> int:
    """Run the command line that the arguments name."""
    descriptor, aim, *arguments = sys.argv[1:]
    phase, step, number = aim.split() if aim != "-" else ("", "", "0")
    announcer = Announcer(int(descriptor), (phase, step, int(number)) if phase else None)
    for name, value in SMALL.items():
        replace(name, lambda _, value=value: value)
    for one, names in PLACES.items():
        for name in names:
            replace(name, lambda real, one=one: announcer.announced(one, real))
    from mssql_cdc.cli import main as run

    os.write(announcer.descriptor, b"before start 1\nafter start 1\n")
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
