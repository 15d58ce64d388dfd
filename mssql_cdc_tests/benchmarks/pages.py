"""A `dagster-webserver`, and the GraphQL queries that its pages send: the asset graph's and an asset's.

The queries were recorded in a browser (Dagster 1.13.27) and shortened to what depends on the number of assets, windows
and events.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import dagster as dg

from mssql_cdc.demo.ports import free_port
from mssql_cdc_tests.benchmarks.measure import tree_cpu
from mssql_cdc_tests.benchmarks.states import FRESHNESS_STATE, faults

START_SECONDS = 180
NODES = "{ assetNodes { assetKey { path } } }"
BATCH = 10
"""The browser asks for the state of so many assets at once."""
WORKSPACE = """query LocationWorkspaceAssetsQuery($name: String!) { workspaceLocationEntryOrError(name: $name) {
  ... on WorkspaceLocationEntry { id locationOrLoadError { ... on RepositoryLocation { repositories { id assetNodes {
    id changedReasons groupName opNames isMaterializable isObservable isExecutable isPartitioned hasAssetChecks
    hasMaterializePermission assetKey { path } partitionDefinition { dimensionTypes { type } }
    internalFreshnessPolicy { __typename } automationCondition { __typename } description(characterLimit: 240)
    owners { __typename } tags { key value } storageAddress { storageKind tableName } jobNames kinds graphName
    dependencyKeys { path } } assetGroups { id groupName } } } } } } }"""
LIVE = """query AssetGraphLiveQuery($assetKeys: [AssetKeyInput!]!) {
  assetNodes(assetKeys: $assetKeys, loadMaterializations: true) {
    id opNames repository { id } assetKey { path }
    assetMaterializations(limit: 1) { timestamp runId stepKey } assetObservations(limit: 1) { timestamp runId stepKey }
    assetChecksOrError { ... on AssetChecks { checks {
      name canExecuteIndividually executionForLatestMaterialization { id status timestamp evaluation { severity } }
      partitionDefinition { name } } } }
    partitionStats { numMaterialized numMaterializing numPartitions numFailed } }
  assetsLatestInfo(assetKeys: $assetKeys) {
    id assetKey { path } unstartedRunIds inProgressRunIds latestRun { id status startTime endTime } } }"""
STALE = """query AssetStaleStatusDataQuery($assetKeys: [AssetKeyInput!]!) { assetNodes(assetKeys: $assetKeys) {
  id assetKey { path } staleStatus
  staleCauses { key { path } reason category dependency { path } } } }"""
FRESHNESS = """query AssetsFreshnessInfoQuery($assetKeys: [AssetKeyInput!]!) { assetNodes(assetKeys: $assetKeys) {
  id assetKey { path } freshnessInfo { currentMinutesLate } } }"""
ENTRIES = """metadataEntries { label description ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue }
  ... on FloatMetadataEntry { floatValue } ... on TimestampMetadataEntry { timestamp }
  ... on BoolMetadataEntry { boolValue } }"""
DEFINITION = """query AssetViewDefinitionQuery($assetKey: AssetKeyInput!) { assetOrError(assetKey: $assetKey) {
  ... on Asset { id hasDefinitionOrRecord assetMaterializations(limit: 1) { timestamp runId } definition {
    id groupName pools partitionDefinition { description } partitionKeysByDimension { name }
    backfillPolicy { description } opTags { key value } requiredResources { resourceKey } jobNames opNames
    configField { name configType { key recursiveConfigTypes { key } } }
    metadataEntries { label ... on TableSchemaMetadataEntry { schema { columns { name type description } } }
      ... on TableColumnLineageMetadataEntry { lineage { columnName columnDeps { assetKey { path } columnName } } } }
    } } } }"""
OVERVIEW = f"""query AssetOverviewMetadataEventsQuery($assetKey: AssetKeyInput!) {{ assetOrError(assetKey: $assetKey) {{
  ... on Asset {{ id assetMaterializations(limit: 1) {{ timestamp runId partition {ENTRIES} }}
    assetObservations(limit: 1) {{ timestamp runId partition {ENTRIES} }} }} }} }}"""
HEALTH = """query PartitionHealthQuery($assetKey: AssetKeyInput!) { assetNodeOrError(assetKey: $assetKey) {
  ... on AssetNode { id partitionKeysByDimension { name type partitionKeys }
    assetPartitionStatuses { ... on TimePartitionStatuses { ranges { status startTime endTime startKey endKey } } }
    } } }"""
EVENTS = f"""query RecentAssetEventsQuery($assetKey: AssetKeyInput!) {{ assetOrError(assetKey: $assetKey) {{
  ... on Asset {{ id assetEventHistory(
      limit: 100, partitions: [], eventTypeSelectors: [MATERIALIZATION, OBSERVATION, FAILED_TO_MATERIALIZE]) {{
    cursor results {{
      ... on MaterializationEvent {{ partition runId timestamp stepKey runOrError {{ ... on Run {{ id status }} }}
        tags {{ key value }} {ENTRIES} }}
      ... on ObservationEvent {{ partition runId timestamp {ENTRIES} }} }} }} }} }} }}"""


class WebserverError(RuntimeError):
    """The webserver did not start; the text is its log."""


class NoAnswerError(RuntimeError):
    """The webserver did not answer a query, or with an error."""


@dataclass(frozen=True, slots=True)
class Pages:
    """A running webserver; `patience` is how many seconds it has for an answer."""

    port: int
    pid: int
    patience: float = 600.0

    def ask(self, query: str, **variables: Any) -> Any:
        """Send a query and return its data.

        Raises:
            NoAnswerError: There is no answer, or it is an error.
        """
        body = json.dumps({"query": query, "variables": variables}).encode()
        address = f"http://127.0.0.1:{self.port}/graphql"
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.patience) as answer:  # noqa: S310 (our own server)
                found = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswerError(f"{query[:60]}: {error}") from error
        if "errors" in found or "PythonError" in json.dumps(found)[:2000]:
            raise NoAnswerError(f"{query[:60]}: {json.dumps(found)[:2000]}")
        return found["data"]

    def asset_keys(self) -> list[dg.AssetKey]:
        """The assets of the graph."""
        return [dg.AssetKey(node["assetKey"]["path"]) for node in self.ask(NODES)["assetNodes"]]

    def ask_states(self, keys: Sequence[dg.AssetKey]) -> None:
        """Ask what an open page asks for these assets every few seconds."""
        self._states(keys, LIVE)

    def faults(self, keys: Sequence[dg.AssetKey]) -> Mapping[str, str]:
        """The assets that are not green, and why."""
        found = dict[str, str]()
        for some in _batches(keys):
            found |= faults(*(self.ask(query, assetKeys=some) for query in (LIVE, STALE, FRESHNESS_STATE)))
        return found

    def kinds(self, keys: Sequence[dg.AssetKey]) -> Mapping[str, Callable[[], None]]:
        """The pages: what they show, and what sends their queries.

        Args:
            keys: The assets of the graph, of which the first one's page is opened.
        """
        return {
            f"graph of {len(keys)} assets: definitions": lambda: self.ask(WORKSPACE, name="mssql_cdc.definitions"),
            f"graph of {len(keys)} assets: their states": lambda: self._states(keys, LIVE),
            f"graph of {len(keys)} assets: stale or not": lambda: self._states(keys, STALE),
            f"graph of {len(keys)} assets: freshness": lambda: self._states(keys, FRESHNESS),
            f"states of {BATCH} change logs": lambda: self._states(keys[:BATCH], LIVE),
            "a change log's page: overview": lambda: self._asset(keys[0], DEFINITION, OVERVIEW),
            "a change log's page: windows": lambda: self._asset(keys[0], HEALTH),
            "a change log's page: events": lambda: self._asset(keys[0], EVENTS),
        }

    def timed(self, work: Callable[[], object]) -> tuple[float, float]:
        """Milliseconds by the clock, and of CPU in the webserver and its code server."""
        begun, before = time.perf_counter(), tree_cpu(self.pid)
        work()
        return 1000 * (time.perf_counter() - begun), 1000 * (tree_cpu(self.pid) - before)

    def _states(self, keys: Sequence[dg.AssetKey], query: str) -> None:
        for some in _batches(keys):
            self.ask(query, assetKeys=some)

    def _asset(self, key: dg.AssetKey, *queries: str) -> None:
        for query in queries:
            self.ask(query, assetKey={"path": key.path})


def _batches(keys: Sequence[dg.AssetKey]) -> Iterator[list[dict[str, Any]]]:
    for first in range(0, len(keys), BATCH):
        yield [{"path": key.path} for key in keys[first : first + BATCH]]


@contextmanager
def webserver(
    folder: Path, *, home: Path | None = None, connectors: Path | None = None, patience: float = 600.0
) -> Generator[Pages]:
    """Start a webserver.

    Args:
        folder: Where its log goes.
        home: The folder of the instance; by default `folder/home`.
        connectors: The folder of the connectors; by default `folder`.
        patience: How many seconds an answer may take.
    """
    port = free_port()
    command = [str(Path(sys.executable).parent / "dagster-webserver"), "-m", "mssql_cdc.definitions"]
    environment = {"DAGSTER_HOME": str(home or folder / "home"), "MSSQL_CDC_CONNECTORS": str(connectors or folder)}
    log_file = folder / "webserver.log"
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [*command, "-h", "127.0.0.1", "-p", str(port)],
            env=os.environ | environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        pages = Pages(port, process.pid, patience)
        _wait(pages, process, log_file)
        yield pages
    finally:
        process.terminate()
        process.wait(60)


def _wait(pages: Pages, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            pages.ask("{ version }")
        except NoAnswerError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise WebserverError(log.read_text()) from None
            time.sleep(0.2)
        else:
            return
