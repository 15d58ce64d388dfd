"""Events are all that stands on standard error, and lines of the log have the level and the code of their condition."""

from __future__ import annotations

import io
import json
import logging
import warnings
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import mssql_cdc
from mssql_cdc.serve.conditions import CONDITIONS, Condition, condition_of
from mssql_cdc.serve.events import Events, logged

PRODUCT = Path(mssql_cdc.__file__).parent
OWN = PRODUCT / "serve" / "conditions.py"


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


def lines(said: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.getvalue().splitlines()]


@pytest.mark.parametrize(
    "condition",
    [one for one in CONDITIONS if one.code != "signal-log"],  # Made of the signal's type: end_to_end/test_follow_log.
    ids=lambda one: one.code,
)
def test_lines_of_every_condition_are_written_somewhere(condition: Condition):
    """A line that is phrased anew takes its piece of text along, or loses level and code without a word."""
    texts = [path.read_text(encoding="utf-8") for path in PRODUCT.rglob("*.py") if path != OWN]
    for piece in condition.says:
        assert any(piece in text for text in texts), piece


def test_the_documentation_lists_every_condition_and_no_other():
    text = (PRODUCT.parent / "docs" / "records.md").read_text(encoding="utf-8")
    section = text.partition("### Conditions in the log\n")[2].partition("\n#")[0]
    rows = [f"| `{one.code}` | {one.level} | {one.meaning} |" for one in CONDITIONS]
    shown = [line for line in section.splitlines() if line.startswith("| `")][1:]  # Without the head.
    assert shown == rows


def test_no_condition_hides_a_later_one():
    for condition in CONDITIONS:
        for piece in condition.says:
            found = condition_of(piece)
            assert found is not None
            assert found.code == condition.code, piece


def test_secrets_are_taken_out_of_texts_only_so_that_an_event_stays_json(said: io.StringIO):
    """A secret like `100` made `"rows": ***`, one like `database` another member."""
    events = Events(said)
    events.redact = lambda text: text.replace("100", "***").replace("database", "***").replace("progress", "***")
    at = datetime(2100, 1, 1, tzinfo=UTC)
    told = {"rows": 100, "lag": None, "at": at, "message": "100 rows", "tables": ["t100"], "own": {"rate": 100.0}}
    events.emit("snapshot", database="inv", state="progress", path=Path("lake/100"), **told)
    assert lines(said) == [
        {
            "event": "snapshot", "database": "inv", "state": "progress", "path": "lake/***", "rows": 100, "lag": None,
            "at": "2100-01-01T00:00:00+00:00", "message": "*** rows", "tables": ["t***"], "own": {"rate": 100.0},
        }
    ]  # fmt: skip


def test_a_line_of_progress_is_info_and_has_no_code(said: io.StringIO):
    Events(said).log("place1.dbo.items: 2 rows")
    assert lines(said) == [
        {"event": "log", "level": "INFO", "logger": "mssql_cdc", "message": "place1.dbo.items: 2 rows"}
    ]


def test_a_line_of_a_condition_has_its_level_its_code_and_debeziums_logger(said: io.StringIO):
    Events(said).log(
        "shop: Guardrail limit exceeded: 5 tables configured for capture, but guardrail.collections.max allows 4"
    )
    (line,) = lines(said)
    assert (line["level"], line["code"]) == ("WARN", "guardrail-exceeded")
    assert line["logger"] == "io.debezium.config.CommonConnectorConfig"


@pytest.mark.filterwarnings("default::UserWarning")
def test_what_libraries_and_threads_say_is_an_event(said: io.StringIO, capfd: pytest.CaptureFixture[str]):
    events = Events(said)

    def fail() -> None:
        raise ValueError("a thread fails")

    with logged(events):
        logging.getLogger("another.library").error("it %s", "broke")
        logging.getLogger("mssql_cdc").warning("Failed to find row in table %s", "x")
        warnings.warn("deprecated", UserWarning, stacklevel=1)
        thread = Thread(target=fail)
        thread.start()
        thread.join()
    found = [(one["logger"], one["level"], one.get("code")) for one in lines(said)]
    assert found == [
        ("another.library", "ERROR", None),
        ("io.debezium.processors.reselect.ReselectColumnsPostProcessor", "WARN", "reselect-row-missing"),
        ("py.warnings", "WARN", None),
        ("mssql_cdc", "ERROR", None),
    ]
    assert "ValueError: a thread fails" in lines(said)[-1]["message"]
    assert capfd.readouterr().err == ""


def test_an_error_has_its_traceback_only_on_request(said: io.StringIO):
    Events(said).error(ValueError("wrong"))
    Events(said, traces=True).error(ValueError("wrong"))
    without, with_trace = lines(said)
    assert without["message"] == "ValueError: wrong"
    assert without["retriable"] is False
    assert "trace" not in without
    assert "ValueError: wrong" in with_trace["trace"]
