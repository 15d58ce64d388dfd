"""docs/getting-started.md works to the letter with the sandbox: script, connector, commands and their output."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mssql_sandbox.process import sandbox_process

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
SANDBOX, _, STEPS = PAGE.partition("## 1. Enable CDC")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d\d:\d\d:\d\d|\d{8}T\d{6}|\b[\d.]+ rows/s|[0-9a-f]{32}")
pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def _blocks(text: str, language: str) -> list[str]:
    return [block for kind, block in FENCE.findall(text) if kind == language]


def _lines(text: str) -> set[str]:
    """Lines without what differs between two runs; at which position nothing was read is such a thing."""
    return {VARYING.sub("…", line.rstrip()) for line in text.splitlines() if not line.endswith(": no rows")}


def test_the_page_works_to_the_letter_with_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (tmp_path / "shop.sql").write_text(_blocks(SANDBOX, "sql")[0], encoding="utf-8")
    password, start = _blocks(SANDBOX, "sh")[1].splitlines()
    monkeypatch.setenv(*password.removeprefix("export ").split("="))
    options = [os.path.expandvars(word) for word in shlex.split(start)[1:]]
    connector, changed = json.loads(_blocks(STEPS, "json")[0]), json.loads(_blocks(SANDBOX, "json")[0])
    port = options.index("--port") + 1
    assert options[port] == changed["database.port"]
    options[port] = "0"
    (tmp_path / "dagster.yaml").write_bytes((ROOT / "dagster.yaml").read_bytes())
    commands = [line for block in _blocks(STEPS, "sh") for line in block.splitlines()]
    script = [one for one in commands if not one.startswith(("export SHOP_PASSWORD=", "dagster dev"))]
    assert len(script) == len(commands) - 2
    with sandbox_process(tmp_path, *options) as server:
        connector["config"] |= changed | {"database.port": str(server.port)}
        (tmp_path / "connectors").mkdir()
        (tmp_path / "connectors" / "shop.json").write_text(json.dumps(connector), encoding="utf-8")
        done = subprocess.run(["bash", "-euc", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    missing = {line for block in _blocks(STEPS, "") for line in _lines(block)} - _lines(done.stdout + done.stderr)
    assert not missing
    assert "Started sensor shop__shop__sensor" in done.stdout
    assert (tmp_path / "warehouse/shop/shop/dbo/customers/current/_delta_log").is_dir()
