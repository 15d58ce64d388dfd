"""The documented extensions in records of a real source, and ReselectColumns, which reads the source again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.unit.documented_extensions import configuration, installed

RESELECT = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"


def configured(place: Place, **options: str) -> None:
    """Configure ReselectColumns with these options."""
    place.configure(
        **{"post.processors": "r", "r.type": RESELECT, **{f"r.reselect.{k}": v for k, v in options.items()}}
    )


def records(place: Place, name: str = "records.jsonl") -> list[dict[str, Any]]:
    """The records of tables, in order."""
    path = place.folder / name
    assert place.command("records", "--output", str(path)) == 0
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in found if one["value"] and "op" in one["value"]]


def notes(place: Place, name: str = "records.jsonl") -> list[tuple[str, Any]]:
    """Operation and note of each record that has an image behind its change."""
    return [
        (one["value"]["op"], one["value"]["after"]["note"]) for one in records(place, name) if one["value"]["after"]
    ]


@pytest.fixture
def noted(place: Place) -> Place:
    """A place whose rows were inserted without a note, got one in the same transaction, or later."""
    place.create(
        "orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL, price decimal(9, 2), note nvarchar(max)"
    )
    place.sql("INSERT INTO dbo.orders VALUES (1, N'old', 1, NULL)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "BEGIN TRAN; INSERT INTO dbo.orders VALUES (2, N'two', 2.5, NULL);"
        " UPDATE dbo.orders SET note = N'mended' WHERE id = 2; COMMIT",
        "UPDATE dbo.orders SET note = N'first' WHERE id = 1",
    )
    place.settle()
    assert place.catch_up() == 0
    return place


@pytest.mark.feature("SPI-05", "SPI-09", "SPI-11")
def test_documented_connector_renders_with_its_extensions(
    noted: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "site", monkeypatch)
    names = ("provide.transaction.metadata", "converters", "post.processors", "topic.naming.strategy")
    own = {name: value for name, value in configuration().items() if name in names or "type" in name.split(".")}
    own |= {name: value for name, value in configuration().items() if name.startswith(("money", "upper", "reselect"))}
    own |= {"transaction.metadata.factory": configuration()["transaction.metadata.factory"]}
    noted.configure(**own)
    found = records(noted)
    assert {one["topic"] for one in found} == {"shop-dbo-orders"}
    shown = [(one["value"]["op"], one["value"]["after"], one["value"]["transaction"]) for one in found]
    two = {"id": 2, "name": "TWO", "price": 250, "note": "mended"}
    assert shown == [
        ("r", {"id": 1, "name": "OLD", "price": 100, "note": None}, None),
        ("c", two, {"number": 1}),
        ("u", two, {"number": 2}),
        ("u", {"id": 1, "name": "OLD", "price": 100, "note": "first"}, {"number": 1}),
    ]


@pytest.mark.feature("SPI-10")
def test_reselect_reads_missing_values_of_streamed_changes_and_not_of_snapshots(noted: Place) -> None:
    assert notes(noted, "plain.jsonl") == [("r", None), ("c", None), ("u", "mended"), ("u", "first")]
    configured(noted)
    assert notes(noted) == [("r", None), ("c", "mended"), ("u", "mended"), ("u", "first")]


@pytest.mark.feature("SPI-10")
def test_reselect_reads_only_what_its_options_select(noted: Place) -> None:
    for number, options in enumerate(
        (
            {"null.values": "false"},
            {"columns.exclude.list": r"dbo\.orders:note"},
            {"columns.include.list": "dbo.orders:name"},
        )
    ):
        configured(noted, **options)
        assert notes(noted, f"{number}.jsonl")[1] == ("c", None)
    configured(noted, **{"columns.include.list": ".*:note", "use.event.key": "true"})
    assert notes(noted)[1] == ("c", "mended")


@pytest.mark.feature("SPI-10")
def test_reselect_reads_the_placeholder_again(noted: Place) -> None:
    noted.sql("INSERT INTO dbo.orders VALUES (3, N'?', 1, N'x')", "UPDATE dbo.orders SET name = N'real' WHERE id = 3")
    noted.settle()
    assert noted.catch_up() == 0
    noted.configure(**{"post.processors": "r", "r.type": RESELECT, "unavailable.value.placeholder": "?"})
    names = [one["value"]["after"]["name"] for one in records(noted) if one["key"] == {"id": 3}]
    assert names == ["real", "real"]


@pytest.mark.feature("SPI-10")
def test_reselect_of_a_row_that_is_gone_warns_or_fails(
    noted: Place, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    noted.sql("DELETE FROM dbo.orders WHERE id = 2")
    noted.settle()
    assert noted.catch_up() == 0
    configured(noted)
    assert notes(noted)[1] == ("c", None)
    assert f"Failed to find row in table {noted.database}.dbo.orders for the change at " in caplog.text
    configured(noted, **{"error.handling.mode": "fail"})
    assert noted.command("records", "--output", str(noted.folder / "failed.jsonl")) == 1
    assert "Failed to find row" in "".join(capsys.readouterr())


@pytest.mark.feature("SPI-10")
def test_reselect_takes_the_default_of_a_column_for_its_value(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Kafka Connect gives Debezium the default instead of NULL, so that it does not ask for the row."""
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(9) NULL DEFAULT N'new', note nvarchar(9) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'a', N'a')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.orders VALUES (2, NULL, NULL)", "UPDATE dbo.orders SET name = N'b', note = N'b'")
    place.sql("INSERT INTO dbo.orders VALUES (3, NULL, N'c')", "DELETE FROM dbo.orders WHERE id = 3")
    place.settle()
    assert place.catch_up() == 0
    configured(place, **{"error.handling.mode": "fail"})
    images = [one["value"]["after"] for one in records(place) if one["value"]["op"] == "c"]
    assert images == [{"id": 2, "name": None, "note": "b"}, {"id": 3, "name": None, "note": "c"}]
    assert "Failed to find row" not in caplog.text


@pytest.mark.feature("SPI-10")
def test_reselect_never_reads_a_masked_column(noted: Place) -> None:
    noted.configure(
        **{
            "post.processors": "r",
            "r.type": RESELECT,
            "column.mask.with.0.chars": r".*\.dbo\.orders\.note|dbo.orders.note",
        }
    )
    assert "mended" not in json.dumps([one for one in records(noted) if one["value"]["op"] == "c"])
