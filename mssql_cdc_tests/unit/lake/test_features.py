"""A table feature that a user has added decides who commits to a table (rules A3, A5)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.features import never_appended
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, orders

SCHEMA = orders()
REFUSED = {
    "in-commit timestamps": (["inCommitTimestamp"], {"delta.enableInCommitTimestamps": "true"}),
    "row tracking": (["domainMetadata", "rowTracking"], {"delta.enableRowTracking": "true"}),
    "clustering": (["clustering", "domainMetadata"], {}),
    "protected checkpoints": (["checkpointProtection"], {}),
    "defaults": (["allowColumnDefaults"], {}),
    "identity values": (["identityColumns"], {}),
    "unknown": (["featureOfTomorrow"], {}),
}
WRITTEN = {
    "change data feed": (["changeDataFeed"], {"delta.enableChangeDataFeed": "true"}),
    "constraints": (["checkConstraints"], {"delta.constraints.a": "op <> 'x'"}),
    "generated columns": (["generatedColumns"], {}),
    "deletion vectors": (["deletionVectors"], {"delta.enableDeletionVectors": "true"}),
    "widening": (["typeWidening"], {"delta.enableTypeWidening": "true"}),
    "protected vacuum": (["vacuumProtocolCheck"], {}),
    "checkpoints of the second kind": (["v2Checkpoint"], {"delta.checkpointPolicy": "v2"}),
}
_READERS = {"typeWidening", "vacuumProtocolCheck", "deletionVectors", "v2Checkpoint"}


def altered(uri: str, features: Sequence[str], properties: Mapping[str, str]) -> None:
    """The commit of an ALTER TABLE that adds the features."""
    log = load_log(uri)
    assert log is not None
    readers = sorted(_READERS.intersection(features))
    protocol: dict[str, Any] = {
        "minReaderVersion": 3 if readers else 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", *features],
        **({"readerFeatures": readers} if readers else {}),
    }
    metadata = {**log.metadata, "configuration": {**log.properties, **properties}}
    info = {"timestamp": int(time.time() * 1000), "operation": "SET TBLPROPERTIES", "operationParameters": {}}
    actions = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}]
    entry = Path(uri, "_delta_log", f"{log.version + 1:020}.json")
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize(("features", "properties"), REFUSED.values(), ids=REFUSED)
def test_change_log_with_a_feature_that_concerns_appends_needs_spark(
    tmp_path: Path, features: list[str], properties: dict[str, str]
):
    home = home_in(tmp_path)
    before = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    assert not before.needs_spark
    altered(home.changes, features, properties)
    state = change_log(home, SCHEMA)
    verify_untouched(state, table_id=before.table_id, delta_version=before.delta_version, batch=before.batch)
    assert (state.needs_spark, state.target.physical) == (True, False)
    concerned = sorted(set(features) - {"domainMetadata"})
    with pytest.raises(StorageError, match=f"only Spark writes: {', '.join(concerned)}[.]"):
        append(state, SCHEMA, Change(2, "d", {"id": 1}))


@pytest.mark.parametrize(("features", "properties"), WRITTEN.values(), ids=WRITTEN)
def test_change_log_with_a_feature_that_does_not_concern_appends_needs_no_spark(
    tmp_path: Path, features: list[str], properties: dict[str, str]
):
    home = home_in(tmp_path)
    append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    altered(home.changes, features, properties)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(2, "d", {"id": 1}))
    assert (state.needs_spark, state.batch) == (False, 2)


@pytest.mark.parametrize(("version", "refused"), [(2, ()), (3, ()), (4, ()), (5, ()), (6, ("identityColumns",))])
def test_writer_version_before_features_is_known_by_what_it_implies(
    tmp_path: Path, version: int, refused: tuple[str, ...]
):
    home = home_in(tmp_path)
    append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    entry = Path(home.changes, "_delta_log", f"{2:020}.json")
    entry.write_text(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": version}}) + "\n")
    state = change_log(home, SCHEMA)
    assert never_appended(state.features) == refused
    if not refused:
        assert append(state, SCHEMA, Change(2, "d", {"id": 1})).batch == 2


@pytest.mark.parametrize("name", ["offsets", "notifications"])
def test_small_table_with_a_feature_that_concerns_appends_names_feature_and_remedy(tmp_path: Path, name: str):
    layout = Layout(str(tmp_path), "server1", "shop")
    table = replace(small_table(layout, "notifications"), uri=layout.own(name), owner=layout.own_app_id(name))
    table.append(table.state(), [{"id": "1"}], {})
    altered(table.uri, *REFUSED["clustering"])
    with pytest.raises(StorageError) as said:
        table.append(table.state(), [{"id": "2"}], {})
    message = str(said.value)
    assert "only Spark writes: clustering. " in message
    assert f"ALTER TABLE delta.`{table.uri}` DROP FEATURE" in message
    assert f"RESTORE TABLE delta.`{table.uri}`" in message


@pytest.mark.parametrize("feature", [REFUSED["clustering"], WRITTEN["widening"]], ids=["clustering", "widening"])
def test_writer_that_only_spark_has_committed_for_knows_its_commits(tmp_path: Path, feature: Any):
    """Spark's commits have the counter's txn alone; it used to commit to every log with a widened column."""
    home = home_in(tmp_path)
    append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1}))
    altered(home.changes, *feature)
    facts = {"app_id": f"{home.app_id}:snapshot", "batch": 2, "rows": 0, "to": "x"}
    info = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "userMetadata": json.dumps(facts)}
    counter = {"txn": {"appId": f"{home.app_id}:batch", "version": 2}}
    entry = Path(home.changes, "_delta_log", f"{3:020}.json")
    entry.write_text(
        json.dumps({"commitInfo": {**info, "operationParameters": {}}}) + "\n" + json.dumps(counter) + "\n"
    )
    state = load_state(home.changes, owner=home.app_id, writer="snapshot")
    assert state is not None
    assert (state.batch, state.own_batch, state.to) == (2, 2, "x")
