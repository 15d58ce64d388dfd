"""A hand-launched run names each mistake of a configuration or a server as the command line does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.setup import Setup
from mssql_cdc.run.discover import read_table_list
from mssql_cdc.schema import TableSchema
from mssql_cdc_tests.dagster.kit import failures, table
from mssql_cdc_tests.end_to_end import test_mistakes as mistakes
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.servers import Server

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.slow]
own_server, shop, by_encryption = mistakes.own_server, mistakes.shop, mistakes.by_encryption
asked, not_beating = mistakes.asked, mistakes.not_beating
NAMES = [name for name in mistakes.MISTAKES if name not in mistakes.STANDING]
LAUNCHED = [
    *(("window", name) for name in NAMES),
    *((what, name) for what in ("current", "snapshot") for name in ("closed port", "wrong password", NAMES[7])),
]


def materialize(
    place: Place, tables: Sequence[TableSchema], what: str, instance: dg.DagsterInstance
) -> dg.ExecuteInProcessResult:
    """Launch a run of a window, of a current table or of a snapshot."""
    made, warehouse = load_connector(place.config), str(place.warehouse)
    setup = Setup.of(made, tables[0].table_id.catalog or "", tuple(tables), warehouse=warehouse)
    definitions = build_definitions(made, tables=tables, warehouse=warehouse)
    job = definitions.get_repository_def().get_implicit_global_asset_job_def()
    own = tables[0].table_id
    key, partition = {
        "window": (setup.names.log_key(own), setup.windows.key(datetime.now(UTC))),
        "current": (setup.names.current_key(own), None),
        "snapshot": (setup.snapshots_key, setup.names.snapshot_key(own)),
    }[what]
    return job.execute_in_process(
        instance=instance, asset_selection=[key], partition_key=partition, raise_on_error=False
    )


def failure(done: dg.ExecuteInProcessResult) -> str:
    """With what a run fails."""
    assert not done.success
    return " ".join(failures(done)[0].split())


@pytest.mark.feature("PRE-04")
@pytest.mark.parametrize(("what", "name"), LAUNCHED)
def test_a_mistake_is_named_by_a_run_that_an_operator_launches(
    what: str, name: str, shop: Place, asked: mistakes.Asked, instance: dg.DagsterInstance
):
    mistake = mistakes.MISTAKES[name]
    says = mistakes.make(mistake, shop)
    tables = [one for listed in read_table_list(shop.config).values() for one in listed]
    if name == "unknown database":
        tables = [table("orders", database="nowhere")]
    said = failure(materialize(shop, tables, what, instance))
    assert re.search(says, said), said
    assert mistakes.PASSWORD not in said
    assert asked.connections <= mistake.connections
    assert asked.statements <= mistake.statements_asked
    assert asked.pauses == []


def test_a_heartbeat_table_that_is_not_captured_is_a_warning_of_a_run(not_beating: Place, instance: dg.DagsterInstance):
    tables = [one for listed in read_table_list(not_beating.config).values() for one in listed]
    done = materialize(not_beating, tables, "snapshot", instance)
    assert done.success, failures(done)
    logged = [entry.user_message for entry in instance.all_logs(done.run_id)]
    assert len([line for line in logged if mistakes.NOT_BEATING in line]) == 1


@mistakes.BY_DRIVER
@mistakes.REFUSED_TLS
def test_refused_tls_names_the_property_in_a_run(
    encrypt: str,
    says: str,
    driver: str | None,
    by_encryption: Mapping[str, Server],
    tmp_path: Path,
    instance: dg.DagsterInstance,
):
    server = by_encryption[encrypt]
    place = mistakes.refused(server, tmp_path, encrypt, driver)
    said = failure(materialize(place, [table("orders", database="master")], "window", instance))
    assert re.search(says, said), said
    assert server.password not in said
