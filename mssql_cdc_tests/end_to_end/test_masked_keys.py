"""Values of masked key columns: in no table of the lake, no log line and no event, as text or in hexadecimal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import SourceError
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAIL = "@secret.org"
MASK = {"column_mask_hash_SHA-256_with_salt_abc": "dbo.people.mail", "incremental_snapshot_chunk_size": "2"}
KEYED = {**MASK, "delta_key_secret": "pepper-of-test"}


def fill(place: Place, columns: str) -> None:
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create("people", columns)
    rows = ", ".join(f"(N'user{number}{MAIL}', N'a')" for number in range(6))
    place.sql(f"INSERT dbo.people (mail, note) VALUES {rows}")
    place.settle()


def configure(place: Place, **properties: str) -> None:
    place.configure(signal_data_collection=f"{place.database}.dbo.signals", **properties)


def texts(place: Place) -> dict[str, str]:
    """Everything that the lake holds, by table: rows, and the files of the Delta logs."""
    found: dict[str, str] = {}
    for log in Path(place.warehouse).rglob("_delta_log"):
        rows = str(DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist())
        found[str(log.parent)] = rows + "".join(one.read_text("utf-8") for one in sorted(log.glob("*.json")))
    return found


def require_hidden(text: str) -> None:
    spelled = "|".join("user3@secret.org".encode(one).hex() for one in ("utf-16-le", "utf-16-be", "utf-8"))
    assert not re.findall(f"{MAIL}|(?i:{spelled})", text)


@pytest.mark.parametrize("channels", ["log,sink", pytest.param("", marks=pytest.mark.long)])
def test_values_of_a_masked_key_are_nowhere(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, channels: str
):
    monkeypatch.setattr("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2)
    more = {"notification_enabled_channels": channels, "notification_sink_topic_name": "notes"} if channels else {}
    configure(place, **KEYED, **more)
    fill(place, "mail nvarchar(40) NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    assert place.catch_up() == 0
    place.signal("i1", **{"type": "incremental", "data-collections": [f"{place.database}.dbo.people"]})
    place.settle()
    assert place.catch_up() == 0
    assert place.command("status") == 0
    assert place.check() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    shown = capsys.readouterr()
    for text in [shown.out + shown.err, output.read_text("utf-8"), *texts(place).values()]:
        require_hidden(text)
    notes = [str(row) for row in place_notes(place) if row["type"] == "IN_PROGRESS"]
    assert len([note for note in notes if "'***'" in note]) == 3
    assert len(place.query("SELECT op FROM t WHERE _snapshot LIKE 'incremental%'", "people", "changes")) == 6


def place_notes(place: Place) -> list[dict[str, Any]]:
    return DeltaTable(f"{place.warehouse}/shop/{place.database}/_notifications").to_pyarrow_table().to_pylist()


def test_an_interrupted_snapshot_of_a_masked_key_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Its chunks are read back."""
    monkeypatch.setattr("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2)
    configure(place, **KEYED)
    fill(place, "mail nvarchar(40) NOT NULL PRIMARY KEY, note nvarchar(20) NULL")

    def dies(*_: object, **__: object) -> None:
        raise SourceError("stopped by the test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mssql_cdc.capture.snapshot.take.read_locked_tables", dies)
        assert place.catch_up() != 0
    assert place.catch_up() == 0
    assert place.check() == 0
    assert len(place.query("SELECT mail FROM t", "people")) == 6


def test_without_the_secret_no_chunk_is_planned(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2)
    configure(place, **MASK)
    fill(place, "mail nvarchar(40) NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    assert place.catch_up() != 0
    assert "set delta.key.secret" in capsys.readouterr().err
    for text in texts(place).values():
        require_hidden(text)


def test_a_masked_surrogate_key_needs_the_secret(place: Place, capsys: pytest.CaptureFixture[str]):
    configure(place, **MASK)
    fill(place, "id int IDENTITY NOT NULL PRIMARY KEY, mail nvarchar(40) NOT NULL UNIQUE, note nvarchar(20) NULL")
    assert place.catch_up() == 0
    request = {"type": "incremental", "data-collections": [f"{place.database}.dbo.people"], "surrogate-key": "mail"}
    place.signal("i1", **request)
    place.settle()
    assert place.catch_up() == 0
    assert "set delta.key.secret" in capsys.readouterr().err
    configure(place, **KEYED)
    place.signal("i2", **request)
    place.settle()
    assert place.catch_up() == 0
    for text in texts(place).values():
        require_hidden(text)
    assert len(place.query("SELECT op FROM t WHERE _snapshot LIKE 'incremental%'", "people", "changes")) == 6


def test_the_log_shows_no_key_of_any_table(orders: Place, capsys: pytest.CaptureFixture[str]):
    """Debezium's log channel does: the lake's rows may be read by fewer people than its logs."""
    orders.configure(notification_enabled_channels="log", incremental_snapshot_chunk_size="1")
    orders.sql("INSERT INTO dbo.orders VALUES (987654321, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    capsys.readouterr()
    assert orders.command("snapshot", "--table", "dbo.orders", "--incremental") == 0
    assert orders.catch_up() == 0
    shown = capsys.readouterr().err
    assert (
        "type='IN_PROGRESS', additionalData={data_collections=" in shown or "current_collection_in_progress=" in shown
    )
    assert "987654321" not in shown
    kept: list[dict[str, str]] = [
        dict(row["additional_data"]) for row in place_notes(orders) if row["type"] == "IN_PROGRESS"
    ]
    assert "987654321" in {one.get("maximum_key") for one in kept}
