"""`signal.enabled.channels`: built-in channels, those of users, and those that do not exist here."""

from __future__ import annotations

from dataclasses import replace
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


@pytest.mark.feature("SIG-02")
@pytest.mark.parametrize(
    ("database", "named", "expected"),
    [
        ("Contoso.Sales", "dbo.signals", ("dbo", "signals")),
        ("Contoso.Sales", "[contoso.sales].dbo.signals", ("dbo", "signals")),
        ("Contoso.Sales", '"Contoso.Sales"."dbo"."signals"', ("dbo", "signals")),
        ("inv", "dbo.[my.signals]", ("dbo", "my.signals")),
        ("inv", "[my.schema].signals", ("my.schema", "signals")),
        ("inv", "inv.dbo.[a]]b]", ("dbo", "a]b")),
        ("inv", "[inv].[dbo].[signals]", ("dbo", "signals")),
    ],
)
def test_a_signal_table_is_found_whatever_its_names_hold(database: str, named: str, expected: tuple[str, str]) -> None:
    connector = connector_with({"database.names": database, "signal.data.collection": named})
    for one in (connector, connector.with_real_names([database]), replace(connector, notices=())):
        assert one.signals.table_of(database.lower()) == expected
        assert one.filters.tables.is_signal_table(database.upper(), *expected)
        assert not one.filters.tables.is_signal_table(database, f"{expected[0]}.x", expected[1])


@pytest.mark.feature("SIG-02")
def test_the_signal_tables_of_several_databases_with_dots_are_all_kept() -> None:
    given = {"database.names": "Contoso.Sales,inv", "signal.data.collection": "[Contoso.Sales].dbo.s,inv.dbo.s"}
    signals = connector_with(given).signals
    assert [signals.table_of(name) for name in ("Contoso.Sales", "inv")] == [("dbo", "s")] * 2


@pytest.mark.feature("SIG-02")
@pytest.mark.parametrize("second", ["inv.dbo.b", "[INV].dbo.b", "dbo.b"])
def test_a_database_has_one_signal_table(second: str) -> None:
    with pytest.raises(ConfigurationError, match=r"names two tables of .*dbo\.a and .*dbo\.b; keep one"):
        connector_with({"database.names": "inv", "signal.data.collection": f"inv.dbo.a,{second}"})
    twice = connector_with({"database.names": "inv", "signal.data.collection": "inv.dbo.a,[INV].dbo.A"})
    assert twice.signals.tables == ("inv.dbo.a",)
