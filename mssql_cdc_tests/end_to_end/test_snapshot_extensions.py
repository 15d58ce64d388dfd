"""The worked examples of `docs/snapshot-extensions.md`, installed and used as the page says."""

from __future__ import annotations

import re
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_reading_settings import statements
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.unit.extension_kit import install

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "snapshot-extensions.md"


BROKEN = """
class Broken:
    def __init__(self, properties):
        self.closed = [properties[name] for name in properties if name.endswith(".closed")]

    def close(self):
        for path in self.closed:
            with open(path, "a") as stream:
                stream.write(type(self).__name__ + " is closed")
        raise ConnectionError("no answer at the end")

    def read(self, bookmark):
        raise ConnectionError("no answer")

    def send(self, notification):
        raise ConnectionError("no answer")

    def snapshot_query(self, table, columns):
        if table.endswith(".fails"):
            return 1 / 0
        return 7 if table.endswith(".answers") else f"SELECT * FROM {table}"

    def table_locking_statement(self, lock_timeout_ms, table):
        return None
"""


SAYS_ITS_SECRET = """
class Leaky:
    def __init__(self, properties):
        self.secret = properties["leaky.password"]

    def read(self, bookmark):
        raise ConnectionError("cannot read with " + self.secret)

    def send(self, notification):
        raise ConnectionError("cannot send with " + self.secret)

    def close(self):
        raise ConnectionError("cannot close with " + self.secret)

    def snapshot_query(self, table, columns):
        if table.endswith(".fails"):
            raise ConnectionError("cannot ask with " + self.secret)
        return f"SELECT * FROM {table}"
"""


def blocks(language: str) -> list[str]:
    """The code of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's module with its entry points, and one that is faulty, on the path."""
    (project,) = blocks("toml")
    points: dict[str, dict[str, str]] = tomllib.loads(project)["project"]["entry-points"]
    site = install(tmp_path / "site", "acme", points, {"acme_cdc": "\n".join(blocks("python"))})
    faulty = {
        "mssql_cdc.signal_channels": {"broken": "acme_broken:Broken"},
        "mssql_cdc.snapshot_queries": {"hasty": "acme_broken:Broken"},
        "mssql_cdc.snapshot_locks": {"lax": "acme_broken:Broken"},
        "mssql_cdc.notification_channels": {"deaf": "acme_broken:Broken"},
    }
    install(site, "acme_broken", faulty, {"acme_broken": BROKEN})
    leaky = {group: {"leaky": "acme_leaky:Leaky"} for group in faulty}
    install(site, "acme_leaky", leaky, {"acme_leaky": SAYS_ITS_SECRET})
    monkeypatch.syspath_prepend(site)
    for module in ("acme_cdc", "acme_broken", "acme_leaky"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.mark.feature("SPI-06", "SPI-07", "SIG-09")
def test_channel_and_action_of_a_user_take_part(place: Place, acme: Path):
    folder, notes = acme / "mails", acme / "notes.txt"
    folder.mkdir()
    closed = acme / "closed.txt"
    place.configure(
        signal_enabled_channels="mail,broken", mail_folder=str(folder), note_path=str(notes), broken_closed=str(closed)
    )
    place.create_orders()
    assert closed.read_text() == "Broken is closed"
    (folder / "1").write_text('note {"text": "one"}')
    (folder / "2").write_text('note {"no": "text"}')
    (folder / "3").write_text("unknown {}")
    for _ in range(2):
        assert place.catch_up() == 0
    assert notes.read_text() == "mail-1 from mail: one\n"
    rows = own_rows(place, "signals", "SELECT id, status, result FROM t ORDER BY _batch, id")
    assert [(row["id"], row["status"], row["result"]) for row in rows] == [
        ("mail-1", "requested", "the action note"),
        ("mail-2", "requested", "the action note"),
        ("mail-3", "ignored", "the type 'unknown' is not known"),
        ("mail-1", "done", "the action is done"),
        ("mail-2", "ignored", "the action failed: KeyError: 'text'"),
    ]


@pytest.mark.feature("SNP-09", "SPI-01")
def test_snapshotter_of_a_user_decides_about_rows_at_the_start_and_is_told_of_their_end(place: Place, acme: Path):
    today = date.today().weekday()  # noqa: DTZ011 - as the example does
    journal = acme / "journal.txt"
    custom = {"snapshot_mode": "custom", "snapshot_mode_custom_name": "weekly", "weekly_journal": str(journal)}
    place.configure(**custom, weekly_day=str((today + 3) % 7))
    place.create_orders()
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", "orders", "changes") == [{"n": 2}]
    place.configure(**custom, weekly_day=str(today))
    assert place.catch_up() == 0
    assert place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", "orders", "changes") == [{"n": 4}]
    assert place.check() == 0
    assert journal.read_text() == "completed\ncompleted\n"
    fails = f"{place.database}.dbo.orders"
    place.configure(
        **custom,
        weekly_day=str(today),
        snapshot_select_statement_overrides=fails,
        **{f"snapshot.select.statement.overrides.{fails}": "SELECT * FROM dbo.nothing"},
    )
    assert place.catch_up() != 0
    assert journal.read_text().splitlines()[:3] == ["completed", "completed", "aborted"]


@pytest.mark.feature("SNP-24", "SPI-02")
def test_snapshot_query_of_a_user_chooses_rows_and_tables_and_fails_alone(
    place: Place, acme: Path, capsys: pytest.CaptureFixture[str]
):
    place.configure(snapshot_query_mode="custom", snapshot_query_mode_custom_name="recent", recent_since="2026-01-01")
    for table in ("orders", "audit_log", "people"):
        place.create(table, "id int NOT NULL PRIMARY KEY, ordered date NULL")
        place.sql(f"INSERT INTO dbo.{table} VALUES (1, '2025-12-31'), (2, '2026-01-01')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("INSERT INTO dbo.audit_log VALUES (3, '2026-01-02')")
    assert place.catch_up() == 0
    kinds = "SELECT op, after.id AS id FROM t ORDER BY _pos"
    found = {
        t: [(r["op"], r["id"]) for r in place.query(kinds, t, "changes")] for t in ("orders", "audit_log", "people")
    }
    assert found == {"orders": [("r", 2)], "audit_log": [("c", 3)], "people": [("r", 1), ("r", 2)]}
    capsys.readouterr()

    place.configure(snapshot_query_mode="custom", snapshot_query_mode_custom_name="hasty")
    for table in ("fails", "answers", "works"):
        place.create(table, "id int NOT NULL PRIMARY KEY")
        place.sql(f"INSERT INTO dbo.{table} VALUES (1)")
    place.settle()
    assert place.catch_up() == 2
    said = capsys.readouterr().err
    assert f"snapshot.query.mode.custom.name=hasty fails for {place.database}.dbo.fails: ZeroDivisionError" in said
    assert f"hasty returned 7 for {place.database}.dbo.answers, expected a statement or None" in said
    assert place.query("SELECT id FROM t", "works") == [{"id": 1}]


@pytest.mark.sandbox
@pytest.mark.feature("SNP-16", "SPI-03")
def test_snapshot_lock_of_a_user_is_taken_before_the_shared_one(
    place: Place, acme: Path, capsys: pytest.CaptureFixture[str]
):
    place.configure(snapshot_locking_mode="custom", snapshot_locking_mode_custom_name="strict")
    place.create("notes", "what nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.notes VALUES (N'one')")
    place.settle()
    place.sql("EXEC sandbox.statement_log")
    assert place.catch_up() == 0
    locks = [text for text in statements(place, "TABLOCK") if "[notes]" in text]
    assert ["TABLOCKX" in text for text in locks] == [True, False]
    assert place.query("SELECT op FROM t", "notes", "changes") == [{"op": "r"}]

    place.configure(snapshot_locking_mode="custom", snapshot_locking_mode_custom_name="lax")
    place.create("more_notes", "what nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.more_notes VALUES (N'one')")
    place.settle()
    assert place.catch_up() == 2
    said = capsys.readouterr().err
    assert f"snapshot.locking.mode.custom.name=lax gives no statement for {place.database}.dbo.more_notes" in said


@pytest.mark.feature("SPI-08", "NOT-01", "NOT-02")
def test_notification_channel_of_a_user_gets_what_the_table_has_and_stops_nothing(
    place: Place, acme: Path, capsys: pytest.CaptureFixture[str]
):
    pages = acme / "pages.txt"
    place.configure(notification_enabled_channels="deaf,log,pager", pager_path=str(pages))
    place.create_orders()
    assert pages.read_text() == "Initial Snapshot of shop\n"
    said = capsys.readouterr().err
    assert "notification channel deaf: ConnectionError: no answer" in said
    assert "the entry point deaf cannot be closed: ConnectionError: no answer at the end" in said
    shown = r"aggregateType='Initial Snapshot', type='COMPLETED', additionalData=\{connector_name=shop\}"
    assert re.search(rf"\[Notification Service\] \{{id='[0-9a-f-]+', {shown}, timestamp=\d+\}}", said)
    rows = own_rows(place, "notifications", "SELECT type FROM t ORDER BY timestamp_ms, _batch")
    assert [row["type"] for row in rows][0::3] == ["STARTED", "COMPLETED"]


def test_what_an_extension_raises_shows_its_secret_nowhere(
    place: Place, acme: Path, capsys: pytest.CaptureFixture[str]
):
    """In no log line, no error and no reason that is kept, whichever command shows it."""
    place.configure(
        notification_enabled_channels="leaky",
        signal_enabled_channels="leaky",
        signal_poll_interval_ms="1",
        snapshot_query_mode="custom",
        snapshot_query_mode_custom_name="leaky",
        leaky_password="sesame-in-the-open",
    )
    for table in ("fails", "works"):
        place.create(table, "id int NOT NULL PRIMARY KEY")
        place.sql(f"INSERT INTO dbo.{table} VALUES (1)")
    place.settle()
    assert place.catch_up() == 2
    for command in ("status", "check"):
        for options in ((), ("--json",)):
            place.command(command, *options)
    said = "".join(capsys.readouterr())
    for what in ("read", "send", "close", "ask"):
        assert f"cannot {what} with ***" in said
    kept = [str(own_rows(place, name, "SELECT * FROM t")) for name in ("offsets", "snapshots", "notifications")]
    assert "cannot ask with ***" in kept[0]
    assert "sesame" not in said + "".join(kept)
