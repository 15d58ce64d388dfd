"""Where a session's jars and its class-data archive come from."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mssql_cdc.spark.jars import archive_file, jar_files, prepared_folder
from mssql_cdc.spark.session import SparkSettings, session_confs

CLASS_PATH = "spark.driver.extraClassPath"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Prepared jars in a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = prepared_folder()
    folder.mkdir(parents=True)
    found = [folder / "delta-spark.jar", folder / "delta-storage.jar"]
    for jar in found:
        jar.write_bytes(b"jar")
    return found


def test_jars_that_are_not_prepared_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    confs = session_confs(SparkSettings())
    assert "io.delta:delta-spark" in confs["spark.jars.packages"]
    assert CLASS_PATH not in confs


def test_prepared_jars_are_on_the_class_path_of_a_local_master(jars: list[Path]):
    confs = session_confs(SparkSettings())
    assert confs[CLASS_PATH] == ":".join(map(str, jars))
    assert "spark.jars" not in confs
    assert "spark.jars.packages" not in confs


def test_jars_travel_to_the_executors_of_a_cluster(jars: list[Path]):
    confs = session_confs(SparkSettings(master="spark://host:7077"))
    assert confs["spark.jars"] == ",".join(map(str, jars))
    assert "spark.python.daemon.module" not in confs


def test_a_configured_class_path_and_jars_stay(jars: list[Path]):
    confs = session_confs(SparkSettings(confs={CLASS_PATH: "/mine.jar", "spark.jars": "/other.jar"}))
    assert confs[CLASS_PATH] == ":".join(["/mine.jar", *map(str, jars)])
    assert confs["spark.jars"] == "/other.jar"


def test_named_jars_are_used_instead_of_prepared_ones(jars: list[Path], tmp_path: Path):
    mine = tmp_path / "mine.jar"
    mine.write_bytes(b"")
    assert jar_files(str(mine)) == [mine]
    assert jar_files(None) == jars


def test_an_archive_is_used_by_every_session_with_the_jars_that_it_was_made_for(jars: list[Path]):
    settings = SparkSettings()
    archive = archive_file(jars)
    assert "SharedArchiveFile" not in session_confs(settings)["spark.driver.extraJavaOptions"]
    archive.write_bytes(b"classes")
    assert f"-XX:SharedArchiveFile={archive}" in session_confs(settings)["spark.driver.extraJavaOptions"]
    longer = SparkSettings(short_lived=False)
    assert f"-XX:SharedArchiveFile={archive}" in session_confs(longer)["spark.driver.extraJavaOptions"]
    jars[0].write_bytes(b"another jar")
    assert "SharedArchiveFile" not in session_confs(settings)["spark.driver.extraJavaOptions"]


def unreadable(*_: object, **__: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


def homeless(*_: object) -> NoReturn:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize(("name", "found"), [("glob", unreadable), ("exists", unreadable), ("home", homeless)])
def test_a_home_that_cannot_be_read_has_nothing_prepared(name: str, found: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, name, found)
    confs = session_confs(SparkSettings())
    assert "SharedArchiveFile" not in confs["spark.driver.extraJavaOptions"]
    if name != "exists":
        assert "io.delta:delta-spark" in confs["spark.jars.packages"]


def test_a_home_below_which_nothing_may_be_looked_at_has_nothing_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Root reads everything, so that `stat` stands for the kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    real = os.stat

    def stat(path: Any, *more: Any, **named: Any) -> Any:
        if str(path).startswith(str(tmp_path)):
            unreadable()
        return real(path, *more, **named)

    monkeypatch.setattr(os, "stat", stat)
    confs = session_confs(SparkSettings())
    assert "io.delta:delta-spark" in confs["spark.jars.packages"]
    assert "SharedArchiveFile" not in confs["spark.driver.extraJavaOptions"]


def test_an_archive_below_a_home_with_a_space_is_one_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    settings = SparkSettings()
    archive = archive_file([])
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    options = session_confs(settings)["spark.driver.extraJavaOptions"]
    assert shlex.split(options)[-1] == f"-XX:SharedArchiveFile={archive}"
