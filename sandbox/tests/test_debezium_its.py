"""Reading what the JVM printed, choosing classes: the runner of Debezium's own tests, without Debezium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debezium_its import jars
from tests.debezium_its.__main__ import chosen, main
from tests.debezium_its.jars import ItsUnavailableError, prepare
from tests.debezium_its.results import ClassResult, TestResult, read_tests, table

PLANNED = ("@@ planned a ", "@@ planned b ")


def test_a_test_ends_as_the_jvm_says() -> None:
    lines = (*PLANNED, "@@ started a ", "noise", "@@ passed a ", "@@ started b ", "@@ failed b AssertionError: 1 | 2")
    assert read_tests(lines) == (TestResult("a", "passed"), TestResult("b", "failed", "AssertionError: 1 | 2"))


def test_a_test_that_does_not_end_has_failed() -> None:
    assert read_tests((*PLANNED, "@@ started a ")) == (
        TestResult("a", "failed", "did not end"),
        TestResult("b", "failed", "not run"),
    )


def test_a_pass_after_debeziums_skipping_rule_is_no_pass() -> None:
    lines = ("@@ planned a ", "@@ started a ", "Skipped a(io.debezium.SomeIT) because: …", "@@ passed a ")
    assert [test.status for test in read_tests(lines)] == ["skipped"]


def test_a_class_that_cannot_be_set_up_fails_all_its_tests() -> None:
    lines = (*PLANNED, "@@ failed SomeIT SQLServerException: refused")
    assert {test.cause for test in read_tests(lines)} == {"SQLServerException: refused"}


def test_the_table_counts_and_names_what_failed() -> None:
    result = ClassResult("SomeIT", 12.4, (TestResult("a", "passed"), TestResult("b", "failed", "why")))
    assert table([result]).splitlines()[2:] == [
        "| SomeIT | 2 | 1 | 1 | 0 | 12 |",
        "| **all** | 2 | 1 | 1 | 0 | 12 |",
        "",
        "SomeIT.b: why",
    ]
    assert not result.good


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("all", ["AIT", "BIT", "SignalsIT"]),
        ("fast", ["SignalsIT"]),
        ("BIT, A*", ["BIT", "AIT"]),
        ("S* all", ["SignalsIT", "AIT", "BIT"]),
    ],
)
def test_classes_are_chosen_by_name_pattern_or_word(wanted: str, names: list[str]) -> None:
    assert chosen(wanted, ("AIT", "BIT", "SignalsIT")) == names


def test_an_unknown_class_is_named_beside_those_that_there_are() -> None:
    with pytest.raises(ItsUnavailableError, match="no test class CIT; there are: AIT, BIT"):
        chosen("CIT", ("AIT", "BIT"))


def test_without_maven_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ItsUnavailableError, match="needs Maven and a JDK"):
        prepare("3.3.1.Final", tmp_path / "its")


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--optional"], 0)])
def test_a_build_that_goes_on_without_the_tests_is_told_why(
    options: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["debezium-its", "--folder", str(tmp_path / "its"), *options])
    assert main() == code
    assert "not run: needs Maven and a JDK" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "\x1b[0m[ERROR] Could not transfer artifact x: Unknown host",
            "repository for Debezium 3.3.1.Final: Could not tr",
        ),
        ("[ERROR] Could not find artifact debezium-bom", "class path for Debezium 3.3.1.Final: Could not find"),
    ],
)
def test_what_maven_lacks_is_one_line(output: str, reason: str) -> None:
    said = jars._reason("3.3.1.Final", f"[ERROR] [ERROR] Some problems were encountered\n{output}\n[ERROR] help")
    assert reason in said
    assert "\n" not in said


def test_a_version_of_an_unknown_shape_is_refused(tmp_path: Path) -> None:
    for version in ("3.4.0.Final", "2.7.0.Final", "latest"):
        with pytest.raises(ItsUnavailableError, match="no way to run"):
            jars._choices(version)
