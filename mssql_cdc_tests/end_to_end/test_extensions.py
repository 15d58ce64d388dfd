"""The worked examples of `docs/snapshot-extensions.md`, installed and used as the page says."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.unit.extension_kit import install

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "snapshot-extensions.md"


def blocks(language: str) -> list[str]:
    """The code of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's module with its entry points, and one that is faulty, on the path."""
    (project,) = blocks("toml")
    points: dict[str, dict[str, str]] = tomllib.loads(project)["project"]["entry-points"]
    broken = "class Channel:\n    def __init__(self, properties): ...\n    def read(self, bookmark):\n        "
    broken += "raise ConnectionError('no answer')\n"
    site = install(tmp_path / "site", "acme", points, {"acme_cdc": "\n".join(blocks("python"))})
    faulty = {"mssql_cdc.signal_channels": {"broken": "acme_broken:Channel"}}
    install(site, "acme_broken", faulty, {"acme_broken": broken})
    monkeypatch.syspath_prepend(site)
    for module in ("acme_cdc", "acme_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.mark.feature("SPI-06", "SPI-07", "SIG-09")
def test_channel_and_action_of_a_user_take_part(place: Place, acme: Path):
    folder, notes = acme / "mails", acme / "notes.txt"
    folder.mkdir()
    place.configure(signal_enabled_channels="mail,broken", mail_folder=str(folder), note_path=str(notes))
    place.create_orders()
    (folder / "1").write_text('note {"text": "one"}')
    (folder / "2").write_text('note {"no": "text"}')
    (folder / "3").write_text("unknown {}")
    for _ in range(2):
        assert place.catch_up() == 0
    assert notes.read_text() == "mail-1 from mail: one\n"
    rows = own_rows(place, "signals", "SELECT id, status, result FROM t ORDER BY _batch, id")
    assert [(row["id"], row["status"], row["result"]) for row in rows] == [
        ("mail-1", "requested", "the action note"),
        ("mail-2", "requested", "the action note"),
        ("mail-3", "ignored", "the type 'unknown' is not known"),
        ("mail-1", "done", "the action is done"),
        ("mail-2", "ignored", "the action failed: KeyError: 'text'"),
    ]
