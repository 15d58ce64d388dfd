"""T-SQL script files as sqlcmd runs them: batches between GO lines, stop at the first error.

Running a batch belongs to the session, sqlcmd's own commands to `sqlcmd`.
"""

import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.sqlcmd import Script, ScriptError, blanked, load

_SEPARATOR = re.compile(r"^[ \t]*GO(?:[ \t]+(\d+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_INFORMATION = 10

__all__ = ["Batch", "BatchRunner", "ScriptError", "run_script", "split_batches"]


class BatchRunner(Protocol):
    """The part of a session that scripts need."""

    def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        """Run a batch of SQL text."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The text between two separators, its first line, and how many times to run it."""

    text: str
    line: int
    times: int = 1


def split_batches(script: str) -> Iterator[Batch]:
    """The batches of a script; GO inside strings, brackets and comments does not count."""
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(blanked(script)):
        text = script[start : separator.start()]
        if text.strip():
            yield Batch(text, line, int(separator[1] or 1))
        line += script.count("\n", start, separator.end())
        start = separator.end()
    if script[start:].strip():
        yield Batch(script[start:], line)


async def run_script(session: BatchRunner, path: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run every batch of the file.

    Args:
        session: runs the batches.
        path: the script.
        variables: sqlcmd variables; the environment's if None.

    Raises:
        ScriptError: the file cannot be read, or a statement failed; names the file and the line.
    """
    script = load(path, os.environ if variables is None else variables)
    for batch in split_batches(script.text):
        for _ in range(batch.times):
            async for event in session.batch(batch.text):
                if isinstance(event, Message) and event.severity > _INFORMATION and not script.ignores_errors:
                    raise ScriptError(_describe(script, batch, event))


def _describe(script: Script, batch: Batch, message: Message) -> str:
    # In a procedure, the line of a message is relative to the start of the procedure.
    line = batch.line if message.procedure else batch.line + max(message.line, 1) - 1
    within = f", procedure {message.procedure} line {message.line}" if message.procedure else ""
    origin = script.origins[min(line, len(script.origins)) - 1]
    return (
        f"{origin.path}:{origin.line}: Msg {message.number}, Level {message.severity}, State {message.state}{within}: "
        f"{message.text}"
    )
