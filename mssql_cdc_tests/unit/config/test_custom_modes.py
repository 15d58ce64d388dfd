"""The modes `custom` of snapshots need the name of an installed entry point, which has no effect without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.extension_kit import install

MODES = {
    "snapshot.mode": "mssql_cdc.snapshotters",
    "snapshot.query.mode": "mssql_cdc.snapshot_queries",
    "snapshot.locking.mode": "mssql_cdc.snapshot_locks",
}


@pytest.mark.feature("SPI-04")
@pytest.mark.parametrize("mode", MODES)
def test_custom_needs_a_name_that_is_installed(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{mode}.custom.name"
    with pytest.raises(ConfigurationError, match=f"{mode}: custom requires {name}, the name of an entry point in"):
        connector_with({mode: "custom"})
    with pytest.raises(ConfigurationError, match=f"{name}: found 'mine', expected the name of an entry point"):
        connector_with({mode: "custom", name: "mine"})
    points = {MODES[mode]: {"mine": "one:Mine", "twice": "one:Mine"}}
    monkeypatch.syspath_prepend(install(tmp_path / "one", "one", points))
    assert connector_with({mode: "custom", name: "mine", "mine.option": "x"}).notices == ()
    monkeypatch.syspath_prepend(install(tmp_path / "two", "two", {MODES[mode]: {"twice": "two:Other"}}))
    with pytest.raises(ConfigurationError, match=f"{name}: 2 installed distributions name an entry point 'twice'"):
        connector_with({mode: "custom", name: "twice"})


@pytest.mark.parametrize("mode", MODES)
def test_a_name_without_its_mode_is_told_to_have_no_effect(mode: str) -> None:
    (notice,) = connector_with({f"{mode}.custom.name": "mine"}).notices
    assert notice == f"{mode}.custom.name: has no effect without {mode}=custom"


@pytest.mark.feature("SPI-08", "NOT-01")
def test_notification_channels_are_log_sink_and_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"notification\.enabled\.channels: found 'pager', expected the name"):
        connector_with({"notification.enabled.channels": "log,pager"})
    monkeypatch.syspath_prepend(install(tmp_path, "pager", {"mssql_cdc.notification_channels": {"pager": "p:Pager"}}))
    connector = connector_with({"notification.enabled.channels": "Log,pager,jmx", "pager.number": "7"})
    assert connector.notifications.channels == ("log", "pager")
    assert connector.notices == ("notification.enabled.channels: jmx has no meaning here",)


@pytest.mark.feature("SNP-10")
def test_never_is_no_mode_of_this_connector() -> None:
    with pytest.raises(
        ConfigurationError, match=r"snapshot\.mode: found 'never', expected always, initial, .* or custom"
    ):
        connector_with({"snapshot.mode": "never"})
