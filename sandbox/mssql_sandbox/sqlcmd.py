"""sqlcmd's own commands in a script: `:setvar`, `:r`, `:on error` and `$(name)`. Other commands are errors.

A command stands alone on its line, outside comments and strings. A variable set with `:setvar` takes precedence over
the environment; names ignore case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\[[^\]\n]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_COMMAND = re.compile(r"^[ \t]*(:[A-Za-z]+|!!)(?:[ \t]+(.*?))?[ \t\r]*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\(([A-Za-z_][\w-]*)\)")
_SETTING = re.compile(r"([A-Za-z_][\w-]*)(?:\s+(?:\"([^\"]*)\"|(\S+)))?\s*")
_DEPTH = 16


class ScriptError(Exception):
    """A script cannot be read, or one of its statements failed; the text names file and line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The file and line that a line of the assembled script comes from."""

    path: Path
    line: int


@dataclass(slots=True)
class Script:
    """A script after its commands were executed: its lines, the origin of each, and its variables."""

    variables: dict[str, str]
    lines: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    ignores_errors: bool = False

    @property
    def text(self) -> str:
        """The assembled script."""
        return "\n".join(self.lines)


def blanked(script: str) -> str:
    """The script with dots for quoted text and blanks for line comments; length and line numbers are unchanged."""
    return QUOTED.sub(
        lambda match: re.sub(r"[^\n]", ".", match[0]) if match[0][0] != "-" else " " * len(match[0]), script
    )


def load(path: Path, variables: Mapping[str, str]) -> Script:
    """Read a script and the files it includes.

    Raises:
        ScriptError: a file cannot be read, a command is unknown, or a variable is not defined.
    """
    script = Script({name.casefold(): value for name, value in variables.items()})
    _include(script, path, 0)
    return script


def _include(script: Script, path: Path, depth: int) -> None:
    if depth > _DEPTH:
        raise ScriptError(f"{path}: scripts include each other more than {_DEPTH} levels deep")
    text = _read(path)
    bare, place = blanked(text), 0
    for command in _COMMAND.finditer(bare):
        _add(script, path, text, place, command.start())
        line = text.count("\n", 0, command.start()) + 1
        argument = text[command.start(2) : command.end(2)] if command[2] is not None else ""
        _carry_out(script, Origin(path, line), command[1].lower(), argument.strip(), depth)
        place = min(command.end() + 1, len(text))
    _add(script, path, text, place, len(text))


def _add(script: Script, path: Path, text: str, start: int, stop: int) -> None:
    """Add the lines between two commands, with variables replaced."""
    if start >= stop:
        return
    first = text.count("\n", 0, start) + 1

    def value(match: re.Match[str]) -> str:
        found = script.variables.get(match[1].casefold())
        if found is None:
            if any(one.start() <= match.start() < one.end() for one in _COMMENT.finditer(text) if one[0][0] != "'"):
                return match[0]
            line = text.count("\n", 0, match.start()) + 1
            raise ScriptError(f"{path}:{line}: the scripting variable '{match[1]}' is not defined")
        return found

    pieces, place = [], start
    for match in _VARIABLE.finditer(text, start, stop):
        pieces += [text[place : match.start()], value(match)]
        place = match.end()
    lines = ("".join(pieces) + text[place:stop]).removesuffix("\n").split("\n")
    script.lines += lines
    script.origins += [Origin(path, first + number) for number in range(len(lines))]


def _carry_out(script: Script, origin: Origin, command: str, argument: str, depth: int) -> None:
    where = f"{origin.path}:{origin.line}"
    if command == ":setvar":
        match = _SETTING.fullmatch(argument)
        if match is None:
            raise ScriptError(f"{where}: :setvar expects a name and a value, found: {argument}")
        value = match[2] if match[2] is not None else match[3]
        if value is None:
            script.variables.pop(match[1].casefold(), None)
        else:
            script.variables[match[1].casefold()] = value
    elif command == ":r":
        # Scripts written on Windows use backslashes.
        name = argument.strip('"').replace("\\", "/")
        _include(script, origin.path.parent / name, depth + 1)
    elif command == ":on":
        words = argument.lower().split()
        if words not in (["error", "exit"], ["error", "ignore"]):
            raise ScriptError(f"{where}: :on error expects exit or ignore, found: {argument}")
        script.ignores_errors = words[1] == "ignore"
    else:
        raise ScriptError(f"{where}: unknown command {command}; supported are :setvar, :r and :on error")


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: the script cannot be read: {error}") from error
