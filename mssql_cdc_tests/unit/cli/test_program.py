"""The program: help, version and completion, mutually exclusive options, error lines and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

import mssql_cdc
from mssql_cdc.cli import main, program

HEAVY = {"dagster", "deltalake", "numpy", "pandas", "pyarrow", "pydantic", "pyodbc", "pyspark", "rich"}


@pytest.mark.parametrize("command", [[], *([name] for name in program.commands)], ids=" ".join)
def test_help_has_examples_that_parse_and_the_exit_codes(command: list[str], capsys: pytest.CaptureFixture[str]):
    assert main([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Exit codes:" in shown
    examples = [line.split() for line in shown.splitlines() if line.startswith("    mssql-cdc ")]
    assert examples
    for _, name, *rest in examples:
        options = rest[: rest.index("|")] if "|" in rest else rest
        program.commands[name].make_context(name, options)


def test_help_imports_nothing_heavy():
    code = f"import sys; from mssql_cdc.cli import main; main(['--help']); print({HEAVY} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("set()\n")


def test_every_command_fits_in_the_list_of_commands(capsys: pytest.CaptureFixture[str]):
    main(["--help"])
    listed = capsys.readouterr().out.split("Commands:\n")[1].split("\n\n")[0]
    assert "..." not in listed


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert mssql_cdc.__version__ in capsys.readouterr().out


def test_a_call_without_a_command_shows_the_help_with_code_2(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_completion_offers_commands():
    asked = {"_MSSQL_CDC_COMPLETE": "bash_complete", "COMP_WORDS": "mssql-cdc r", "COMP_CWORD": "1"}
    code = "import sys; from mssql_cdc.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["plain,records", "plain,run"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--until-caught-up", "--seconds", "5"],
        ["run", "--timeout", "600"],
        ["run", "--seconds", "5", "--timeout", "600"],
        ["acknowledge", "--table", "dbo.orders", "--restored"],
        ["maintain", "--retain-hours", "a week"],
        ["snapshot", "--incremental"],
        ["snapshot", "--where", "id < 3"],
        ["snapshot", "--stop", "--table", "dbo.orders", "--where", "id < 3"],
        ["snapshot", "--pause", "--table", "dbo.orders"],
        ["run", "--no-such-option"],
    ],
    ids=" ".join,
)
def test_invalid_options_end_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main([*arguments, "--config", "shop.json"]) == 2
    assert f"Try 'mssql-cdc {arguments[0]} --help'" in capsys.readouterr().err


def test_missing_configuration_is_reported_on_one_line_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", "--config", str(tmp_path / "no.json")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("mssql-cdc: ")
    assert "no such file" in line


def test_each_problem_of_a_configuration_is_reported_on_its_own_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    config = {"topic.prefix": "shop", "database.hostname": "h", "database.names": "shop"}
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(config | {"poll.interval.ms": "soon", "snapshot.mode": "sometimes"}), encoding="utf-8")
    assert main(["check", "--config", str(path)]) == 2
    head, *problems = capsys.readouterr().err.strip().splitlines()
    assert "2 problems" in head
    assert [problem.split(":")[0] for problem in problems] == ["  - poll.interval.ms", "  - snapshot.mode"]
    path.write_text(json.dumps(config | {"poll.interval.ms": "soon"}), encoding="utf-8")
    assert main(["check", "--config", str(path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "poll.interval.ms: found 'soon'" in line


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "mssql-cdc: interrupted"),
        (PermissionError(13, "Permission denied", "lake"), 2, "mssql-cdc: PermissionError: [Errno 13]"),
        (ZeroDivisionError("a defect\nof two lines"), 1, "mssql-cdc: ZeroDivisionError: a defect of two lines"),
    ],
    ids=["interrupt", "file", "defect"],
)
def test_a_foreign_error_is_reported_on_one_line_with_its_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails(_path: Path) -> NoReturn:
        raise error

    monkeypatch.setattr("mssql_cdc.config.load_connector", fails)
    assert main(["check", "--config", "shop.json"]) == code
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(said)


def test_debug_shows_the_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", "--config", str(tmp_path / "no.json"), "--debug"]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.splitlines()[-1].startswith("mssql-cdc: ")
