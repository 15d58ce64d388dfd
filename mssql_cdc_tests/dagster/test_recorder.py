"""The thread that writes a run's events: its queue does not grow with what waits, and its end is bounded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

from mssql_cdc.defs.recorder import Recorder


@dataclass
class Log:
    """Receives log lines, as the run's background does."""

    lines: list[str] = field(default_factory=list)

    def log(self, line: str) -> None:
        self.lines.append(line)


def recorder(log: Log) -> Recorder:
    return Recorder(cast("Any", None), cast("Any", log))


def test_an_action_that_waits_already_is_not_done_twice():
    done: list[str] = []
    one = recorder(Log())

    def look() -> None:
        done.append("look")

    for _ in range(100):
        one.post_once(look)
    one.post(lambda: done.append("end"))
    one.start()
    one.post_once(look)
    one.close()
    assert done.count("look") in {1, 2}, "once more if it had begun"
    one.start()
    one.post_once(look)
    one.close()
    assert done[-1] == "look", "what is done may be posted again"


def test_everything_that_was_posted_is_done_at_the_end():
    done: list[int] = []
    one = recorder(Log())
    for number in range(50):
        one.post(lambda number=number: done.append(number))
    one.start()
    one.close()
    assert done == [*range(50)]


def test_the_end_does_not_wait_for_what_takes_too_long():
    done, log = list[int](), Log()
    one = recorder(log)
    for number in range(1_000):
        one.post(lambda number=number: (time.sleep(0.02), done.append(number)))
    one.start()
    one.close(patience=0.1)
    assert len(done) < 1_000
    assert any("not reported" in line for line in log.lines)
