"""The extensions of docs/extensions.md, installed as the document says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.unit.extension_kit import install

DOCUMENT = Path(__file__).parents[2] / "docs" / "extensions.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PREFIX = "mssql_cdc."


def _blocks(language: str) -> list[str]:
    return [text for kind, text in _FENCE.findall(DOCUMENT.read_text(encoding="utf-8")) if kind == language]


def configuration() -> dict[str, Any]:
    """The document's connector."""
    (text,) = _blocks("json")
    return json.loads(text)["config"]


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the document's distribution for a test; returns its folder."""
    (project,) = _blocks("toml")
    points = tomllib.loads(project)["project"]["entry-points"]
    assert all(group.startswith(_PREFIX) for group in points)
    install(folder, "shop_records", points, {"shop_records": "\n\n".join(_blocks("python"))})
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, "shop_records", raising=False)
    return folder
