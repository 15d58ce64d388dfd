"""A signal that cannot be read or applied is ignored with its reason, and those behind it are taken (SIG-09)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import DONE, IGNORED, REQUESTED, SignalRow
from mssql_cdc.config.signal_settings import SOURCE_CHANNEL
from mssql_cdc.errors import StorageError
from mssql_cdc.follow.signal_contract import Arrived, SignalChannel, SignalRecord
from mssql_cdc.follow.signals import apply_signal, look_into, record_signals
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.config.samples import connector_with

ORDERS = TableId("shop", "dbo", "orders")
UNREADABLE = {
    "a repetition": json.dumps({"data-collections": ["shop.dbo.t{99999999999}"]}),
    "groups": json.dumps({"data-collections": ["(" * 600 + ")" * 600]}),
    "arrays": "[" * 1000,
    "objects": '{"a":' * 1000,
    "a condition": json.dumps(
        {
            "data-collections": ["dbo.orders"],
            "additional-conditions": [{"data-collection": "x{99999999999}", "filter": "id = 1"}],
        }
    ),
    "half of a pair": '{"data-collections": ["\\ud800"]}',
}


class One:
    """A channel that delivers these signals once."""

    def __init__(self, *signals: SignalRecord) -> None:
        self.signals = signals

    def read(self, bookmark: Any) -> Arrived | None:
        return None if bookmark else Arrived(self.signals, 1)


def database(folder: Path, **properties: str) -> Database:
    """A database whose lake has nothing yet."""

    def none() -> Any:
        raise AssertionError("signals need no Spark")

    connector = connector_with({"database.names": "shop", "delta.warehouse": str(folder), **properties})
    return Database.of(connector, "shop", spark=none, source=ModelSource("orders"))


def notified(own: Database) -> list[dict[str, Any]]:
    return small_table(own.layout, "notifications", own.storage).rows()


def taken(own: Database, channel: SignalChannel, name: str = "file") -> list[dict[str, Any]]:
    """The rows of `_signals` behind a look at a channel, which has nothing left then."""
    looked = look_into(own, {name: channel})
    assert looked is not None
    record_signals(own, looked, [ORDERS], Offsets())
    assert look_into(own, {name: channel}) is None
    return small_table(own.layout, "signals", own.storage).rows()


@pytest.mark.feature("SIG-09")
@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("kind", ["execute-snapshot", "stop-snapshot", "acknowledge-gaps"])
def test_a_signal_that_cannot_be_read_is_ignored_and_the_next_one_is_taken(kind: str, data: str, tmp_path: Path):
    """It ended every run: the exception came before the commit of the bookmark."""
    own = database(tmp_path)
    log = SignalRecord(id="2", type="log", data='{"message": "hello"}')
    rows = taken(own, One(SignalRecord(id="1", type=kind, data=data), log))
    by_id = {row["id"]: row for row in rows}
    if data != UNREADABLE["a condition"] or kind == "execute-snapshot":
        assert (by_id["1"]["status"], bool(by_id["1"]["result"])) == (IGNORED, True)
    assert (by_id["2"]["status"], by_id["2"]["result"]) == (DONE, "hello")
    assert "is ignored" in apply_signal(
        own, SignalRow("3", kind, UNREADABLE["groups"]), [ORDERS], Offsets(), channel="x"
    )


@pytest.mark.feature("SIG-09")
@pytest.mark.parametrize("kind", ["execute-snapshot", "stop-snapshot", "acknowledge-gaps"])
def test_a_text_that_is_no_expression_is_refused_only_if_it_is_the_name_of_no_table(kind: str, tmp_path: Path):
    own, table = database(tmp_path), TableId("shop", "dbo", "price (EUR")
    data = json.dumps({"data-collections": [table.text]})
    said = apply_signal(own, SignalRow("1", kind, data), [table], Offsets(), channel="test")
    assert "is ignored" not in said
    said = apply_signal(own, SignalRow("2", kind, data), [ORDERS], Offsets(), channel="test")
    assert f"is ignored: {table.text!r} is not a valid regular expression" in said


@pytest.mark.feature("SIG-09")
def test_half_of_a_surrogate_pair_is_kept_as_a_question_mark(tmp_path: Path):
    """A channel of a user may deliver it; the lake's texts cannot have it."""
    record = SignalRecord(id="a\ud800", type="b\udfff", data='{"c\ud800": 1}', position="\ud800")
    (row,) = taken(database(tmp_path), One(record))
    assert (row["id"], row["type"], row["data"], row["position"]) == ("a?", "b?", '{"c?": 1}', "?")
    assert row["status"] == IGNORED


@pytest.mark.feature("SIG-09")
def test_a_signal_that_fails_for_an_unforeseen_reason_is_ignored_with_it(tmp_path: Path):
    own = database(tmp_path)
    bad = SignalRecord(id="1", type="pause-snapshot", position="no position")
    good = SignalRecord(id="2", type="pause-snapshot")
    rows = taken(own, One(bad, good), SOURCE_CHANNEL)
    assert [(row["id"], row["status"]) for row in rows] == [("1", IGNORED), ("2", REQUESTED)]
    assert rows[0]["result"].startswith("it failed: ValueError: ")


def test_a_lake_that_cannot_be_read_lets_a_signal_wait(tmp_path: Path):
    own = database(tmp_path)
    channel = One(SignalRecord(id="1", type="acknowledge-gaps"))
    looked = look_into(own, {"file": channel})
    assert looked is not None
    gaps = Path(own.layout.own("gaps"))
    (gaps / "_delta_log").mkdir(parents=True)
    (gaps / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(StorageError, match="gaps"):
        record_signals(own, looked, [ORDERS], Offsets())
    assert look_into(own, {"file": channel}) is not None


@pytest.mark.feature("SIG-01", "SIG-10")
@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_signal_that_names_tables_of_another_database_only_is_not_told_by_this_one(kind: str, tmp_path: Path):
    """All databases read these channels: each of the others told under the signal's id that its tables are unknown."""
    own = database(tmp_path, **{"database.names": "shop,crm", "notification.enabled.channels": "log"})
    data = {"type": kind, "data-collections": ["crm.dbo.orders"]}
    (row,) = taken(own, One(SignalRecord(id="1", type="execute-snapshot", data=json.dumps(data))))
    assert (row["status"], row["result"]) == (IGNORED, "it names tables of other databases only")
    assert notified(own) == []
    unknown = json.dumps(data | {"data-collections": ["shop.dbo.ordrs"]})
    assert "no captured table" in apply_signal(
        own, SignalRow("2", "execute-snapshot", unknown), [ORDERS], Offsets(), channel="x"
    )
    assert notified(own)
