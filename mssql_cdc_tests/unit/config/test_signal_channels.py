"""`signal.enabled.channels`: built-in channels, those of users, and those that do not exist here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.extension_kit import install


@pytest.mark.feature("SIG-01", "SIG-06")
def test_channels_are_the_signal_table_by_default_and_a_file_on_demand() -> None:
    assert connector_with({}).signals.channels == ("source",)
    found = connector_with({"signal.enabled.channels": "Source, FILE, file", "signal.file": "in/signals.txt"}).signals
    assert (found.channels, found.polled) == (("source", "file"), ("file",))
    assert found.file == str(Path("in/signals.txt").absolute())


@pytest.mark.feature("SIG-05")
def test_kafka_is_built_in_unless_an_entry_point_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {"signal.enabled.channels": "source,Kafka,file", "signal.file": "signals.txt"}
    found = connector_with(given | {"signal.kafka.bootstrap.servers": "kafka:9092"})
    assert (found.signals.channels, found.signals.reads_kafka) == (("source", "kafka", "file"), True)
    assert found.notices == ()
    monkeypatch.syspath_prepend(install(tmp_path, "mine", {"mssql_cdc.signal_channels": {"kafka": "mine:Kafka"}}))
    own = connector_with({"signal.enabled.channels": "kafka"}).signals
    assert (own.channels, own.reads_kafka) == (("kafka",), False)


@pytest.mark.feature("SIG-07")
def test_jmx_has_no_meaning_and_is_left_out_with_a_notice() -> None:
    connector = connector_with({"signal.enabled.channels": "source,jmx"})
    assert connector.signals.channels == ("source",)
    assert connector.notices == ("signal.enabled.channels: jmx has no meaning here",)


@pytest.mark.feature("SPI-06", "SPI-04")
def test_other_channels_are_entry_points_whose_names_are_prefixes_of_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"signal\.enabled\.channels: found 'mail', expected the name of an"):
        connector_with({"signal.enabled.channels": "mail"})
    monkeypatch.syspath_prepend(install(tmp_path, "mail", {"mssql_cdc.signal_channels": {"mail": "mails:Mail"}}))
    connector = connector_with({"signal.enabled.channels": "source,mail", "mail.password": "hunter2"})
    assert connector.signals.polled == ("mail",)
    assert "hunter2" not in repr(connector)
    with pytest.raises(ConfigurationError, match="unknown property"):
        connector_with({"mail.password": "hunter2"})


@pytest.mark.feature("SPI-06")
@pytest.mark.parametrize(
    ("channels", "wrong"),
    [
        ({"signal.enabled.channels": "source"}, "source.struct.verison"),
        ({"signal.enabled.channels": "Source,FILE"}, "FILE.name"),
        ({"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "k:1"}, "kafka.topic"),
        ({"signal.enabled.channels": "source,jmx"}, "jmx.port"),
        ({"notification.enabled.channels": "log,jmx"}, "log.level"),
        ({"notification.enabled.channels": "sink", "notification.sink.topic.name": "t"}, "sink.topic"),
    ],
)
def test_a_built_in_channel_opens_no_prefix(channels: dict[str, object], wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{wrong}: unknown property"):
        connector_with({**channels, wrong: "x"})


@pytest.mark.feature("SPI-06")
def test_an_extension_with_the_name_of_a_built_in_channel_opens_its_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "mine", {"mssql_cdc.signal_channels": {"kafka": "mine:Kafka"}}))
    assert connector_with({"signal.enabled.channels": "kafka", "kafka.own": "x"}).signals.channels == ("kafka",)


@pytest.mark.feature("INC-08")
def test_watermarks_in_a_database_without_a_signal_table_are_told_to_have_no_effect() -> None:
    wanted = {"incremental.snapshot.watermarking.strategy": "insert_delete", "database.names": "shop,stock"}
    (notice,) = connector_with(wanted | {"signal.data.collection": "shop.dbo.signals"}).notices
    assert notice == (
        "incremental.snapshot.watermarking.strategy: no effect in stock: signal.data.collection names no table there "
        "to write to"
    )
