"""The command line against a source: exit codes, output, resuming where the last call ended."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mssql_cdc.cli import main
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.servers import grant


def test_source_that_does_not_answer_is_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    config = {
        "topic.prefix": "shop",
        "database.hostname": "127.0.0.1",
        "database.port": "1",
        "database.user": "sa",
        "database.password": "secret-of-the-test",
        "driver.loginTimeout": "1",
        "database.names": "shop",
    }
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert main(["run", "--config", str(path), "--warehouse", str(tmp_path / "lake"), "--until-caught-up"]) == 3
    assert "secret-of-the-test" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ("maintain",),
        ("schema-history",),
        ("acknowledge",),
        ("acknowledge", "--restored"),
        ("records", "--output", "records.jsonl"),
    ],
    ids=" ".join,
)
def test_a_place_without_a_lake_is_not_taken_for_an_empty_one(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """With a mistyped folder, or from another one, nothing was done, nothing said, and the code was 0."""
    monkeypatch.chdir(tmp_path)
    config = {"topic.prefix": "shop", "database.hostname": "127.0.0.1", "database.port": "1", "database.names": "shop"}
    Path("shop.json").write_text(json.dumps({**config, "driver.loginTimeout": "1"}), encoding="utf-8")
    name, *options = command
    assert main([name, "--config", "shop.json", "--warehouse", "lakes", *options]) == 2
    said = capsys.readouterr()
    assert f"{tmp_path / 'lakes'} has no lake of shop (shop): nothing was captured there" in said.err
    assert said.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["shop.json"]


@pytest.mark.spark
@pytest.mark.slow
def test_run_shows_how_far_a_snapshot_is(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create_orders()
    shown = r"snapshot: 100%, 2 rows, 1 of 1 chunks, \S+ rows/s \(1 of 1 done\)"
    assert re.search(shown, capsys.readouterr().err)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("command", ["discover", "run"])
def test_a_column_that_cdc_may_spoil_is_named_once(command: str, place: Place, capsys: pytest.CaptureFixture[str]):
    """Review, D4: the source's warnings were shown nowhere."""
    place.create("others", "id int NOT NULL PRIMARY KEY, name varchar(9) COLLATE Cyrillic_General_CI_AS NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.others VALUES (1, 'one')")
    place.settle()
    capsys.readouterr()
    if command == "discover":
        assert main(["discover", "--config", str(place.config)]) == 0
    else:
        assert place.command("run", "--seconds", "2") == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "Cyrillic_General_CI_AS" in line]
    assert len(said) == 1
    assert f"{place.database}.dbo.others: column 'name'" in said[0]


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
def test_check_of_a_lake_that_is_not_caught_up_ends_with_code_3(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.settle()
    place.sql("INSERT INTO dbo.orders VALUES (1)", "EXEC sandbox.capture_pause")
    assert place.check() == 3
    assert "Not caught up yet: nothing of" in capsys.readouterr().err
    assert place.command("run", "--until-caught-up", "--timeout", "5") == 3
    capsys.readouterr()
    assert place.check() == 3
    assert "Not caught up yet" in capsys.readouterr().err
    place.sql("EXEC sandbox.capture_resume")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_prints_its_own_lines_and_no_spark_output(place: Place):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1)")
    arguments = ["--config", str(place.config), "--warehouse", str(place.warehouse), "--until-caught-up"]
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.cli", "run", *arguments], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert not [line for line in done.stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d \S", line)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-03")
def test_initial_only_yields_a_verified_lake_and_records_and_then_stops_capturing(place: Place):
    place.configure(snapshot_mode="initial_only")
    place.create_orders()
    assert place.check() == 0
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    assert place.catch_up() == 0
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    rows = [(one["value"]["op"], one["value"]["after"]["id"]) for one in records if one["topic"].endswith("orders")]
    assert sorted(rows) == [("r", 1), ("r", 2)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-01", "SNP-25")
def test_always_takes_a_snapshot_of_the_listed_tables_at_every_start(place: Place):
    place.configure(snapshot_mode="always", snapshot_include_collection_list=f"{place.database}.dbo.orders")
    for table in ("orders", "others"):
        place.create(table, "id int NOT NULL PRIMARY KEY")
        place.sql(f"INSERT INTO dbo.{table} VALUES (1)")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.others VALUES (2)")
    for _ in range(2):
        assert place.catch_up() == 0
    assert [row["op"] for row in place.query("SELECT op FROM t", "orders", "changes")] == ["r", "r", "r"]
    assert [row["op"] for row in place.query("SELECT op FROM t", "others", "changes")] == ["c"]


@pytest.mark.spark
@pytest.mark.slow
def test_each_run_resumes_where_the_last_one_ended(orders: Place):
    orders.sql("UPDATE dbo.orders SET name = N'zwei' WHERE id = 2", "DELETE FROM dbo.orders WHERE id = 1")
    assert orders.command("run", "--seconds", "5") == 0
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    assert orders.catch_up() == 0
    assert orders.check() == 0
    ops = [row["op"] for row in orders.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r", "r", "u", "d", "c"]


@pytest.mark.spark
@pytest.mark.slow
def test_table_without_a_key_is_checked_by_its_change_log(place: Place, capsys: pytest.CaptureFixture[str]):
    place.create("notes", "what nvarchar(50) NULL, n int NULL")
    place.sql("INSERT INTO dbo.notes VALUES (N'a', 1), (N'a', 1), (N'b', NULL)")
    assert place.catch_up() == 0
    place.sql(
        "INSERT INTO dbo.notes VALUES (N'c', 3)",
        "UPDATE dbo.notes SET n = 9 WHERE what = N'b'",
        "DELETE FROM dbo.notes WHERE what = N'c'",
    )
    assert place.catch_up() == 0
    capsys.readouterr()
    assert place.check() == 0
    shown = capsys.readouterr()
    assert f"checking {place.database}.dbo.notes (0 of 1 done)" in shown.err
    assert [line.split()[:4] for line in shown.out.splitlines()[1:]] == [
        [f"{place.database}.dbo.notes", "equal", "3", "3"]
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_quiet_database_is_caught_up_right_after_its_snapshot(place: Place):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    place.create("empty", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1)")
    assert place.command("run", "--until-caught-up", "--timeout", "60") == 0
    assert place.check() == 0


@pytest.mark.spark
@pytest.mark.slow
def test_discover_shows_the_tables_and_writes_them_next_to_the_configuration(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    assert main(["discover", "--config", str(place.config)]) == 0
    shown = capsys.readouterr()
    heading, orders = shown.out.splitlines()
    assert heading.split() == ["table", "key", "columns", "capture", "instance"]
    assert orders.split() == [f"{place.database}.dbo.orders", "id", "2", "dbo_orders"]
    assert "1 tables written to" in shown.err
    data = json.loads((place.folder / "shop.tables.json").read_text(encoding="utf-8"))
    (tables,) = data["databases"].values()
    assert [table["table_id"]["name"] for table in tables] == ["orders"]


@pytest.mark.spark
@pytest.mark.slow
def test_records_are_written_to_a_file(orders: Place):
    output = orders.folder / "records.jsonl"
    assert orders.command("records", "--output", str(output)) == 0
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert any("orders" in json.dumps(line) for line in lines)


@pytest.mark.feature("ERR-08")
def test_a_table_whose_gating_role_the_login_lacks_stops_with_the_reason(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    place.sql(
        "CREATE TABLE dbo.[guarded] (id int NOT NULL PRIMARY KEY)",
        "INSERT INTO dbo.guarded VALUES (1)",
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'guarded', @role_name = N'cdc_reader'",
        f"CREATE LOGIN [{place.database}_reader] WITH PASSWORD = 'Reader-of-the-test-1'",
        f"CREATE USER [{place.database}_reader] FOR LOGIN [{place.database}_reader]",
        f"GRANT SELECT TO [{place.database}_reader]",
        grant("VIEW SERVER STATE", f"{place.database}_reader", place.database),
    )
    place.settle()
    place.configure(database_user=f"{place.database}_reader", database_password="Reader-of-the-test-1")
    assert place.command("run", "--until-caught-up", "--timeout", "20") == 3
    assert "gating role" in capsys.readouterr().err
    assert not DeltaTable(place.uri("guarded", "changes")).file_uris()


@pytest.mark.slow
def test_until_caught_up_ends_although_the_source_never_rests(orders: Place, monkeypatch: pytest.MonkeyPatch):
    numbers, attempt = itertools.count(100), Follower.attempt

    def behind_another_change(follower: Follower) -> Done | None:
        orders.sql(f"INSERT INTO dbo.orders VALUES ({next(numbers)}, N'more')")
        orders.settle()
        return attempt(follower)

    monkeypatch.setattr(Follower, "attempt", behind_another_change)
    assert orders.command("run", "--until-caught-up", "--timeout", "60") == 0
    assert {"id": 100} in orders.query("SELECT id FROM t", "orders")
