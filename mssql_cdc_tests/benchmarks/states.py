"""Which assets are not green, as Dagster's pages tell: missing, stale, overdue or failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FRESHNESS_STATE = """query AssetFreshnessStateQuery($assetKeys: [AssetKeyInput!]!) { assetNodes(assetKeys: $assetKeys) {
  assetKey { path } freshnessStatusInfo { freshnessStatus } } }"""
UNKNOWN_FRESHNESS = "of unknown freshness"
_FRESHNESS = {"WARNING": "overdue", "DEGRADED": "overdue", "UNKNOWN": UNKNOWN_FRESHNESS}
"""What the states of a freshness policy mean; `UNKNOWN`: the daemon has not looked at it."""
_FAILED_CHECKS = {"FAILED", "EXECUTION_FAILED"}


def faults(live: Mapping[str, Any], stale: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with assets, by name; those that are green are left out.

    Args:
        live: The answer to `pages.LIVE`.
        stale: The answer to `pages.STALE`.
        fresh: The answer to `FRESHNESS_STATE`.
    """
    runs = {_name(one): one["latestRun"] for one in live["assetsLatestInfo"]}
    statuses = {_name(one): one["staleStatus"] for one in stale["assetNodes"]}
    late = {_name(one): (one["freshnessStatusInfo"] or {}).get("freshnessStatus") for one in fresh["assetNodes"]}
    found = dict[str, str]()
    for node in live["assetNodes"]:
        name = _name(node)
        said = [*_of_node(node, runs.get(name))]
        if statuses.get(name) == "STALE":
            said.append("stale")
        if (state := late.get(name)) in _FRESHNESS:
            said.append(_FRESHNESS[state])
        if said:
            found[name] = " and ".join(said)
    return found


def _of_node(node: Mapping[str, Any], run: Mapping[str, Any] | None) -> Iterator[str]:
    events, windows = node["assetMaterializations"], node["partitionStats"]
    if not events:
        yield "missing"
    elif windows is not None:
        # A run that has just begun, and has not reported a window yet, is materializing it.
        there = windows["numMaterialized"] + windows["numMaterializing"] + windows["numFailed"]
        if there < windows["numPartitions"]:
            yield f"missing {windows['numPartitions'] - there} partitions"
    if windows is not None and windows["numFailed"]:
        yield f"failed in {windows['numFailed']} partitions"
    # As the pages see it, a failed run counts until another one, or itself, materializes the asset.
    if run is not None and run["status"] == "FAILURE" and not (events and events[0]["runId"] == run["id"]):
        yield "failed"
    for check in node["assetChecksOrError"].get("checks", ()):
        done = check["executionForLatestMaterialization"]
        if done is not None and done["status"] in _FAILED_CHECKS:
            yield f"failed in the check {check['name']}"


def _name(one: Mapping[str, Any]) -> str:
    return "/".join(one["assetKey"]["path"])
