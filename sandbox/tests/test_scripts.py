"""Scripts: where GO separates, and which line an error is on."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.scripts import Batch, ScriptError, run_script, split_batches


class Recorder:
    """Remembers the batches and fails in the line that says so."""

    def __init__(self) -> None:
        self.batches: list[str] = []

    async def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        self.batches.append(sql)
        yield Message(0, 1, 0, "information")
        for number, line in enumerate(sql.split("\n"), 1):
            if "fail" in line:
                yield Message(208, 1, 16, "Invalid object name 'x'.", line=number)


def test_go_alone_on_a_line_separates_whatever_its_case() -> None:
    script = "SELECT 1\ngo\nSELECT 2\n  Go 3  \nSELECT 3 -- GO\nGO -- the end\n"
    assert [(b.text.strip(), b.line, b.times) for b in split_batches(script)] == [
        ("SELECT 1", 1, 1),
        ("SELECT 2", 2, 3),
        ("SELECT 3 -- GO", 4, 1),
    ]


@pytest.mark.parametrize(
    "script",
    [
        "SELECT 'a\nGO\nb'",
        "/* a\nGO\n*/ SELECT 1",
        'SELECT 1 AS "a\nGO\nb"',
        "SELECT GO FROM t",
        "GOTO x",
        "-- it's\nSELECT 1",
    ],
)
def test_go_inside_something_separates_nothing(script: str) -> None:
    assert list(split_batches(script)) == [Batch(script, 1)]


@given(st.lists(st.text("ab \n;", min_size=1).filter(str.strip), max_size=5))
def test_batches_joined_by_go_come_apart_again(texts: list[str]) -> None:
    found = [batch.text.strip() for batch in split_batches("\nGO\n".join(texts))]
    assert found == [text.strip() for text in texts]


def test_error_names_file_line_number_and_text(tmp_path: Path) -> None:
    path = tmp_path / "setup.sql"
    path.write_text("SELECT 1\nGO\n\nSELECT 2\nfail\nGO\nSELECT 3", encoding="utf-8")
    recorder = Recorder()
    with pytest.raises(ScriptError, match=r"setup\.sql:5: Msg 208, Level 16, State 1: Invalid object name 'x'"):
        asyncio.run(run_script(recorder, path))
    assert len(recorder.batches) == 2


def test_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"absent\.sql: the script cannot be read"):
        asyncio.run(run_script(Recorder(), tmp_path / "absent.sql"))


def test_batch_is_run_as_often_as_go_says(tmp_path: Path) -> None:
    path = tmp_path / "three.sql"
    path.write_text("\ufeffSELECT 1\nGO 3\n", encoding="utf-8")
    recorder = Recorder()
    asyncio.run(run_script(recorder, path))
    assert recorder.batches == ["SELECT 1\n"] * 3


def ran(path: Path, variables: dict[str, str] | None = None) -> list[str]:
    """The batches of a script, blanks around them gone."""
    recorder = Recorder()
    asyncio.run(run_script(recorder, path, variables or {}))
    return [batch.strip() for batch in recorder.batches]


def test_variables_are_replaced_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(
        ":setvar Name \"my db\"\n  :SETVAR other 5\nUSE [$(NAME)]\nGO\nPRINT '$(other)$(given)' -- $(nothing)\n"
        ":setvar other\n/* :setvar x y\n*/\n"
    )
    assert ran(path, {"Given": "!"}) == ["USE [my db]", "PRINT '5!' -- $(nothing)\n/* :setvar x y\n*/"]


def test_scripts_include_others_beside_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "b.sql").write_bytes("\ufeffSELECT $(x)\nGO\nSELECT 3\nfail".encode("utf-16-le"))
    path = tmp_path / "a.sql"
    path.write_text("SELECT 1\n:setvar x 2\n:r .\\parts\\b.sql\nGO\nSELECT 4")
    with pytest.raises(ScriptError, match=r"b\.sql:4: Msg 208"):
        ran(path)
    (tmp_path / "parts" / "b.sql").write_text("SELECT $(x)\nGO\nSELECT 3")
    assert ran(path) == ["SELECT 1\nSELECT 2", "SELECT 3", "SELECT 4"]


def test_errors_can_be_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(":on error ignore\nfail\nGO\nSELECT 1")
    assert ran(path) == ["fail", "SELECT 1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1\nSELECT $(x)", r"a\.sql:2: the scripting variable 'x' is not defined"),
        ("\n:out file", r"a\.sql:2: unknown command :out"),
        ("!! dir", r"a\.sql:1: unknown command !!"),
        (":setvar 1", r"a\.sql:1: :setvar expects a name"),
        (":on error maybe", r"a\.sql:1: :on error expects exit or ignore"),
        (":r nothing.sql", r"nothing\.sql: the script cannot be read"),
        (":r a.sql", r"scripts include each other"),
    ],
)
def test_commands_that_cannot_be_carried_out_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.sql"
    path.write_text(text)
    with pytest.raises(ScriptError, match=message):
        ran(path)
