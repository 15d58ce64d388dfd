"""What docs/sandbox.md says to write in one's own tests is a test that passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyodbc
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif("FreeTDS" not in pyodbc.drivers(), reason="the FreeTDS ODBC driver is not installed")
def test_the_documented_test_passes(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "sandbox.md").read_text(encoding="utf-8").split("## In tests of your own")[1]
    found = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "test_shop.py").write_text(found[1], encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "1 passed" in finished.stdout
