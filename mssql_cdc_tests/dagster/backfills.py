"""A backfill of the snapshots of an instance that runs, as the UI launches it, and what becomes of its runs."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import small_table

_FAILURES = "... on ExecutionStepFailureEvent {error {message} failureMetadata {description}}"


def graphql(port: int, query: str) -> dict[str, Any]:
    """The answer of the webserver on this port."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 (our own server)
        return json.loads(answer.read())["data"]


@dataclass(frozen=True)
class Backfill:
    """A backfill that was launched."""

    port: int
    id: str

    def runs(self) -> list[dict[str, Any]]:
        """Its runs, with status and tags."""
        tag = f'{{key: "dagster/backfill", value: "{self.id}"}}'
        wanted = "results {runId status tags {key value}}"
        found = graphql(self.port, f"{{runsOrError(filter: {{tags: [{tag}]}}) {{... on Runs {{{wanted}}}}}}}")
        runs = found["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in runs]

    def statuses(self) -> dict[str, int]:
        """How many runs have which status."""
        return Counter(run["status"] for run in self.runs())

    def failure(self) -> str:
        """What the steps of its runs failed with."""
        texts: list[str] = []
        for run in self.runs():
            events = f'logsForRun(runId: "{run["runId"]}") {{... on EventConnection {{events {{{_FAILURES}}}}}}}'
            found = graphql(self.port, f"{{{events}}}")["logsForRun"]["events"]
            texts += [json.dumps(event) for event in found if event]
        return " ".join(texts)


def launch(port: int, asset: list[str], partitions: list[str]) -> Backfill:
    """Launch a backfill of these partitions.

    Args:
        port: The webserver's.
        asset: The key of the asset.
        partitions: The partitions.
    """
    given = f"assetSelection: [{{path: {json.dumps(asset)}}}], partitionNames: {json.dumps(partitions)}"
    mutation = f"launchPartitionBackfill(backfillParams: {{{given}}})"
    answers = "... on LaunchBackfillSuccess {backfillId} ... on PythonError {message}"
    found = graphql(port, f"mutation {{{mutation} {{__typename {answers}}}}}")["launchPartitionBackfill"]
    assert found["__typename"] == "LaunchBackfillSuccess", found
    return Backfill(port, found["backfillId"])


def planned_tables(lake: Path, catalog: str) -> list[list[str]]:
    """The tables of each snapshot that was planned."""
    rows = small_table(Layout(str(lake), "server1", catalog), "snapshots").rows()
    return sorted([table["table"]["name"] for table in json.loads(row["plan"])["tables"]] for row in rows)


def eventually(what: Callable[[], Any], *, seconds: float, otherwise: Callable[[], Any]) -> None:
    """Wait until something holds.

    Args:
        what: Tells whether it does.
        seconds: How long it may take.
        otherwise: Tells what is the case instead.
    """
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.5)
