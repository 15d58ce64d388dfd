"""SQLAlchemy's compliance suite for dialects, as SQLAlchemy brings it: more than a thousand tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote_plus

import pyodbc
import pytest

from mssql_sandbox.process import SandboxProcess
from tests.tds.drivers import driver

CONFTEST = """
import pytest
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
from sqlalchemy.testing.plugin.pytestplugin import *
"""
SETTINGS = """
[sqla_testing]
requirement_cls = sqlalchemy_requirements:Requirements
profile_file = profiles.txt
"""
SET_UP = (
    "CREATE DATABASE suite",
    "ALTER DATABASE suite SET ALLOW_SNAPSHOT_ISOLATION ON",
    "ALTER DATABASE suite SET READ_COMMITTED_SNAPSHOT ON",
    "USE suite",
    "CREATE SCHEMA test_schema",
)
"""What SQLAlchemy's own documents ask for."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sqlalchemys_compliance_suite_passes(separate_sandbox: SandboxProcess, tmp_path: Path) -> None:
    client = driver("msodbcsql")
    text = client.connection_string(separate_sandbox.port, password=separate_sandbox.password)
    connection = pyodbc.connect(text, autocommit=True)
    for statement in SET_UP:
        connection.execute(statement)
    connection.close()
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("sqlalchemy_requirements.py"), tmp_path)
    (tmp_path / "setup.cfg").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "test_suite.py").write_text("from sqlalchemy.testing.suite import *\n", encoding="utf-8")
    url = (
        f"mssql+pyodbc://sa:{quote_plus(separate_sandbox.password)}@127.0.0.1:{separate_sandbox.port}/suite"
        f"?driver={quote_plus(client.library)}&Encrypt=no"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--dburi", url, "test_suite.py"]
    without = [word for name in ("randomly", "xdist", "cacheprovider", "timeout") for word in ("-p", f"no:{name}")]
    finished = subprocess.run(
        [*command, *without], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert finished.returncode == 0, finished.stdout[-10_000:] + finished.stderr
    passed = re.search(r"(\d+) passed", finished.stdout)
    assert passed is not None
    assert int(passed[1]) > 1_000, finished.stdout[-2_000:]
