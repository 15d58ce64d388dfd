"""How the JVM of a session is started."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark import SparkContext

from mssql_cdc.spark.session import _launch  # pyright: ignore[reportPrivateUsage]


def test_a_temporary_folder_may_have_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, seen = tmp_path / "my dir", list[list[str]]()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def launched(**_: object) -> object:
        seen.append(shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"]))  # As PySpark does.
        assert Path(seen[0][2]).read_text() == "a=b\n"
        return object()

    with patch("pyspark.java_gateway.launch_gateway", launched), patch.object(SparkContext, "_ensure_initialized"):
        _launch({"a": "b"}, None)
    ((first, second, file, last),) = seen
    assert [first, second, last] == ["--load-spark-defaults", "--properties-file", "pyspark-shell"]
    assert Path(file).parent == folder
    assert not list(folder.iterdir())
