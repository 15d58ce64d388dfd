"""Every property is known; all problems are reported at once and never contain a secret."""

import pytest

from mssql_cdc.config import Secret, reveal
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of


def test_unknown_property_is_an_error_with_the_closest_name() -> None:
    text = problems_of(MINIMAL | {"table.includ.list": "dbo.a"})
    assert "table.includ.list: unknown property; did you mean table.include.list?" in text


def test_mistyped_database_property_is_not_treated_as_a_driver_setting() -> None:
    text = problems_of(MINIMAL | {"database.passwort": "hunter2"})
    assert "did you mean database.password?" in text
    assert "hunter2" not in text


def test_unknown_property_without_a_similar_one_suggests_nothing() -> None:
    text = problems_of(MINIMAL | {"zzz": "1"})
    assert "zzz: unknown property; docs/configuration.md lists them all" in text


def test_all_problems_are_reported_in_one_error() -> None:
    text = problems_of(
        {
            "database.port": "abc",
            "topic.prefix": "a b",
            "tombstones.on.delete": "yes",
            "snapshot.mode": "sometimes",
            "table.include.list": "dbo.(",
            "nonsense.property": "1",
            "column.mask.with.x.chars": "dbo.a.b",
        }
    )
    assert "9 problems" in text
    for part in (
        "database.port: found 'abc', expected a whole number",
        "topic.prefix: found 'a b'",
        "tombstones.on.delete: found 'yes', expected true or false",
        "snapshot.mode: found 'sometimes', expected always, initial",
        "table.include.list: 'dbo.(' is not a valid regular expression",
        "nonsense.property: unknown property",
        "column.mask.with.x.chars: found 'x' as <n>, expected a whole number",
        "database.hostname: is required",
        "database.names: is required",
    ):
        assert part in text


@pytest.mark.parametrize("expression", ["dbo.t{99999999999}", "(" * 600 + ")" * 600])
@pytest.mark.parametrize(
    "name",
    ["table.include.list", "column.exclude.list", "column.mask.with.3.chars", "snapshot.include.collection.list"],
)
def test_an_expression_that_python_cannot_compile_is_a_problem_of_its_property(name: str, expression: str) -> None:
    assert f"{name}: {expression!r} is not a valid regular expression" in problems_of(MINIMAL | {name: expression})


@pytest.mark.feature("FLT-02")
@pytest.mark.parametrize("what", ["schema", "table", "column"])
def test_include_and_exclude_lists_are_mutually_exclusive(what: str) -> None:
    both = {f"{what}.include.list": "a", f"{what}.exclude.list": "b"}
    assert f"{what}.include.list: cannot be set together with {what}.exclude.list" in problems_of(MINIMAL | both)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("database.port", "70000", "65535 or less"),
        ("incremental.snapshot.chunk.size", "0", "1 or more"),
        ("snapshot.lock.timeout.ms", "-2", "-1 or more"),
        ("snapshot.fetch.size", "-1", "0 or more"),
        ("database.hostname", "a host", "expected letters, digits"),
        ("database.names", ",", "expected at least one database"),
        ("skipped.operations", "c,x", "expected c, u, d, t, r or none"),
        ("skipped.operations", "none,c", "none cannot be combined"),
        ("message.key.columns", "dbo.a", "not of the form"),
        ("column.mask.hash.CRC32.with.salt.x", "dbo.a.b", "'CRC32' is not known"),
        ("column.truncate.to.0.chars", "dbo.a.b", "at least 1"),
        ("signal.data.collection", "otherDB.dbo.s", "one of database.names"),
        ("notification.enabled.channels", "sink", "is required with the notification channel"),
        ("database.names", "a,A", "more than once"),
        ("database.server.timezone", "Mars/Base", "IANA"),
        ("database.server.timezone", "Europe", "found 'Europe', expected an IANA time zone"),
        ("incremental.snapshot.hours.time.zone", "Etc", "found 'Etc', expected an IANA time zone"),
        ("signal.data.collection", "(", "found '(', expected <db>.<schema>.<table>"),
        ("signal.data.collection", "debezium_signal", "found 'debezium_signal', expected <db>.<schema>.<table>"),
        ("driver.encrypt", "perhaps", "driver.encrypt: found 'perhaps', expected true, false, mandatory"),
        ("driver.loginTimeout", "soon", "found 'soon', expected a whole number of seconds"),
        ("poll.interval.ms", [1], "expected a string"),
    ],
)
def test_bad_value_is_named(name: str, value: object, message: str) -> None:
    assert message in problems_of(MINIMAL | {name: value})


@pytest.mark.parametrize("name", ["driver.loginTimeout", "database.port", "signal.data.collection"])
def test_bad_value_behind_a_reference_is_not_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEHIND", "hunter2")
    problems = problems_of(MINIMAL | {name: "${env:BEHIND}"})
    assert name in problems
    assert "hunter2" not in problems


@pytest.mark.feature("TOP-07")
@pytest.mark.parametrize("prefix", ["two words", "shop/1", "größe", "a:b"])
def test_a_prefix_has_only_what_topics_may_have(prefix: str) -> None:
    assert "topic.prefix" in problems_of(MINIMAL | {"topic.prefix": prefix})
    assert connector_with({"topic.prefix": "Shop-1.a_b"}).topic_prefix == "Shop-1.a_b"


@pytest.mark.parametrize("value", [False, "false", "FALSE", " false "])
def test_boolean_may_be_a_string(value: object) -> None:
    assert connector_with({"tombstones.on.delete": value}).records.tombstones is False


@pytest.mark.parametrize("value", [250, "250", " 250 "])
def test_number_may_be_a_string(value: object) -> None:
    assert connector_with({"poll.interval.ms": value}).streaming.poll_interval_ms == 250


def test_null_and_blank_values_count_as_not_set() -> None:
    connector = connector_with({"poll.interval.ms": None, "table.include.list": "", "snapshot.mode": " "})
    assert connector.streaming.poll_seconds == 0.5
    assert connector.snapshot.mode == "initial"
    assert connector.filters.tables.matches("testDB", "dbo", "any")


def test_blank_value_of_a_required_property_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_BLANK", " ")
    assert "topic.prefix: is required" in problems_of(MINIMAL | {"topic.prefix": ""})
    assert "topic.prefix: is required" in problems_of(MINIMAL | {"topic.prefix": "${env:CDC_TEST_BLANK}"})
    assert connector_with({"poll.interval.ms": "${env:CDC_TEST_BLANK}"}).streaming.poll_seconds == 0.5


def test_salt_and_password_never_show_in_errors() -> None:
    text = problems_of(
        MINIMAL
        | {
            "column.mask.hash.CRC32.with.salt.pepper": "a.b.c",
            "column.mask.hash.SHA-256.with.slat.pepper": "a.b.c",
            "database.password": ["pepper"],
            "database.port": "x",
        }
    )
    assert "pepper" not in text


def test_resolved_value_never_shows_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_PLACE", "pepper")
    text = problems_of(MINIMAL | {"database.port": "${env:WRONG_PLACE}"})
    assert "pepper" not in text
    assert "${env:WRONG_PLACE}" in text


def test_shown_properties_hide_secrets_and_salts() -> None:
    connector = connector_with(
        {
            "database.password": "pepper",
            "spark.hadoop.fs.s3a.secret.key": "pepper",
            "column.mask.hash.SHA-256.with.salt.pepper": "a.b.c",
            "producer.override.sasl.jaas.config": "password=pepper",
        }
    )
    assert "pepper" not in repr(connector)
    assert dict(connector.properties)["database.password"] == Secret("pepper")


def test_reference_in_an_ordinary_property_is_read_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_HOST", "h.example.com")
    assert connector_with({"database.hostname": "${env:CDC_TEST_HOST}"}).connection.hostname == "h.example.com"
    assert "CDC_TEST_MISSING is not set" in problems_of(MINIMAL | {"database.names": "${env:CDC_TEST_MISSING}"})


def test_max_iteration_transactions_applies_only_if_set() -> None:
    assert connector_with({}).streaming.max_transactions is None
    assert connector_with({"max.iteration.transactions": "500"}).streaming.max_transactions == 500
    assert connector_with({"max.iteration.transactions": "0"}).streaming.max_transactions is None


@pytest.mark.feature("FLT-13")
def test_skipped_operations_none_means_none() -> None:
    assert connector_with({"skipped.operations": "none"}).records.skipped == frozenset()
    assert connector_with({"skipped.operations": "c,d"}).records.skipped == {"c", "d"}


@pytest.mark.feature("FLT-13")
def test_skipped_operations_leave_rows_of_snapshots_and_say_so() -> None:
    connector = connector_with({"skipped.operations": "c,r"})
    assert connector.records.skipped == {"c"}
    assert any(line.startswith("skipped.operations: r has no effect") for line in connector.notices), connector.notices


@pytest.mark.feature("SIG-02")
def test_signal_table_may_omit_the_only_database() -> None:
    signals = connector_with({"signal.data.collection": "dbo.signals"}).signals
    assert signals.tables == ("testDB.dbo.signals",)
    assert signals.table_of("TESTDB") == ("dbo", "signals")
    assert signals.table_of("other") is None


@pytest.mark.feature("SNP-23")
def test_snapshot_overrides_are_found_by_both_names() -> None:
    connector = connector_with(
        {
            "snapshot.select.statement.overrides": "dbo.a,testDB.dbo.b,dbo.c",
            "snapshot.select.statement.overrides.dbo.a": "SELECT * FROM dbo.a WHERE x = 1",
            "snapshot.select.statement.overrides.testDB.dbo.b": "SELECT 2",
            "snapshot.select.statement.overrides.dbo.d": "SELECT 4",
        }
    )
    snapshot = connector.snapshot
    assert snapshot.statement_for("testDB", "dbo", "A") == "SELECT * FROM dbo.a WHERE x = 1"
    assert snapshot.statement_for("testDB", "dbo", "b") == "SELECT 2"
    assert snapshot.statement_for("otherDB", "dbo", "b") is None
    assert snapshot.statement_for("testDB", "dbo", "d") is None
    assert len(connector.notices) == 2, "dbo.c has no statement, dbo.d is not listed"


@pytest.mark.parametrize("value", ["${vault:db:password}", "x${secretsManager:a}", "${dir:/run/secrets:password}"])
@pytest.mark.parametrize("name", ["database.password", "database.names", "spark.hadoop.fs.s3a.secret.key"])
def test_reference_to_another_provider_is_refused(name: str, value: str) -> None:
    text = problems_of(MINIMAL | {name: value})
    assert f"{name}: ${{{value.split(':', maxsplit=1)[0].split('{')[1]}:…}} belongs to a configuration provider" in text


def test_reference_in_a_property_without_meaning_need_not_lead_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_MISSING", raising=False)
    kafka = {"producer.sasl.jaas.config": "${vault:kafka:jaas}", "custom.metric.tags": "${env:CDC_TEST_MISSING}"}
    (notice,) = connector_with(kafka).notices
    assert notice.startswith("2 Kafka and Java settings have no meaning here")


@pytest.mark.parametrize(
    "name", ["io.debezium.connector.sqlserver.SqlServerConnector", "SqlServerConnector", "SqlServer", None]
)
def test_connector_class_is_that_of_sql_server(name: str | None) -> None:
    assert connector_with({"connector.class": name}).notices == ()


def test_foreign_connector_class_is_refused() -> None:
    text = problems_of(MINIMAL | {"connector.class": "io.debezium.connector.mysql.MySqlConnector"})
    assert (
        "connector.class: found 'io.debezium.connector.mysql.MySqlConnector', expected io.debezium.connector.sq" in text
    )


def test_own_properties_have_the_defaults_of_the_architecture() -> None:
    connector = connector_with({})
    assert (connector.delta.current_interval_s, connector.delta.deletion_vectors) == (5, "auto")
    assert (connector.dagster.range_max_rows, connector.dagster.max_run_seconds) == (5_000_000, 3600)
    assert connector.delta.key_secret is None
    assert connector.spark.read() == {}


def test_spark_and_storage_settings_pass_through_and_are_resolved_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = connector_with(
        {
            "spark.master": "local[2]",
            "spark.ui.enabled": False,
            "spark.hadoop.fs.s3a.secret.key": "${env:CDC_TEST_S3}",
            "delta.storage.AWS_SECRET_ACCESS_KEY": "${env:CDC_TEST_S3}",
            "delta.storage.AWS_REGION": "eu-west-1",
        }
    )
    monkeypatch.setenv("CDC_TEST_S3", "pepper")
    assert connector.spark.read()["spark.master"] == "local[2]"
    assert connector.spark.read()["spark.hadoop.fs.s3a.secret.key"] == "pepper"
    assert connector.spark.read()["spark.ui.enabled"] == "false"
    assert {name: reveal(value) for name, value in connector.delta.storage} == {
        "AWS_SECRET_ACCESS_KEY": "pepper",
        "AWS_REGION": "eu-west-1",
    }
    assert "pepper" not in repr(connector)


def test_spark_settings_beside_a_server_are_named_as_without_effect() -> None:
    connector = connector_with({"spark.remote": "sc://localhost:15002", "spark.driver.memory": "4g"})
    assert connector.notices == ("spark.driver.memory: no effect with spark.remote: the server has options of its own",)
    assert connector_with({"spark.driver.memory": "4g"}).notices == ()


def test_driver_with_an_unresolvable_reference_is_a_listed_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_MISSING", raising=False)
    text = problems_of(MINIMAL | {"odbc.Driver": "${env:CDC_TEST_MISSING}", "zzz": "1"})
    assert "2 problems" in text
    assert "odbc.Driver: ${env:CDC_TEST_MISSING}" in text
