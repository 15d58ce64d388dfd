"""Entry points are found by group and name; what is wrong is told with the names that are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import find_entry_point, installed_names, load_extension
from mssql_cdc_tests.unit.extension_kit import install

ROOT = Path(__file__).parents[2]
GROUP = "mssql_cdc.tested"
SOURCE = """
class Greeter:
    def __init__(self, name="nobody"):
        self.name = name

    def greet(self):
        return f"hello {self.name}"


def picky():
    raise ValueError("no wish")


text = "no class"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution whose module is found in this test only."""
    module = f"extension_{abs(hash(tmp_path))}"
    named = {"greeter": "Greeter", "picky": "picky", "text": "text", "absent": "absent"}
    points = {name: f"{module}:{attribute}" for name, attribute in named.items()}
    install(tmp_path, "tested", {GROUP: points | {"unmade": "no_such_module:Any"}}, {module: SOURCE})
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_extension_is_made_by_the_class_that_its_entry_point_names(installed: Path) -> None:
    assert load_extension(GROUP, "greeter", setting="x", methods=["greet"]).greet() == "hello nobody"
    assert load_extension(GROUP, "greeter", setting="x", arguments={"name": "Ann"}).greet() == "hello Ann"


def test_names_of_a_group_are_those_of_the_installed_distributions(installed: Path) -> None:
    assert installed_names(GROUP) == ("absent", "greeter", "picky", "text", "unmade")
    assert installed_names("mssql_cdc.empty") == ()


@pytest.mark.feature("SPI-04")
def test_the_case_of_a_name_does_not_count_where_debezium_ignores_it(installed: Path) -> None:
    assert find_entry_point(GROUP, "Greeter", setting="x", any_case=True).name == "greeter"
    with pytest.raises(ConfigurationError, match="found 'Greeter'"):
        find_entry_point(GROUP, "Greeter", setting="x")
    assert [group for group in ExtensionGroup if group.any_case] == [ExtensionGroup.SNAPSHOTTERS]


def test_finding_an_entry_point_imports_nothing(installed: Path) -> None:
    assert find_entry_point(GROUP, "unmade", setting="x").value == "no_such_module:Any"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("greter", r"some\.type: found 'greter'.*mssql_cdc\.tested \(installed are .*greeter.*did you mean greeter\?"),
        ("org.example.MyConverter", r"is a Java class.*write it in Python.*installed are absent, greeter"),
        ("absent", r"cannot be imported: AttributeError.*absent"),
        ("unmade", r"no_such_module:Any\) cannot be imported: ModuleNotFoundError"),
        ("picky", r"cannot be called: ValueError: no wish"),
        ("text", r"is str, expected a class or a function"),
        ("greeter", r"makes Greeter, which lacks send; see docs/extensions\.md"),
    ],
)
def test_wrong_extension_is_refused_with_what_to_do(installed: Path, name: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        load_extension(GROUP, name, setting="some.type", methods=["send"])


def test_group_without_an_entry_point_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"none is installed\); docs/extensions\.md shows how to install one"):
        find_entry_point("mssql_cdc.empty", "any", setting="x")


@pytest.mark.parametrize("group", ExtensionGroup)
def test_the_page_that_is_named_has_the_group(group: ExtensionGroup) -> None:
    with pytest.raises(ConfigurationError, match=r"docs/[a-z-]+\.md shows how") as raised:
        find_entry_point(group, "no such name", setting="x")
    named = re.findall(r"docs/[a-z-]+\.md", str(raised.value))
    assert [f"`{group}`" in (ROOT / page).read_text(encoding="utf-8") for page in named] == [True]


def test_name_that_two_distributions_give_different_targets_is_refused(installed: Path) -> None:
    install(installed, "second", {GROUP: {"greeter": "elsewhere:Greeter"}})
    with pytest.raises(ConfigurationError, match=r"2 installed distributions.*elsewhere:Greeter.*all but one"):
        find_entry_point(GROUP, "greeter", setting="x")


def test_name_that_is_installed_twice_with_one_target_counts_once(installed: Path) -> None:
    point = find_entry_point(GROUP, "greeter", setting="x")
    install(installed, "again", {GROUP: {"greeter": point.value}})
    assert find_entry_point(GROUP, "greeter", setting="x").value == point.value
