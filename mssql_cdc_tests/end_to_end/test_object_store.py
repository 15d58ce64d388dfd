"""The lake in an object store with S3's protocol: commits are put if absent, without a lock table and without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.cli import main
from mssql_cdc.config import Secret
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.read import query
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.table_log import load_log
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SECRET = "object-store-secret"
LAYOUT = Layout("s3://lake/w", "server1", "shop")
SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def store() -> Generator[dict[str, str]]:
    """What opens a server that knows S3's protocol, with the empty bucket `lake`. It chooses its port itself."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            urlopen(Request(f"{url}/lake", method="PUT")).close()  # noqa: S310 (a test's server)
            yield {
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true",
            }
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """The options of a store for all tests of this module."""
    with store() as opened:
        yield opened


def test_what_is_remembered_of_a_table_is_read_with_renewed_options(tmp_path: Path):
    """A token that had run out stayed with the sensor's memory: capture stood still until Dagster was restarted."""
    file, known = tmp_path / "store.properties", KnownTables()

    def history(options: dict[str, str]) -> SchemaHistory:
        file.write_text(f"url={options['AWS_ENDPOINT_URL']}\n", encoding="utf-8")
        small_table(LAYOUT, "schema_history", storage).state()
        return load_history(LAYOUT, storage, known=known)

    with store() as first:
        renewed = {"AWS_ENDPOINT_URL": Secret(f"${{file:{file}:url}}"), "max_retries": "0"}
        storage = Storage({**first, **renewed})
        before = history(first)
    with store() as second:
        after = history(second)
    assert after is not before


def test_of_many_who_put_the_same_object_one_succeeds(options: dict[str, str]):
    folder = Folder("s3://lake/once", Storage(options))
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: folder.put_new("a/0.json", str(number).encode() * 1_000), range(24)))
    assert sum(done) == 1
    assert folder.read("a/0.json") == str(done.index(True)).encode() * 1_000


def test_change_logs_and_current_tables_live_in_an_object_store(
    place: Place, options: dict[str, str], capfd: pytest.CaptureFixture[str]
):
    _configure(place, options)
    warehouse = f"s3://lake/{place.database}"

    def command(name: str, *more: str) -> int:
        return main([name, "--config", str(place.config), "--warehouse", warehouse, *more])

    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(max) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    place.settle()
    assert command("run", "--until-caught-up") == 0
    place.sql("UPDATE dbo.orders SET name = N'zwei' WHERE id = 2", "DELETE dbo.orders WHERE id = 1")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    assert command("run", "--until-caught-up") == 0
    assert command("check") == 0

    table = DeltaTable(f"{warehouse}/shop/{place.database}/dbo/orders/current", storage_options=options)
    rows = QueryBuilder().register("t", table).execute("SELECT id, name FROM t ORDER BY id").read_all()
    assert [(row, name) for row, name in zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)] == [
        (2, "zwei"),
        (3, "three"),
    ]
    assert SECRET not in "".join(capfd.readouterr())


def test_a_current_table_in_an_object_store_has_deletion_vectors(place: Place, options: dict[str, str]):
    _configure(place, options, {"delta.deletion.vectors": "true"})
    warehouse = f"s3://lake/{place.database}"
    run = ["run", "--config", str(place.config), "--warehouse", warehouse, "--until-caught-up"]
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20) NULL")
    rows = ", ".join(f"({number}, N'a')" for number in range(40))
    place.sql(f"INSERT INTO dbo.orders VALUES {rows}")
    place.settle()
    assert main(run) == 0
    place.sql("UPDATE dbo.orders SET name = N'b' WHERE id = 7", "DELETE dbo.orders WHERE id = 8")
    place.settle()
    assert main(run) == 0

    uri = f"{warehouse}/shop/{place.database}/dbo/orders/current"
    log = load_log(uri, Storage(options))
    assert log is not None
    assert [file.vector.cardinality for file in log.files.values() if file.vector] == [2]
    found = {row["id"]: row["name"] for batch in query(uri, "SELECT id, name FROM t", Storage(options))
             for row in batch.to_pylist()}  # fmt: skip
    assert found == {number: "a" for number in range(40) if number != 8} | {7: "b"}


def test_a_store_that_refuses_is_named_with_the_properties_to_check(
    place: Place, options: dict[str, str], capfd: pytest.CaptureFixture[str]
):
    place.create("orders", "id int NOT NULL PRIMARY KEY")
    for wrong, bucket in (({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "lake"), ({}, "no-such-bucket")):
        _configure(place, options | wrong | {"max_retries": "0"})
        for command in ("run", "check", "status"):
            more = ("--until-caught-up",) if command == "run" else ()
            code = main([command, "--config", str(place.config), "--warehouse", f"s3://{bucket}/x", *more])
            out, said = capfd.readouterr()
            assert code != 0, (command, wrong)
            assert f"s3://{bucket}/x" in said, (command, wrong, said)
            assert "delta.warehouse" in said, (command, wrong, said)
            assert SECRET not in out + said


def _configure(place: Place, options: dict[str, str], more: dict[str, str] | None = None) -> None:
    document = json.loads(place.config.read_text(encoding="utf-8"))
    document["config"] |= {f"delta.storage.{name}": value for name, value in options.items()} | (more or {})
    place.config.write_text(json.dumps(document), encoding="utf-8")
