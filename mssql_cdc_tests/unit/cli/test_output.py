"""Command output: plain text in files and pipes; bars, tables and colors on terminals."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import pytest

from mssql_cdc.cli.output import LATE, Output, screen, table

COLUMNS = ("table", "result", "rows")
ROWS = [("shop.dbo.orders", "equal", "60000"), ("shop.dbo.[bold]", "DIFFERS", "7")]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3\dm")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_a_table_in_a_pipe_is_aligned_text():
    results, notes = io.StringIO(), io.StringIO()
    Output(results, notes).table(COLUMNS, ROWS, right=("rows",))
    assert results.getvalue().splitlines() == [
        "table            result    rows",
        "shop.dbo.orders  equal    60000",
        "shop.dbo.[bold]  DIFFERS      7",
    ]
    assert notes.getvalue() == ""


def test_a_table_in_a_pipe_is_never_wrapped():
    results = io.StringIO()
    Output(results, io.StringIO()).table(("table", "not compared"), [("t", "column " * 60)])
    assert len(results.getvalue().splitlines()) == 2


def test_a_table_on_a_terminal_has_a_rule_and_colors():
    results = Terminal()
    Output(results, Terminal()).table(COLUMNS, ROWS, right=("rows",))
    assert COLOUR.search(results.getvalue())
    shown = CONTROL.sub("", results.getvalue())
    assert "──" in shown
    assert "shop.dbo.[bold]" in shown


def test_no_color_turns_colors_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    results, notes = Terminal(), Terminal()
    output = Output(results, notes)
    output.table(COLUMNS, ROWS)
    output.error("wrong")
    assert not COLOUR.search(results.getvalue() + notes.getvalue())


def test_a_dumb_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "dumb")
    results, notes = Terminal(), Terminal()
    output = Output(results, notes)
    output.table(COLUMNS, ROWS)
    output.line("starting")
    assert "\x1b" not in results.getvalue() + notes.getvalue()


def test_progress_in_a_pipe_is_a_line_with_the_time_per_step():
    notes = io.StringIO()
    with Output(io.StringIO(), notes).progress() as show:
        show("checking shop.dbo.orders", 0, 2)
        show("checking shop.dbo.lines", 1, 2)
    lines = [re.sub(r"^\d\d:\d\d:\d\d", "TIME", line) for line in notes.getvalue().splitlines()]
    assert lines == ["TIME checking shop.dbo.orders (0 of 2 done)", "TIME checking shop.dbo.lines (1 of 2 done)"]


def test_progress_in_a_pipe_says_once_that_all_is_done():
    notes = io.StringIO()
    with Output(io.StringIO(), notes).progress() as show:
        for rate, done in enumerate((1, 1, 2, 2)):
            show(f"{rate} rows/s", done, 2)
    said = ["0 rows/s (1 of 2 done)", "1 rows/s (1 of 2 done)", "2 rows/s (2 of 2 done)"]
    assert [line[9:] for line in notes.getvalue().splitlines()] == said


def test_progress_on_a_terminal_is_a_bar_that_does_not_disturb_other_lines():
    notes = Terminal()
    output = Output(io.StringIO(), notes)
    with output.progress() as show:
        show("checking shop.dbo.[orders]", 1, 2)
        output.line("starting Spark")
    shown = CONTROL.sub("", notes.getvalue())
    assert "checking shop.dbo.[orders]" in shown
    assert "1/2" in shown
    assert re.search(r"\d\d:\d\d:\d\d starting Spark\n", shown)
    assert "(1 of 2 done)" not in shown


def test_a_long_line_on_a_terminal_is_not_wrapped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    notes = Terminal()
    Output(io.StringIO(), notes).error("SELECT 1 " * 20)
    assert CONTROL.sub("", notes.getvalue()).count("\n") == 1


def test_a_screen_redraws_in_place_on_a_terminal_and_appends_elsewhere():
    for out in (io.StringIO(), Terminal()):
        with screen(out) as show:
            show(table(COLUMNS, ROWS), ["first"])
            show(table(COLUMNS, ROWS), ["second"])
        before = out.getvalue().split("second")[0]
        if isinstance(out, Terminal):
            assert before.count("\x1b[1A") == 3, "the cursor moves three lines up, to the heading"
        else:
            assert (before.count("table"), "\x1b" in before) == (2, False)


def test_a_cell_with_a_style_is_colored_on_a_terminal_only():
    results, plain = Terminal(), io.StringIO()
    Output(results, Terminal()).table(("lag",), [(("5 min", LATE),)])
    Output(plain, io.StringIO()).table(("lag",), [(("5 min", LATE),)])
    assert COLOUR.search(results.getvalue().replace("\x1b[1;31m", "\x1b[31m"))
    assert plain.getvalue().splitlines() == ["lag", "5 min"]


OUTPUTS: dict[str, Callable[[Output], object]] = {
    "a result": lambda output: output.result("found sesame"),
    "a table": lambda output: output.table(("found", "lag"), [("found sesame", ("sesame", LATE))]),
    "JSON": lambda output: output.json({"found": ["sesame", {"deep": "say sesame"}]}),
    "a line": lambda output: output.line("found sesame"),
    "an error": lambda output: output.error("found sesame"),
    "a trace": lambda output: output.trace(ValueError("found sesame")),
    "progress": lambda output: _progress(output, "found sesame"),
    "a screen": lambda output: _screen(output, "found sesame"),
}


def _progress(output: Output, text: str) -> None:
    with output.progress() as show:
        show(text, 1, 2)


def _screen(output: Output, text: str) -> None:
    with output.screen() as show:
        show(("lag",), [(text,)], [text])


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("write", OUTPUTS.values(), ids=list(OUTPUTS))
def test_no_output_shows_a_secret(write: Callable[[Output], object], stream: type[io.StringIO]):
    results, notes = stream(), stream()
    output = Output(results, notes)
    output.redact = lambda text: text.replace("sesame", "***")
    write(output)
    shown = results.getvalue() + notes.getvalue()
    assert "sesame" not in shown
    assert "***" in shown


def test_json_stays_json_whatever_a_secret_is():
    results = io.StringIO()
    output = Output(results, io.StringIO())
    output.redact = lambda text: text.replace("100", "***")
    output.json({"rows": 100, "error": "100 times", "lag": None})
    assert json.loads(results.getvalue()) == {"rows": 100, "error": "*** times", "lag": None}
