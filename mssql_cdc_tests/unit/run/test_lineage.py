"""What a followed database tells OpenLineage, and that no transport delays or ends capture."""

from __future__ import annotations

import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mssql_cdc.config import Connector, connector_from_mapping
from mssql_cdc.errors import ConfigurationError, SourceError
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run import lineage, lineage_sender
from mssql_cdc.run.lineage import reported
from mssql_cdc.run.lineage_events import lake_dataset, source_namespace
from mssql_cdc_tests.lineage_kit import configured, endpoint, read_events, states, to_file
from mssql_cdc_tests.unit.config.observed.world import World, world
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with

NONE: list[str] = []
IN_VAIN = "OpenLineage: events cannot be sent; capture continues without them: "


def connector(file: str, **given: object) -> Connector:
    properties: dict[str, object] = {
        "database.names": "shop",
        "database.password": "hunter22",
        "delta.warehouse": "/nowhere",
        "openlineage.integration.enabled": "true",
        "openlineage.integration.config.file.path": file,
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    return connector_from_mapping("c", MINIMAL | properties)


def follow(own: World) -> None:
    """Capture all rows that are there, and tell of it."""
    with reported([own.database]) as saw:
        follower = own.follower()
        follower.saw = partial(saw, own.database)
        own.settle(follower)


def names(own: World) -> list[str]:
    return [f"shop.dbo.{name}" for name in own.server.tables]


@pytest.mark.feature("OL-02")
def test_a_run_is_told_from_its_start_to_its_end_with_each_table_once(tmp_path: Path) -> None:
    file, events = to_file(tmp_path)
    with world(connector(file)) as own:
        own.fill(3)
        follow(own)
        tables = names(own)
    found = read_events(events)
    assert states(found)[:2] == [("START", NONE), ("RUNNING", NONE)]
    assert sorted(states(found)[2:-1]) == sorted(("RUNNING", [name]) for name in tables)
    assert (found[-1]["eventType"], sorted(one["name"] for one in found[-1]["inputs"])) == ("COMPLETE", sorted(tables))
    assert len({one["run"]["runId"] for one in found}) == 1
    assert [one["eventTime"] for one in found] == sorted(one["eventTime"] for one in found)


@pytest.mark.feature("OL-02")
def test_the_job_and_the_run_are_described_and_secrets_are_hidden(tmp_path: Path) -> None:
    file, events = to_file(tmp_path)
    given: dict[str, Any] = {
        "openlineage__integration__job__namespace": "prod",
        "openlineage__integration__job__description": "Orders of the shop",
        "openlineage__integration__job__tags": "env=prod, team=cdc",
        "openlineage__integration__job__owners": "Mario=maintainer,John Doe=Data scientist",
        "task.id": "3",
    }
    with world(connector(file, **given)) as own:
        follow(own)
    text = events.read_text(encoding="utf-8")
    start = read_events(events)[0]
    facets = start["job"]["facets"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("prod", "server1.3")
    assert facets["documentation"]["description"] == "Orders of the shop"
    assert [(one["key"], one["value"]) for one in facets["tags"]["tags"]] == [("env", "prod"), ("team", "cdc")]
    owners = [(one["name"], one["type"]) for one in facets["ownership"]["owners"]]
    assert owners == [("Mario", "maintainer"), ("John Doe", "Data scientist")]
    assert facets["jobType"]["processingType"] == "STREAMING"
    assert start["run"]["facets"]["processing_engine"]["name"] == "mssql_cdc"
    configs = start["run"]["facets"]["debezium_config"]["configs"]
    assert {"topic.prefix=server1", "database.password=***"} <= set(configs)
    assert "hunter22" not in text


@pytest.mark.feature("OL-02")
def test_a_table_is_told_with_its_columns_and_its_tables_in_the_lake_and_again_with_a_new_structure(
    tmp_path: Path,
) -> None:
    with endpoint() as told:
        file = configured(tmp_path, f"type: http\n  url: {told.url}")
        with world(connector(file)) as own, reported([own.database]) as saw:
            own.fill(1)
            follower = own.follower()
            follower.saw = partial(saw, own.database)
            own.settle(follower)
            own.server.enable("orders", more=True)
            own.fill(2)
            own.settle(follower)
            assert follower.seen is not None
            (home,) = [one.home for table, one in follower.seen.tables.items() if table.name == "orders"]
    found = [one for one in told.events if [dataset["name"] for dataset in one["inputs"]] == ["shop.dbo.orders"]]
    first, second = (one["inputs"][0] for one in found)
    assert {one["eventType"] for one in found} == {"RUNNING"}
    assert first["namespace"] == "sqlserver://db.example.com:1433"
    before, after = (one["facets"]["schema"]["fields"] for one in (first, second))
    assert before[0] == {"name": "id", "type": "int", "fields": []}
    assert len(after) > len(before)
    outputs = [(one["namespace"], one["name"]) for one in found[0]["outputs"]]
    assert outputs == [("file", home.changes), ("file", home.current)]
    last = told.events[-1]
    assert last["eventType"] == "COMPLETE"
    assert after in [one["facets"]["schema"]["fields"] for one in last["inputs"]]


@pytest.mark.feature("OL-02")
def test_a_failure_is_told_without_secrets_and_an_interruption_is_an_end(tmp_path: Path) -> None:
    file, events = to_file(tmp_path)
    with world(connector(file)) as own:
        with pytest.raises(SourceError), reported([own.database]):
            raise SourceError("login failed with hunter22")
        with pytest.raises(KeyboardInterrupt), reported([own.database]):
            raise KeyboardInterrupt
    found = read_events(events)
    assert states(found) == [("START", NONE), ("FAIL", NONE), ("START", NONE), ("COMPLETE", NONE)]
    facet = found[1]["run"]["facets"]["errorMessage"]
    assert (facet["message"], facet["programmingLanguage"]) == ("login failed with ***", "PYTHON")


@pytest.mark.feature("OL-02")
def test_a_run_without_news_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "ALIVE_SECONDS", 0.01)
    file = configured(tmp_path, "type: console")
    alive = Event()

    def log(line: str) -> None:
        if '"RUNNING"' in line:
            alive.set()

    with world(connector(file)) as own, reported([replace(own.database, log=log)]):
        assert alive.wait(30)


def test_an_endpoint_that_is_gone_is_told_of_once_and_disturbs_nothing(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else can.
        file = configured(
            tmp_path, f"type: http\n  url: http://127.0.0.1:{held.getsockname()[1]}\n  retry:\n    total: 0"
        )
        with world(connector(file)) as own:
            own.fill(3)
            follow(own)
            assert load_offsets(own.database.layout, own.database.storage).last_cut() is not None
            assert len([line for line in own.lines if line.startswith(IN_VAIN)]) == 1


def test_an_endpoint_that_hangs_does_not_delay_capture(tmp_path: Path) -> None:
    with endpoint() as told:
        told.answers.clear()
        file = configured(tmp_path, f"type: http\n  url: {told.url}\n  timeout: 60")
        with world(connector(file)) as own, reported([own.database]) as saw:
            assert told.asked.wait(30)
            own.fill(3)
            follower = own.follower()
            follower.saw = partial(saw, own.database)
            own.settle(follower)
            assert load_offsets(own.database.layout, own.database.storage).last_cut() is not None
            assert told.events == []
            told.answers.set()
    first, *_, last = (one["eventType"] for one in told.events)
    assert (first, last) == ("START", "COMPLETE")


def test_events_that_nobody_takes_are_dropped_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_sender, "_MOST_WAITING", 1)

    def interrupted(own: World) -> None:
        with reported([own.database]) as saw:
            assert told.asked.wait(30)
            follower = own.follower()
            follower.saw = partial(saw, own.database)
            own.settle(follower)
            raise KeyboardInterrupt

    with endpoint() as told:
        told.answers.clear()
        with world(connector(configured(tmp_path, f"type: http\n  url: {told.url}\n  timeout: 60"))) as own:
            with pytest.raises(KeyboardInterrupt):
                interrupted(own)
            assert [line for line in own.lines if line.startswith("OpenLineage")] == [
                "OpenLineage: 1 events wait for the transport; further ones are dropped",
                "OpenLineage: the transport has not taken all events within 1 s; the rest is lost",
            ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read"),
        ("transport: [", "cannot be read"),
        ("facets: {}", "names no transport"),
        ("transport: {type: http}", "client refuses"),
    ],
)
def test_a_configuration_of_the_client_that_cannot_be_used_refuses_the_start(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "own.yml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with (
        world(connector(str(file))) as own,
        pytest.raises(ConfigurationError, match=problem),
        reported([own.database]),
    ):
        pytest.fail("the run has begun")


@pytest.mark.feature("OL-02")
@pytest.mark.parametrize(
    ("uri", "dataset"),
    [
        ("/lake/shop/changes", ("file", "/lake/shop/changes")),
        ("file:///lake/shop/changes", ("file", "/lake/shop/changes")),
        ("s3a://bucket/lake/changes", ("s3://bucket", "lake/changes")),
        ("abfss://c@a.dfs.core.windows.net/lake", ("abfss://c@a.dfs.core.windows.net", "lake")),
    ],
)
def test_tables_of_the_lake_are_named_as_openlineage_names_files_and_objects(
    uri: str, dataset: tuple[str, str]
) -> None:
    assert lake_dataset(uri) == dataset


def test_a_named_instance_comes_after_the_host() -> None:
    named = connector_with({"database.instance": "sales"}).connection
    assert source_namespace(named) == "sqlserver://db.example.com/sales"


@pytest.mark.feature("OL-02")
def test_the_properties_are_checked_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled: dict[str, object] = {"openlineage.integration.enabled": "true"}
    for name in ("openlineage.integration.job.tags", "openlineage.integration.job.owners"):
        with pytest.raises(ConfigurationError, match=f"{name}: found 'prod', expected pairs such as name=value"):
            connector_with(enabled | {name: "prod"})
        assert connector_with({name: "env=prod"}).notices == (
            f"{name}: no effect without openlineage.integration.enabled=true",
        )
    assert connector_with(enabled).notices == ()
    monkeypatch.setattr("mssql_cdc.config.lineage_settings.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mssql-cdc\[lineage\]'"):
        connector_with(enabled)
