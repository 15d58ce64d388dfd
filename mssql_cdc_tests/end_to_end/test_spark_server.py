"""Runs attach to a Spark Connect server that the command line starts; they need no Java of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError, SourceUnavailableError, TaskError, WorkerError
from mssql_cdc.spark import remote
from mssql_cdc.spark.lazy import LazySpark
from mssql_cdc.spark.session import SparkSettings, cancel_jobs, parallelism, private_session, start_session
from mssql_cdc.spark.tasks import run_tasks
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_processes import group

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = "a secret of this test"
WITH_TOKEN = {**os.environ, remote.TOKEN_VARIABLE: TOKEN}
WITHOUT_JAVA = {**WITH_TOKEN, "JAVA_HOME": "/nonexistent", "PATH": str(os.path.dirname(sys.executable))}  # noqa: PTH120
COLUMNS = "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL, amount int NULL"
MANY = """INSERT INTO dbo.orders (id, name, amount)
SELECT 100 + a.v + 30 * b.v + 900 * c.v, N'many', 1
FROM numbers a CROSS JOIN numbers b CROSS JOIN numbers c"""


@dataclass(frozen=True)
class Served:
    """A server's process, and what to set `spark.remote` to."""

    process: subprocess.Popen[str]
    url: str


@contextmanager
def served(*options: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mssql_cdc.cli", "spark-server", "--port", "0", *options],
        env=WITH_TOKEN,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if '"spark.remote": "' in line:
                yield Served(process, line.split('"spark.remote": "')[1].split('"')[0])
                break
        else:
            raise AssertionError("".join(said))
    finally:
        process.terminate()
        process.communicate(timeout=60)
        if group(process.pid):
            time.sleep(5)  # The workers end with the JVM.


@pytest.fixture(scope="module")
def warm() -> Iterator[Served]:
    with served() as found:
        yield found


@pytest.fixture
def session(warm: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv(remote.TOKEN_VARIABLE, TOKEN)
    found = start_session(SparkSettings(remote=warm.url))
    yield found
    found.stop()


def command(place: Place, name: str, *options: str, env: Mapping[str, str], lake: str = "lake") -> str:
    where = ["--config", str(place.config), "--warehouse", str(place.folder / lake)]
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.cli", name, *where, *options],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def pid(_task: int) -> dict[str, int]:
    return {"pid": os.getpid()}


def sleep(_task: int) -> dict[str, int]:
    time.sleep(120)
    return {}


def dies(task: str) -> dict[str, str]:
    if task == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"task": task}


@pytest.mark.long
def test_a_server_starts_with_the_options_of_a_connector_that_attaches_to_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    """It attached to itself: "sc://localhost:1 does not answer"."""
    monkeypatch.setenv(remote.TOKEN_VARIABLE, TOKEN)
    place.configure(spark_remote="sc://localhost:1", spark_sql_debug_maxToStringFields="37")
    with served("--config", str(place.config)) as found:
        attached = start_session(SparkSettings(remote=found.url))
        assert attached.conf.get("spark.sql.debug.maxToStringFields") == "37"
        attached.stop()


@pytest.mark.long
def test_everything_over_a_server_equals_the_source_and_a_session_of_the_run(place: Place, warm: Served, session: Any):
    place.create("orders", COLUMNS)
    place.create("people", COLUMNS)
    place.sql("CREATE TABLE numbers (v int)", f"INSERT INTO numbers VALUES {', '.join(f'({n})' for n in range(30))}")
    place.sql(*(f"INSERT INTO dbo.{t} VALUES (1, N'one', 1), (2, N'two', 2)" for t in ("orders", "people")))
    place.settle()
    place.configure(spark_remote=warm.url)
    ways = {"lake": WITHOUT_JAVA, "classic": dict(os.environ)}

    def caught_up() -> None:
        place.settle()
        for lake, env in ways.items():
            place.configure(**({"spark_remote": warm.url} if lake == "lake" else {}))
            command(place, "run", "--until-caught-up", "--timeout", "200", env=env, lake=lake)

    caught_up()
    # Only Spark may write to a table with a change data feed.
    uri = place.uri("people")
    for path in (uri, uri.replace("/lake/", "/classic/")):
        session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)").collect()
    place.sql(MANY, "UPDATE dbo.people SET name = N'changed' WHERE id = 1", "DELETE FROM dbo.people WHERE id = 2")
    place.sql("INSERT INTO dbo.people VALUES (3, NULL, NULL)")
    caught_up()
    place.configure(spark_remote=warm.url)
    assert "equal         27002" in command(place, "check", env=WITHOUT_JAVA)
    command(place, "maintain", env=WITHOUT_JAVA)
    command(place, "check", env=WITHOUT_JAVA)
    for table in ("orders", "people"):
        one, other = (
            session.read.format("delta").load(f"{place.folder}/{lake}/shop/{place.database}/dbo/{table}/{which}")
            for lake in ways
            for which in ("current",)
        )
        columns = ["id", "name", "amount", "_key"]
        assert one.select(columns).exceptAll(other.select(columns)).count() == 0
        assert one.count() == other.count() == {"orders": 27_002, "people": 2}[table]


def test_runs_share_the_workers_of_one_session(session: Any, warm: Served):
    assert parallelism(session) == os.cpu_count()
    first = {result.unwrap()["pid"] for result in run_tasks(session, list(range(8)), pid)}
    again = start_session(SparkSettings(remote=warm.url))
    assert {result.unwrap()["pid"] for result in run_tasks(again, list(range(8)), pid)} <= first
    again.stop()
    assert run_tasks(session, [1], pid)[0].error is None, "a run that ends has ended the session of the others"


def test_confs_of_a_private_session_do_not_reach_the_shared_one(session: Any):
    with private_session(session, {"spark.of.this.test": "1"}) as private:
        assert private.conf.get("spark.of.this.test") == "1"
        assert private.conf.get("spark.sql.session.timeZone") == "UTC"
        assert session.conf.get("spark.of.this.test", None) is None
    assert session.range(1).count() == 1


def test_canceling_ends_the_jobs_of_this_process_only(session: Any, warm: Served, monkeypatch: pytest.MonkeyPatch):
    errors: list[BaseException] = []

    def work() -> None:
        try:
            run_tasks(session, [1, 2], sleep)
        except TaskError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(3)
    with monkeypatch.context() as as_another:
        as_another.setattr(remote.os, "getpid", lambda: 0)
        cancel_jobs(session)
    time.sleep(1)
    assert thread.is_alive()
    cancel_jobs(session)
    thread.join(60)
    assert not thread.is_alive()
    assert "CANCELED" in str(errors)
    assert [type(error) for error in errors] == [TaskError]


def test_a_worker_that_dies_is_the_trouble_of_its_owner_only(session: Any):
    found = run_tasks(session, ["a", "killed", "b"], dies, owners=["people", "orders", "others"])
    assert [found[0].unwrap(), found[2].unwrap()] == [{"task": "a"}, {"task": "b"}]
    assert isinstance(found[1].error, WorkerError)
    assert "SparkException: Python worker exited unexpectedly (crashed); Spark's log" in str(found[1].error)


def test_a_wrong_token_is_refused_at_once(warm: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(remote.TOKEN_VARIABLE, "a guess")
    with pytest.raises(ConfigurationError, match=remote.TOKEN_VARIABLE):
        start_session(SparkSettings(remote=warm.url))


def test_a_server_that_is_not_there_is_met_again_when_it_is(warm: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(remote.TOKEN_VARIABLE, TOKEN)
    monkeypatch.setattr("mssql_cdc.spark.lazy.active_session", lambda: None)
    urls = iter(["sc://localhost:1", warm.url])
    spark = LazySpark(lambda: start_session(SparkSettings(remote=next(urls))))
    with pytest.raises(SourceUnavailableError, match="spark-server"):
        spark()
    assert spark().range(2).count() == 2
    spark.stop()


def test_a_server_needs_a_token(capsys: pytest.CaptureFixture[str]):
    env = {name: value for name, value in os.environ.items() if name != remote.TOKEN_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "mssql_cdc.cli", "spark-server"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert remote.TOKEN_VARIABLE in done.stderr


@pytest.mark.parametrize(
    "signal_number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, marks=pytest.mark.long),
    ],
    ids=lambda one: one.name,
)
def test_a_signal_ends_the_server_and_leaves_no_process(signal_number: signal.Signals):
    with served() as found:
        found.process.send_signal(signal_number)
        found.process.wait(60)
        end = time.monotonic() + 60
        while group(found.process.pid):
            assert time.monotonic() < end, group(found.process.pid)
            time.sleep(0.1)
