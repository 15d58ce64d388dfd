"""The output of commands: results on standard output; progress, notices and errors on standard error.

On a terminal, rich draws bars, tables and colors (`NO_COLOR` turns colors off); elsewhere the same facts are plain
lines and aligned text. The commands define the contents.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ShowProgress = Callable[[str, int, int], None]
"""The current item, the number of completed parts, the number of parts."""

Cell = str | tuple[str, str]
"""A text, or a text with its style."""


class ShowTable(Protocol):
    """Shows a table (headings, cells) and lines below it; `right`: the headings of right-aligned columns."""

    def __call__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        lines: Sequence[str],
        *,
        right: Collection[str] = (),
    ) -> None:
        """Show them instead of the last ones."""
        ...


LATE = "bold red"
_STYLES = {"equal": "green", "DIFFERS": LATE, "lost": LATE, "failed": LATE}
_WIDEST = 10_000


class Output:
    """The two streams of one command. `debug`: errors come with their trace.

    `redact` removes secrets from everything that is shown; this is the only place that does, so commands need not.
    """

    def __init__(self, results: TextIO | None = None, notes: TextIO | None = None) -> None:
        self.debug = False
        self.redact: Callable[[str], str] = str
        self._results = results or sys.stdout
        self._notes = notes or sys.stderr

    def line(self, text: str) -> None:
        """Print a line of progress with the time."""
        self._note(time.strftime("%H:%M:%S"), f" {text}", style="dim")

    def error(self, text: str) -> None:
        """Print the reason why the command failed."""
        self._note("mssql-cdc:", f" {text}", style="bold red")

    @contextmanager
    def progress(self) -> Generator[ShowProgress]:
        """Show the progress of long work: one bar on a terminal; elsewhere a line per call, one once all is done."""
        redact = self.redact
        if not is_terminal(self._notes):
            last = (0, 1)

            def tell(text: str, done: int, total: int) -> None:
                nonlocal last
                if done < total or last != (done, total):
                    self.line(f"{text} ({done} of {total} done)")
                last = (done, total)

            yield tell
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as bars:
            bar = bars.add_task("", total=None, visible=False)
            yield lambda text, done, total: bars.update(
                bar, description=redact(text), completed=done, total=total, visible=done < total
            )

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Collection[str] = ()) -> None:
        """Print a result as a table.

        Args:
            columns: The headings.
            rows: The cells.
            right: The headings of right-aligned columns, such as numbers.
        """
        shown = self._table(columns, rows, right)
        if is_terminal(self._results):
            from rich.box import SIMPLE_HEAD

            shown.box = SIMPLE_HEAD
            console(self._results).print(shown)
        else:
            self.record(plain(shown))

    @contextmanager
    def screen(self) -> Generator[ShowTable]:
        """Show a table and lines below it repeatedly (`screen`)."""
        with screen(self._results) as show:

            def redacted(
                columns: Sequence[str],
                rows: Iterable[Sequence[Cell]],
                lines: Sequence[str],
                *,
                right: Collection[str] = (),
            ) -> None:
                show(self._table(columns, rows, right), [self.redact(line) for line in lines])

            yield redacted

    def result(self, text: str) -> None:
        """Print a result as plain text."""
        self.record(self.redact(text))

    def json(self, value: object, *, indent: int | None = None) -> None:
        """Print a result as JSON; secrets are removed only from texts in it, so that it stays JSON.

        Args:
            value: A value that `json.dumps` accepts.
            indent: As in `json.dumps`.
        """
        from mssql_cdc.config.redaction import redacted_values

        self.record(json.dumps(redacted_values(value, self.redact), indent=indent, ensure_ascii=False))

    def record(self, text: str) -> None:
        """Print data that another program reads, unchanged: positions and records of the lake."""
        self._results.write(f"{text}\n")
        self._results.flush()

    def _table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Collection[str]) -> Table:
        hidden = [[self._cell(cell) for cell in row] for row in rows]
        return table(columns, hidden, right=right)

    def _cell(self, cell: Cell) -> Cell:
        return self.redact(cell) if isinstance(cell, str) else (self.redact(cell[0]), cell[1])

    def trace(self, error: BaseException) -> None:
        """Print where an error came from."""
        self._notes.write(self.redact("".join(traceback.format_exception(error))))
        self._notes.flush()

    def _note(self, head: str, text: str, *, style: str) -> None:
        text = self.redact(text)
        if not is_terminal(self._notes):
            self._notes.write(f"{head}{text}\n")
            self._notes.flush()
            return
        from rich.text import Text

        self._console.print(Text.assemble((head, style), text), soft_wrap=True)

    @cached_property
    def _console(self) -> Console:
        """One console for all notes, so that a bar stays below the printed lines."""
        return console(self._notes)


def console(stream: TextIO) -> Console:
    """Return a console that shows texts unchanged, without interpreting markup or highlighting numbers."""
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Collection[str] = ()) -> Table:
    """Build a table with columns two spaces apart under their headings, without lines.

    Args:
        columns: The headings.
        rows: The cells.
        right: The headings of right-aligned columns, such as numbers.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in columns:
        made.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        cells = (cell if isinstance(cell, tuple) else (cell, _STYLES.get(cell, "")) for cell in row)
        made.add_row(*(Text(text, style=style) for text, style in cells))
    return made


@contextmanager
def screen(stream: TextIO) -> Generator[Callable[[Table, Sequence[str]], None]]:
    """Show a table and lines below it repeatedly: a terminal overwrites the last ones, other outputs append."""
    if not is_terminal(stream):

        def append(shown: Table, lines: Sequence[str]) -> None:
            stream.write("\n".join([plain(shown), *lines]) + "\n")
            stream.flush()

        yield append
        return
    from rich.console import Group
    from rich.live import Live

    with Live(console=console(stream), auto_refresh=False) as live:
        yield lambda shown, lines: live.update(Group(shown, *lines), refresh=True)


def plain(shown: Table) -> str:
    """Render the table as text of any width."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=_WIDEST, no_color=True, force_terminal=False).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
