"""Mistakes of a configuration or a server: each is named at once, alike by every command and by Dagster's sensor.

At once means: after the first attempt, and without a driver's whole login time-out. How long that takes on a busy
machine is no rule. The rule is what may be waited for: a server has some seconds to accept a connection; behind that, a
fault is named after a few connections and statements, each of which the server answers at once, without a pause.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pyodbc
import pytest
from dagster._core.definitions.instigation_logger import get_instigation_log_records

from mssql_cdc.cli import main
from mssql_cdc.config import Connection, load_connector
from mssql_cdc.config.driver import is_freetds
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.run.discover import read_table_list, table_list_path
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver import connect
from mssql_cdc.source.sqlserver.connect import control, find_driver
from mssql_cdc.source.sqlserver.reach import probe_seconds
from mssql_cdc_tests.dagster import conftest as dagster_tests
from mssql_cdc_tests.dagster.kit import table
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.servers import Server, sandbox_server

_NUMBERS = itertools.count(1)
cheap, empty_home, instance = dagster_tests.cheap, dagster_tests.empty_home, dagster_tests.instance
PASSWORD = "Reader-of-the-test-1"
LOGIN = (
    f"CREATE LOGIN [{{reader}}] WITH PASSWORD = '{PASSWORD}'",
    "CREATE USER [{reader}] FOR LOGIN [{reader}]",
)
NO_SCANS = ("EXEC sandbox.capture_pause", "EXEC sandbox.advance_clock @seconds = 300")
MOST_CONNECTIONS = 6
"""Of the three sessions of a command, one connection each, and a login to `master` to tell what was refused."""
READER = {"database_user": "{reader}", "database_password": PASSWORD}
SERVER_STATE = "USE master; GRANT VIEW SERVER STATE TO [{reader}]; USE [{database}]"
RIGHTS = (
    "GRANT SELECT ON SCHEMA::cdc TO [{reader}]",
    "GRANT SELECT ON SCHEMA::dbo TO [{reader}]",
    SERVER_STATE,
    "GRANT VIEW DEFINITION TO [{reader}]",
)
"""What the connector's login needs (docs/getting-started.md)."""


@dataclass(frozen=True)
class Mistake:
    """What is set or done, and what every command has to say.

    `code` is the exit code; `discover` that of `mssql-cdc discover`, where it differs; `connections` and
    `statements_asked` the most that a command opens and asks before it ends. A name in braces is the test's.
    """

    says: str
    code: int = 2
    discover: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    statements: tuple[str, ...] = ()
    connections: int = MOST_CONNECTIONS
    statements_asked: int = 40


SINCE = r"capture has not scanned since \d{{4}}-\d\d-\d\d \d\d:\d\d"
MISTAKES: dict[str, Mistake] = {
    "unknown host": Mistake(
        r"Cannot resolve the host 'no-such-host\.invalid' \(.*database\.hostname", 3,
        properties={"database_hostname": "no-such-host.invalid"},
    ),
    "closed port": Mistake(
        r"Cannot connect to 127\.0\.0\.1:1 .*database\.port", 3, properties={"database_port": "1"}
    ),
    "wrong password": Mistake(
        r"Login failed for user 'sa'.*database\.password",
        properties={"database_password": "wrong"},
        connections=2,  # Some more, and a policy of the server locks the account.
    ),
    "unknown database": Mistake(
        r"cannot open database 'nowhere'.*no such database, or no user", properties={"database_names": "nowhere"}
    ),
    "login without a user in the database": Mistake(
        r"cannot open database '{database}'.*CREATE USER", properties=READER, statements=LOGIN[:1]
    ),
    "CDC not enabled in the database": Mistake(
        r"CDC is not enabled in database '{database}': run EXEC sys\.sp_cdc_enable_db",
        statements=("EXEC sys.sp_cdc_disable_db",),
    ),
    "no table enabled for CDC": Mistake(
        r"Database '{database}' has no table enabled for CDC: run EXEC sys\.sp_cdc_enable_table",
        statements=("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'",),
    ),
    "tables that capture has not begun with": Mistake(
        r"Database '{database}' has 1 table enabled for CDC \(dbo_orders\), and capture has not begun with it: start",
        statements=("EXEC sandbox.capture_pause", "UPDATE cdc.change_tables SET start_lsn = NULL"),
    ),
    "no CDC for a snapshot only": Mistake(
        r"CDC is not enabled in database '{database}': run EXEC .*initial_only .* only in a database with CDC",
        properties={"snapshot_mode": "initial_only"},
        statements=("EXEC sys.sp_cdc_disable_db",),
    ),
    "filter that matches nothing": Mistake(
        r"table\.include\.list exclude every table that is enabled for CDC \({database}\.dbo\.orders\)",
        properties={"table_include_list": "dbo.order"},
    ),
    "login that sees the schema cdc only": Mistake(
        r"1 capture instance belongs to a table that the login cannot see \(dbo_orders\): GRANT SELECT",
        properties=READER,
        statements=(*LOGIN, "GRANT SELECT ON SCHEMA::cdc TO [{reader}]", SERVER_STATE),
    ),
    "login without rights": Mistake(r"GRANT VIEW SERVER PERFORMANCE STATE TO", properties=READER, statements=LOGIN),
    "login that sees the scans of the log only": Mistake(
        r"where the log of database '{database}' ends.*GRANT VIEW SERVER PERFORMANCE STATE TO",
        properties=READER,
        statements=(*LOGIN, *RIGHTS[:2], "GRANT VIEW DATABASE STATE TO [{reader}]"),
    ),
    "login that cannot read the change tables": Mistake(
        r"Needed: GRANT SELECT ON",
        properties=READER,
        statements=(*LOGIN, SERVER_STATE),
    ),
    "signal table that does not exist": Mistake(
        r"The signal table {database}\.dbo\.signals does not exist.*CREATE TABLE \[dbo\]\.\[signals\]",
        properties={"signal_data_collection": "dbo.signals"},
    ),
    "signal table that is not captured": Mistake(
        r"The signal table {database}\.dbo\.signals is not enabled for CDC: run EXEC sys\.sp_cdc_enable_table",
        properties={"signal_data_collection": "dbo.signals"},
        statements=("CREATE TABLE dbo.signals (id varchar(42), type varchar(32), data varchar(2048))",),
    ),
    "signal table whose columns a filter leaves out": Mistake(
        r"The signal table {database}\.dbo\.signals cannot be read: column\.exclude\.list leaves out its column data",
        properties={"signal_data_collection": "dbo.signals", "column_exclude_list": r".*\.data"},
        statements=(
            "CREATE TABLE dbo.signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'signals', @role_name = NULL",
        ),
    ),
    "heartbeat table that does not exist": Mistake(
        r"heartbeat\.action\.query writes to dbo\.\[beat\], which does not exist",
        properties={"heartbeat_interval_ms": "1000", "heartbeat_action_query": "UPDATE dbo.[beat] SET n = n + 1"},
    ),
    # `run` takes the snapshot all the same.
    "Agent that is stopped": Mistake(
        rf"{SINCE}; SQL Server Agent is not running: start it", 3, 0,
        statements=("EXEC sandbox.agent_stop", *NO_SCANS), statements_asked=140,
    ),
    "capture job that stands still": Mistake(
        rf"{SINCE}; SQL Server Agent is running: check its capture job \(EXEC sys\.sp_cdc_help_jobs\)", 3, 0,
        statements=NO_SCANS, statements_asked=140,
    ),
    "capture that stands still, whatever the Agent does": Mistake(
        rf"{SINCE}; check that SQL Server Agent is running", 3, 0,
        properties={**READER, "database_sqlserver_agent_status_query": "SELECT NULL"},  # Nothing tells of the Agent.
        statements=(*LOGIN, *RIGHTS, *NO_SCANS), statements_asked=140,
    ),
}  # fmt: skip
STANDING = [name for name, mistake in MISTAKES.items() if mistake.discover == 0]
"""They keep nobody from reading what is captured, and a first snapshot."""


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose Agent and clock the tests may stop and move."""
    with sandbox_server(tmp_path_factory.mktemp("sandbox")) as server:
        yield server


@pytest.fixture
def shop(own_server: Server, tmp_path: Path) -> Iterator[Place]:
    with open_place(own_server, tmp_path, f"mistaken{next(_NUMBERS)}") as place:
        place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
        place.settle()
        assert main(["discover", "--config", str(place.config)]) == 0
        yield place
        place.sql("EXEC sandbox.agent_start")


def make(mistake: Mistake, place: Place) -> str:
    """Make the mistake; what has to be said."""
    names = {"reader": f"{place.database}_reader", "database": place.database}
    place.sql(*(statement.format(**names) for statement in mistake.statements))
    place.configure(**{name: value.format(**names) for name, value in mistake.properties.items()})
    return mistake.says.format(**names)


@dataclass
class Asked:
    """What a command asks the server for: it waits for nothing else."""

    connections: int = 0
    statements: int = 0
    pauses: list[float] = field(default_factory=list[float])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, shop: Place) -> Asked:
    """Counts logins, statements and pauses of this process from now on; the statements of `shop` are not among them."""
    found, earlier = Asked(), {*threading.enumerate()} - {threading.current_thread()}
    really_connect, really_translated, really_sleep = pyodbc.connect, connect.translated, time.sleep

    def counted_connect(*given: Any, **more: Any) -> pyodbc.Connection:
        found.connections += 1
        return really_connect(*given, **more)

    def counted_statement(connection: Connection, doing: str) -> AbstractContextManager[None]:
        found.statements += doing != "playing the application"
        return really_translated(connection, doing)

    def counted_sleep(seconds: float) -> None:
        if threading.current_thread() not in earlier:  # Threads that earlier tests have left behind sleep, too.
            found.pauses.append(seconds)
        really_sleep(seconds)

    monkeypatch.setattr(pyodbc, "connect", counted_connect)
    monkeypatch.setattr(connect, "translated", counted_statement)
    monkeypatch.setattr(time, "sleep", counted_sleep)
    return found


@pytest.mark.feature("PRE-02", "PRE-04")
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
@pytest.mark.parametrize("command", ["discover", "run", "check"])
def test_a_mistake_is_named_after_one_attempt(
    command: str, mistake: Mistake, shop: Place, asked: Asked, capsys: pytest.CaptureFixture[str]
):
    """Rights, tables, logins: the first answer tells, after few connections and statements and without a pause."""
    says = make(mistake, shop)
    code = mistake.discover if command == "discover" and mistake.discover is not None else mistake.code
    options = {"run": ["--until-caught-up"], "check": [], "discover": []}[command]
    warehouse = [] if command == "discover" else ["--warehouse", str(shop.warehouse)]
    capsys.readouterr()
    assert main([command, "--config", str(shop.config), *warehouse, *options]) == code
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(says, said), said
    assert "retry" not in said
    assert PASSWORD not in said
    assert probe_seconds(load_connector(shop.config).connection) <= 5
    assert asked.connections <= mistake.connections
    assert asked.statements <= mistake.statements_asked
    assert asked.pauses == []


@pytest.mark.feature("PRE-04")
@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("status", "--watch", "--json"),
        ("run", "--until-caught-up"),
        ("run",),
        ("check",),
        ("check-config",),
    ],
    ids=" ".join,
)
def test_a_refused_login_is_not_repeated(
    command: Sequence[str], shop: Place, asked: Asked, capsys: pytest.CaptureFixture[str]
):
    """Of several databases whose lake exists, the first refusal is the last attempt: others may lock the account."""
    names = f"{shop.database},{shop.second_database()}"
    shop.configure(database_names=names)
    assert shop.catch_up() == 0
    shop.configure(database_names=names, database_password="wrong")
    capsys.readouterr()
    asked.connections = 0
    name, *options = command
    warehouse = [] if name == "check-config" else ["--warehouse", str(shop.warehouse)]
    assert main([name, "--config", str(shop.config), *warehouse, *options]) == 2
    found = capsys.readouterr()
    assert "Login failed for user 'sa'" in " ".join((found.out + found.err).split())
    assert asked.connections <= 2
    if "--watch" in options:
        (look,) = map(json.loads, found.out.splitlines())
        assert [one["table"] is not None and "Login failed" in one["source_error"] for one in look] == [True, True]


@pytest.mark.feature("PRE-04")
def test_the_status_of_a_database_without_tables_says_why_the_source_cannot_be_asked(
    shop: Place, capsys: pytest.CaptureFixture[str]
):
    shop.configure(database_port="1")
    capsys.readouterr()
    assert shop.command("status", "--json") == 3
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["database"], found["table"], found["status"]) == (shop.database, None, None)
    assert "Cannot connect to" in found["source_error"]


BELONGS = {
    "unknown host": "database.hostname",
    "closed port": "database.hostname",
    "wrong password": "database.user",
    "unknown database": "database.names",
    "CDC not enabled in the database": "database.user",
    "filter that matches nothing": "table.include.list",
    "login without rights": "database.user",
    "signal table that does not exist": "signal.data.collection",
    "signal table whose columns a filter leaves out": "column.exclude.list",
    "heartbeat table that does not exist": "heartbeat.action.query",
}


@pytest.mark.feature("PRE-04", "PRE-05")
@pytest.mark.slow
@pytest.mark.parametrize("name", list(BELONGS))
def test_a_mistake_belongs_to_its_property(name: str, shop: Place, capsys: pytest.CaptureFixture[str]):
    says = make(MISTAKES[name], shop)
    capsys.readouterr()
    assert main(["check-config", "--config", str(shop.config)]) == MISTAKES[name].code
    found = json.loads(capsys.readouterr().out)
    assert found["databases"] == []
    ((belongs, (message,)),) = found["errors"].items()
    assert belongs == BELONGS[name]
    assert re.search(says, " ".join(message.split()))
    assert PASSWORD not in message


@pytest.mark.slow
def test_a_good_configuration_has_no_errors_and_the_real_names(shop: Place, capsys: pytest.CaptureFixture[str]):
    shop.configure(database_names=shop.database.upper())
    capsys.readouterr()
    assert main(["check-config", "--config", str(shop.config)]) == 0
    assert json.loads(capsys.readouterr().out) == {"errors": {}, "databases": [shop.database]}


def test_every_wrong_property_is_listed(shop: Place, capsys: pytest.CaptureFixture[str]):
    shop.configure(snapshot_mode="sometimes", poll_interval_ms="soon")
    capsys.readouterr()
    assert main(["check-config", "--config", str(shop.config)]) == 2
    found = json.loads(capsys.readouterr().out)["errors"]
    assert list(found) == ["poll.interval.ms", "snapshot.mode"]  # In the order of the file.
    assert "found 'sometimes'" in found["snapshot.mode"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in STANDING])
def test_a_mistake_is_named_by_the_sensor(name: str, shop: Place, asked: Asked, instance: dg.DagsterInstance):
    """Capture that stands still does not keep a first snapshot from being read; `dagster/test_sensor.py` has it."""
    mistake = MISTAKES[name]
    says = make(mistake, shop)
    said, _ = tick(shop, instance)
    assert re.search(says, said), said
    assert PASSWORD not in said
    assert asked.connections <= mistake.connections
    assert asked.statements <= mistake.statements_asked
    assert asked.pauses == []


def tick(place: Place, instance: dg.DagsterInstance, tables: Sequence[TableSchema] | None = None) -> tuple[str, str]:
    """What the sensor says at the first tick after it was switched on, and what it has logged."""
    if tables is None:
        tables = [one for listed in read_table_list(place.config).values() for one in listed]
    found = build_definitions(load_connector(place.config), tables=tables, warehouse=str(place.warehouse))
    (sensor,) = list(found.sensors or ())
    context = dg.build_sensor_context(
        instance=instance,
        instance_ref=instance.get_ref(),
        repository_def=found.get_repository_def(),
        last_sensor_start_time=1.0,
    )
    log_key = [sensor.name, uuid.uuid4().hex]
    context._log_key = log_key  # As the daemon gives it; the function for tests does not.
    try:
        with context:
            result = sensor(context)
    except dg.Failure as failure:
        said = failure.description or ""
    else:
        skipped = getattr(result, "skip_reason", None)
        said = str(getattr(result, "skip_message", None) or getattr(skipped, "skip_message", result))
    return said, "\n".join(str(record["msg"]) for record in get_instigation_log_records(instance, log_key))


@pytest.fixture(scope="module")
def by_encryption(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Server]]:
    """A server that encrypts nothing, and one whose certificate nobody knows."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp
        yield {
            encrypt: stack.enter_context(sandbox_server(folder("sandbox"), "--encrypt", encrypt))
            for encrypt in ("off", "login")
        }


BY_DRIVER = pytest.mark.parametrize("driver", ["FreeTDS", None], ids=["FreeTDS", "best"])
REFUSED_TLS = pytest.mark.parametrize(
    ("encrypt", "says"),
    [("off", "does not encrypt connections.*driver.encrypt=false"), ("login", "driver.trustServerCertificate=true")],
    ids=["server without TLS", "certificate that nobody knows"],
)


def refused(server: Server, folder: Path, encrypt: str, driver: str | None) -> Place:
    """A place on a server whose TLS the connector refuses."""
    place = Place(server, folder, "master", None)  # type: ignore[arg-type]
    place.configure(**{"driver_encrypt": "true"} | ({"odbc_Driver": driver} if driver else {}))
    if encrypt == "login" and is_freetds(find_driver(load_connector(place.config).connection)):
        pytest.skip("FreeTDS encrypts, and does not verify certificates")
    return place


@pytest.mark.parametrize("command", ["discover", "run", "check"])
@BY_DRIVER
@REFUSED_TLS
def test_refused_tls_names_the_property(
    encrypt: str,
    says: str,
    driver: str | None,
    command: str,
    by_encryption: Mapping[str, Server],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    place = refused(by_encryption[encrypt], tmp_path, encrypt, driver)
    warehouse = [] if command == "discover" else ["--warehouse", str(place.warehouse)]
    assert main([command, "--config", str(place.config), *warehouse]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(says, said), said
    assert "retry" not in said
    place.configure(**{"driver_encrypt": "false"} | ({"odbc_Driver": driver} if driver else {}))
    with control(load_connector(place.config).connection, "master") as opened:
        assert opened.value("SELECT 1", doing="testing") == 1


@pytest.mark.slow
@BY_DRIVER
@REFUSED_TLS
def test_refused_tls_is_named_by_the_sensor(
    encrypt: str,
    says: str,
    driver: str | None,
    by_encryption: Mapping[str, Server],
    tmp_path: Path,
    instance: dg.DagsterInstance,
):
    server = by_encryption[encrypt]
    place = refused(server, tmp_path, encrypt, driver)
    said, logged = tick(place, instance, [table("orders", database="master")])
    assert re.search(says, said), said
    assert server.password not in said + logged


TLS_BY = {
    "none": {}, "driver": {"driver_encrypt": "true"}, "database": {"database_encrypt": "true"},
    "both": {"driver_encrypt": "true", "database_encrypt": "true"}, "Microsoft's": {"odbc_Encrypt": "yes"},
    "FreeTDS's": {"odbc_Encryption": "require"},
}  # fmt: skip


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize("driver", ["FreeTDS", None], ids=["FreeTDS", "best"])
def test_the_advice_to_turn_encryption_off_works_as_it_is_printed(
    driver: str | None,
    by_encryption: Mapping[str, Server],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    place = Place(by_encryption["off"], tmp_path, "master", None)  # type: ignore[arg-type]
    for given in TLS_BY.values():
        properties: dict[str, Any] = {
            "driver_encrypt": None,
            **({"odbc_Driver": driver} if driver else {}),
            **given,
        }
        place.configure(**properties)
        assert main(["discover", "--config", str(place.config)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        advice = re.search(r"turn encryption off with (.*)", said)
        assert advice is not None, said
        followed = dict(re.findall(r"(\w+\.\w+)=(\w+)", advice[1]))
        place.configure(**properties | {name.replace(".", "_"): value for name, value in followed.items()})
        with control(load_connector(place.config).connection, "master") as opened:
            assert opened.value("SELECT 1", doing="testing") == 1


def test_the_list_of_tables_is_not_written_over_by_a_mistake(shop: Place):
    before = table_list_path(shop.config).read_text(encoding="utf-8")
    shop.configure(table_include_list="dbo.nothing")
    assert main(["discover", "--config", str(shop.config)]) == 2
    assert table_list_path(shop.config).read_text(encoding="utf-8") == before


NOT_BEATING = (
    "heartbeat.action.query writes to dbo.beat, which is not enabled for CDC: its heartbeats reach no change log"
)


@pytest.fixture
def not_beating(shop: Place) -> Place:
    """The heartbeat's table is there, and its changes are not captured."""
    shop.sql("CREATE TABLE dbo.beat (n int NOT NULL)")
    shop.configure(heartbeat_interval_ms="1000", heartbeat_action_query="INSERT INTO dbo.beat VALUES (1)")
    return shop


@pytest.mark.slow
@pytest.mark.parametrize("command", ["discover", "run", "check"])
def test_a_heartbeat_table_that_is_not_captured_is_a_warning(
    command: str, not_beating: Place, capsys: pytest.CaptureFixture[str]
):
    if command == "check":
        assert not_beating.catch_up() == 0
    options = {"run": ["--until-caught-up"], "check": [], "discover": []}[command]
    warehouse = [] if command == "discover" else ["--warehouse", str(not_beating.warehouse)]
    capsys.readouterr()
    assert main([command, "--config", str(not_beating.config), *warehouse, *options]) == 0
    assert " ".join(capsys.readouterr().err.split()).count(NOT_BEATING) == 1


@pytest.mark.slow
def test_a_heartbeat_table_that_is_not_captured_is_a_warning_of_the_sensor(
    not_beating: Place, instance: dg.DagsterInstance
):
    said, logged = tick(not_beating, instance)
    assert "RunRequest" in said
    assert logged.count(NOT_BEATING) == 1


@pytest.mark.feature("FLT-04", "FLT-07")
@pytest.mark.parametrize("command", ["discover", "check-config", "run"])
def test_expressions_that_match_nothing_are_named_and_nothing_fails(
    command: str, shop: Place, capsys: pytest.CaptureFixture[str]
):
    shop.sql("CREATE TABLE dbo.plain (id int NOT NULL PRIMARY KEY)")
    names = {"table.include.list": r"dbo\.orders,dbo.plain", "column.mask.with.3.chars": "dbo.orders.nmae"}
    shop.configure(**{name.replace(".", "_"): value for name, value in names.items()})
    more = {"run": ["--until-caught-up", "--warehouse", str(shop.warehouse)]}.get(command, [])
    capsys.readouterr()
    assert main([command, "--config", str(shop.config), *more]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("matches") == 2
    assert f"table.include.list: no table under CDC in {shop.database} matches 'dbo.plain'" in said
    assert f"column.mask.with.3.chars: no captured column of {shop.database} matches 'dbo.orders.nmae'" in said


def test_a_setting_that_freetds_lacks_is_named(shop: Place, capsys: pytest.CaptureFixture[str]):
    shop.configure(driver_multiSubnetFailover="true", odbc_Driver="FreeTDS")
    capsys.readouterr()
    assert main(["discover", "--config", str(shop.config)]) == 0
    assert "driver.multiSubnetFailover: no effect, FreeTDS has no such keyword" in capsys.readouterr().err
