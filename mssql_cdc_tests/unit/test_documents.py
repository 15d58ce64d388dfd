"""Everything in the documents works: make targets exist, commands and options parse, connectors load."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import UsageError
from dagster._cli import create_dagster_cli
from dagster._config import process_config
from dagster._core.instance.config import dagster_instance_config_schema
from dagster._core.workspace.config_schema import process_workspace_config
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import create_dagster_webserver_cli
from mssql_sandbox.command import argument_parser

from mssql_cdc.cli import program
from mssql_cdc.config import load_connector
from mssql_cdc.config.signals import IgnoredSignal, parse_signal
from mssql_cdc.demo.__main__ import parse as parse_demo
from mssql_cdc_tests.benchmarks.__main__ import parse as parse_bench

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "sandbox").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
SHELL_WORDS = {"curl", "export", "mkdir", "cp", "cd", "eval"}


def _blocks(path: Path, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall(path.read_text(encoding="utf-8")) if kind == language]


def _commands(path: Path) -> Iterator[list[str]]:
    for block in _blocks(path, "sh"):
        for line in block.splitlines():
            for command in line.split("&&"):
                words = shlex.split(command, comments=True)
                if words:
                    yield words


def _all_commands() -> list[tuple[str, list[str]]]:
    return [(path.name, words) for path in DOCUMENTS for words in _commands(path)]


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def _check_make(words: list[str]) -> None:
    targets = [word for word in words[1:] if "=" not in word]
    unknown = sorted({*targets} - _targets())
    assert not unknown, f"the Makefile has no target {unknown}"
    arguments = next((word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")), None)
    if arguments is not None and targets == ["demo"]:
        parse_demo(shlex.split(arguments))
    if arguments is not None and targets == ["bench"]:
        parse_bench(shlex.split(arguments))


def _check_click(command: Any, words: list[str]) -> None:
    """Parse the words as click would, without running anything."""
    rest = words[1:]
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, f"{words[0]} has no command {name}"
        command = command.commands[name]
    command.make_context(command.name, rest)


def _check(words: list[str]) -> None:
    words = words[: words.index(">")] if ">" in words else words
    match words[0]:
        case "make":
            _check_make(words)
        case "mssql-cdc":
            _check_click(program, words)
        case "mssql-sandbox":
            argument_parser().parse_args(words[1:])
        case "dagster":
            _check_click(create_dagster_cli(), words)
        case "dagster-daemon":
            _check_click(create_dagster_daemon_cli(), words)
        case "dagster-webserver":
            _check_click(create_dagster_webserver_cli(), words)
        case other:
            assert other in SHELL_WORDS, f"nothing here knows the command {other}"


@pytest.mark.parametrize(("name", "words"), _all_commands(), ids=lambda value: " ".join(value) if value else "")
def test_a_command_in_a_document_exists_with_its_options(name: str, words: list[str]) -> None:
    _check(words)


@pytest.mark.parametrize(
    "line", ["make no-such-target", "mssql-cdc run --no-such-option", "dagster no-such-command", "no-such-program"]
)
def test_a_command_that_does_not_exist_is_detected(line: str) -> None:
    with pytest.raises((AssertionError, UsageError)):
        _check(shlex.split(line))


def test_the_readme_names_the_demo_and_the_tests() -> None:
    found = [words for words in _commands(ROOT / "README.md") if words[0] == "make"]
    assert ["make", "demo"] in found
    assert ["make", "test"] in found


def _connector_examples() -> list[tuple[str, str]]:
    return [(path.name, text) for path in DOCUMENTS for text in _blocks(path, "json") if '"topic.prefix"' in text]


@pytest.mark.parametrize(("name", "text"), _connector_examples())
def test_a_connector_in_a_document_loads(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(text, encoding="utf-8")
    assert load_connector(path).topic_prefix == json.loads(text).get("config", json.loads(text))["topic.prefix"]


def test_every_document_with_a_connector_is_detected() -> None:
    assert {name for name, _ in _connector_examples()} >= {"README.md", "getting-started.md", "debezium-migration.md"}


def _signals() -> list[tuple[str, str]]:
    text = "\n".join(_blocks(ROOT / "docs" / "snapshots-and-signals.md", "sql"))
    return re.findall(r"debezium_signal VALUES \('\w+', '([\w-]+)',\s*'(\{.*?\})'\)", text)


def test_signals_in_the_document_are_understood() -> None:
    parsed = [parse_signal("s", kind, data) for kind, data in _signals()]
    assert len(parsed) >= 2
    assert not [one for one in parsed if isinstance(one, IgnoredSignal)]


def test_the_operations_document_explains_every_setting_of_dagster_yaml() -> None:
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    assert set(settings) <= set(dagster_instance_config_schema())
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    missing = [name for name in settings if f"`{name}" not in text]
    assert not missing


def test_settings_of_a_permanent_installation_are_those_of_dagster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_PASSWORD", "x")
    blocks = [yaml.safe_load(text) for text in _blocks(ROOT / "docs" / "operations.md", "yaml")]
    (workspace,) = [one for one in blocks if "load_from" in one]
    assert process_workspace_config(workspace).success
    (storage,) = [one["storage"] for one in blocks if "storage" in one]
    assert process_config(dagster_instance_config_schema(), {"storage": storage}).success


def test_the_index_links_to_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert not [name for name in sorted(documents) if f"({name})" not in index]


def test_each_contradiction_of_debezium_is_decided_in_one_place():
    listed = re.findall(r"^\| (DC-\d\d) \|", (ROOT / "docs/debezium-contradictions.md").read_text(), re.MULTILINE)
    assert listed == [f"DC-{number:02}" for number in range(1, 27)]


def _anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_a_link_in_a_document_leads_somewhere(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    lost: list[str] = []
    for target, anchor in LINK.findall(text):
        if target.startswith(("http:", "https:")):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            lost.append(f"{target}#{anchor}")
    assert not lost
