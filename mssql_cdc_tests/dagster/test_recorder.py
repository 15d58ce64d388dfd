"""The thread that writes a run's events: its queue does not grow with what waits, and its end is bounded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

import dagster as dg
import pytest

from mssql_cdc.defs.recorder import Recorder


@dataclass
class Log:
    """Receives log lines, as the run's background does."""

    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log(self, line: str) -> None:
        self.lines.append(line)

    def warn(self, line: str) -> None:
        self.warnings.append(line)

    def drain(self) -> None:
        pass

    def redact(self, line: str) -> str:
        return line


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


def fail(text: str) -> None:
    raise OSError(text)


def test_an_operators_run_fails_with_the_first_error_of_its_report_after_all_is_done():
    done, log = list[str](), Log()
    one = recorder(log)
    one.post(lambda: fail("the first"))
    one.post(lambda: fail("the second"))
    one.post(lambda: done.append("behind them"))
    one.start()
    with pytest.raises(dg.Failure, match=r"An event could not be reported: OSError: the first"):
        one.close()
    assert done == ["behind them"]
    assert len(log.warnings) == 2


def test_an_error_of_the_report_does_not_hide_what_ends_the_run():
    one = recorder(Log())
    one.post(lambda: fail("the report"))
    one.start()

    def end() -> None:
        try:
            raise KeyError("the run")
        finally:
            one.close()

    with pytest.raises(KeyError):
        end()


@pytest.mark.parametrize("how", [{"patience": 20}, {"fails": False}], ids=["capture", "snapshot"])
def test_a_run_of_the_sensor_goes_on_and_warns_where_its_report_fails(how: dict[str, Any]):
    log = Log()
    one = recorder(log)
    one.post(lambda: fail("the report"))
    one.start()
    one.close(**how)
    assert ["the report" in line for line in log.warnings] == [True]
