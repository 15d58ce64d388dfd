"""Which session of a Spark Connect server a run attaches to, and what errors say about it."""

from __future__ import annotations

import re
import uuid

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.spark import remote
from mssql_cdc.spark.remote import gone, named_session
from mssql_cdc.spark.session import SparkSettings


@pytest.mark.parametrize("url", ["sc://host:15002", "sc://host:15002/", "sc://host:15002/;use_ssl=true"])
def test_all_runs_of_a_version_name_the_same_session(url: str):
    first = named_session(url, 0)
    assert first == named_session(url, 0)
    assert first.startswith("sc://host:15002/;")
    found = re.search(r"session_id=([^;]+)", first)
    assert found
    assert uuid.UUID(found[1])
    assert "user_id=mssql_cdc" in first


def test_another_version_has_workers_of_its_own(monkeypatch: pytest.MonkeyPatch):
    before = named_session("sc://host", 0)
    monkeypatch.setattr(remote, "__version__", "99")
    assert named_session("sc://host", 0) != before


def test_a_session_that_has_ended_is_followed_by_another_name():
    assert named_session("sc://host", 1) != named_session("sc://host", 0)


def test_a_session_that_the_url_names_is_used_and_no_other():
    url = "sc://host/;session_id=0c8f0a4a-7b0f-4b5e-8f5c-000000000000;user_id=me"
    assert named_session(url, 0) == url
    with pytest.raises(ConfigurationError, match="name another one"):
        named_session(url, 1)


def test_errors_show_no_token():
    assert "secret" not in str(gone(RuntimeError("x"), "sc://host:1/;token=secret"))


def test_the_remote_is_no_conf_of_the_session():
    settings = SparkSettings.from_environment(confs={"spark.remote": "sc://host", "spark.x": "1"})
    assert (settings.remote, settings.confs) == ("sc://host", {"spark.x": "1"})
