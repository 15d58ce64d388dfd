"""`_transactions`: BEGIN and END of each transaction, with the counts of the rendered records (TXN-04, TXN-07)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.follow import transactions
from mssql_cdc.follow.transactions import Counted, count_transactions
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.records import event_counts
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import CapturedTable
from mssql_cdc_tests.lake_kit import AT, Change, column, excluding, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

PROPERTIES = {"provide.transaction.metadata": True, "include.schema.changes": False}
BROKEN = {"after": {"name": "utf16:d8"}}
SCHEMAS = (
    table("a"),
    # Debezium shows these times in milliseconds: two keys of the lake may be one key of the records.
    table("b", column("id", "datetime2", nullable=False, scale=7), column("name", "nvarchar", length=50)),
    table("nokey", column("id", "int"), column("name", "nvarchar", length=50), keys=()),
)


@dataclass
class World:
    """A lake and its transactions as the connector counts them."""

    lake: Lake
    schemas: dict[str, TableSchema]

    @classmethod
    def of(cls, folder: Path, **properties: object) -> World:
        """Make the change logs of `SCHEMAS`, without the columns that the properties exclude."""
        given_ = {name.replace("__", "."): value for name, value in properties.items()}
        lake = Lake(folder, {**PROPERTIES, **given_})
        filters = lake.connector.filters
        hidden = {
            one: [
                column.name for column in one.columns if not filters.columns.matches(*one.table_id.parts, column.name)
            ]
            for one in SCHEMAS
        }
        return cls(lake, {one.table_id.name: lake.add(excluding(one, hidden[one])) for one in SCHEMAS})

    def append(self, name: str, *changes: Change, **more: Any) -> None:
        """Commit changes of a table."""
        self.lake.append(self.schemas[name], *changes, **more)

    def database(self) -> Database:
        return Database.of(self.lake.connector, DATABASE, spark=lambda: pytest.fail("Spark was started"))

    def count(self, database: Database | None = None) -> Counted:
        """Do what follows a committed range."""
        layout = self.lake.layout
        members = [self.member(one.table_id) for one in self.schemas.values()]
        return count_transactions(database or self.database(), load_offsets(layout), members, load_history(layout))

    def member(self, table: TableId, *, of: TableId | None = None) -> LakeTable:
        """A table in the lake, in its own folder or in that `of` a former name."""
        layout = self.lake.layout
        home, folder = layout.home(of or table), layout.folder(of or table)
        return LakeTable(CapturedTable(table, 1, ()), home, folder, None, None)

    def rows(self) -> list[dict[str, Any]]:
        """The rows in the order that docs/lake.md names."""
        found = small_table(self.lake.layout, "transactions").rows()
        return sorted(found, key=lambda row: (row["_pos"], row["status"]))

    def ends(self) -> dict[str, tuple[int, dict[str, int]]]:
        """The counts by transaction."""
        return {
            row["transaction_id"]: (row["event_count"], dict(row["data_collections"]))
            for row in self.rows()
            if row["status"] == "END"
        }

    def rendered(self) -> tuple[list[str], dict[str, tuple[int, dict[str, int]]]]:
        """The transactions that begin in the records, and the counts of those that end."""
        values = [one["value"] for one in self.lake.records() if one["value"] and "status" in one["value"]]
        begun = [one["id"] for one in values if one["status"] == "BEGIN"]
        ends = {
            one["id"]: (one["event_count"], {c["data_collection"]: c["event_count"] for c in one["data_collections"]})
            for one in values
            if one["status"] == "END"
        }
        return begun, ends


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.of(tmp_path)


def row(key: Any, name: str | None = "x") -> dict[str, Any]:
    return {"id": key, "name": name}


@pytest.mark.feature("TXN-04", "TXN-07", "TXN-03")
def test_a_transaction_has_a_begin_and_an_end_with_the_counts_of_all_tables(world: World):
    world.append(
        "a",
        Change(1, "c", after=row(1)),
        Change(1, "u", row(1), row(2), sequence=4, changed=["id"]),
        Change(2, "d", row(2), committed=AT + timedelta(seconds=5)),
    )
    world.append("nokey", Change(1, "c", after=row(1), sequence=2), Change(1, "u", row(1), row(3), sequence=3))
    world.lake.cut(2)
    first, second = lsn(1).text, lsn(2).text
    assert world.count() == Counted(2, 6, first, second, AT + timedelta(seconds=5))
    names = ("_batch", "status", "transaction_id", "event_count", "data_collections", "commit_lsn", "commit_ts")
    both = {f"{DATABASE}.dbo.a": 3, f"{DATABASE}.dbo.nokey": 2}
    later = AT + timedelta(seconds=5)
    assert [tuple(one[name] for name in names) for one in world.rows()] == [
        (1, "BEGIN", first, None, None, first, AT),
        (1, "END", first, 5, list(both.items()), first, AT),
        (1, "BEGIN", second, None, None, second, later),
        (1, "END", second, 1, [(f"{DATABASE}.dbo.a", 1)], second, later),
    ]
    assert world.count() == Counted(), "each transaction once"
    assert len(world.rows()) == 4


def test_rows_of_snapshots_and_sweeps_are_no_events_and_transactions_without_events_are_left_out(world: World):
    world.append("a", Change(1, "r", after=row(1)))
    world.append("a", Change(1, "r", after=row(2)), snapshot="incremental:1")
    world.append("a", Change(1, "d", row(3)), flag="sweep:1")
    world.lake.cut(1)
    assert world.count() == Counted()
    assert world.rows() == []


def test_without_the_property_nothing_is_written(tmp_path: Path):
    world = World.of(tmp_path, provide__transaction__metadata=False)
    world.append("a", Change(1, "c", after=row(1)))
    world.lake.cut(1)
    assert world.count() == Counted()
    assert not Path(world.lake.layout.own("transactions")).exists()


def test_a_transaction_is_counted_when_all_tables_have_it_also_if_one_is_ahead_of_the_cut(world: World):
    world.append("a", Change(1, "c", after=row(1)), Change(2, "c", after=row(2)), Change(3, "c", after=row(3)))
    world.append("nokey", Change(1, "c", after=row(1)))
    world.lake.cut(1)
    assert world.count() == Counted(1, 2, lsn(1).text, lsn(1).text, AT)
    world.append("nokey", Change(2, "c", after=row(2)))
    world.lake.cut(2)
    assert world.count() == Counted(1, 2, lsn(2).text, lsn(2).text, AT)
    world.append("nokey", Change(3, "c", after=row(3)))
    world.lake.cut(3)
    assert world.count() == Counted(1, 2, lsn(3).text, lsn(3).text, AT)
    assert len(world.rows()) == 6


def test_what_a_table_reads_late_is_a_transaction_of_its_own_as_in_the_records(world: World):
    world.append("a", Change(1, "c", after=row(1)))
    world.lake.cut(1, only={"a", "b"})
    world.count()
    before, _ = world.rendered()
    world.append("a", Change(2, "c", after=row(2)))
    world.append("nokey", Change(1, "c", after=row(1)))
    world.lake.cut(2)
    assert world.count() == Counted(2, 2, lsn(1).text, lsn(2).text, AT)
    assert before == [lsn(1).text]
    assert [
        (one["_batch"], one["status"], one["event_count"]) for one in world.rows() if one["transaction_id"] in before
    ] == [
        (1, "BEGIN", None),
        (2, "BEGIN", None),
        (1, "END", 1),
        (2, "END", 1),
    ]


def test_a_renamed_table_is_not_counted_again(world: World):
    world.append("a", Change(1, "c", after=row(1)))
    world.lake.cut(1)
    world.count()
    layout, old = world.lake.layout, world.schemas["a"].table_id
    new = replace(old, name="renamed")
    entry = Entry("streaming", to=lsn(2).text, batch=world.lake.batches[old.text], folder=layout.folder(old))
    later = OffsetRow(kind="range", at=AT, tables={new.text: entry}, to=lsn(2).text, complete=True)
    offsets = append_offsets(layout, later, seen=load_offsets(layout))
    member = world.member(new, of=old)
    assert count_transactions(world.database(), offsets, [member], load_history(layout)) == Counted()
    assert len(world.rows()) == 2


def test_tables_that_have_exchanged_their_names_are_counted_up_to_the_cut(world: World):
    """By name, a table was counted up to the batch of the other one, beyond what the cut has of it (B15)."""
    a, b = (world.schemas[name].table_id for name in "ab")
    for at in (1, 2):
        world.append("b", Change(at, "c", after={"id": AT, "name": "x"}))
    world.append("a", Change(3, "c", after=row(1)))
    world.lake.cut(3)
    world.append("a", Change(4, "c", after=row(2)))  # Behind the cut; its number is that of the other table's newest.
    layout = world.lake.layout
    members = [world.member(a, of=b), world.member(b, of=a)]
    count_transactions(world.database(), load_offsets(layout), members, load_history(layout))
    own = small_table(layout, "transactions").state().own or {}
    assert own["batches"] == {layout.home(a).app_id: 1, layout.home(b).app_id: 2}


def test_a_commit_whose_facts_are_gone_is_not_counted_again(world: World, monkeypatch: pytest.MonkeyPatch):
    world.append("a", Change(1, "c", after=row(1)))
    world.lake.cut(1)
    world.count()
    state = transactions.SmallTable.state
    monkeypatch.setattr(transactions.SmallTable, "state", lambda self: replace(state(self), own=None))
    assert world.count() == Counted()
    world.append("a", Change(2, "c", after=row(2)))
    world.lake.cut(2)
    assert world.count().transactions == 1
    assert list(world.ends()) == [lsn(1).text, lsn(2).text]


def test_halves_of_key_changes_in_different_batches_are_one_update(world: World, monkeypatch: pytest.MonkeyPatch):
    moves = [Change(1, "u", row(n), row(n + 100), sequence=n, changed=["id"]) for n in range(1, 8)]
    world.append("a", *moves)
    world.lake.cut(1)
    scan = transactions.scan

    def one_by_one(*args: Any, **more: Any) -> Iterator[Any]:
        for batch in scan(*args, **more):
            for place in reversed(range(batch.num_rows)):
                yield batch.slice(place, 1)

    monkeypatch.setattr(transactions, "scan", one_by_one)
    assert world.count().events == 14


def test_plain_rows_are_counted_without_their_values(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_counts, "changes_of", lambda *_, **__: pytest.fail("rows were rendered"))
    world.append("a", Change(1, "c", after=row(1)), Change(1, "u", row(1), row(1, "y"), sequence=2, changed=["name"]))
    world.lake.cut(1)
    assert world.count().events == 2


@pytest.mark.parametrize(
    "properties",
    [
        {"transforms": "unwrap"},
        {"topic__naming__strategy": "not-installed"},
        # A field that is added to keys has the name of a column.
        {
            "topic__naming__strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
            "topic__regex": ".*",
            "topic__replacement": "all",
            "topic__key__field__name": "id",
        },
        {"column__exclude__list": "dbo.a.name", "message__key__columns": "dbo.a:name"},
    ],
    ids=["refused", "missing", "impossible", "key is not there"],
)
def test_capture_goes_on_where_records_cannot_be_rendered(tmp_path: Path, properties: Mapping[str, str]):
    world = World.of(tmp_path, **properties)
    world.append("a", Change(1, "u", row(1), row(2), changed=["id"]), Change(1, "c", after=row(1), sequence=2))
    world.lake.cut(1)
    with pytest.raises((ConfigurationError, SchemaError)):
        world.lake.records()
    assert world.count().events == 3


def test_capture_goes_on_where_the_history_lacks_a_version(world: World):
    world.append("a", Change(1, "u", row(1), row(2), changed=["id"]), Change(1, "u", row(2), row(2), sequence=2))
    world.lake.cut(1)
    layout, member = world.lake.layout, world.member(world.schemas["a"].table_id)
    assert count_transactions(world.database(), load_offsets(layout), [member], SchemaHistory({})).events == 3


NAMES = [name.table_id.name for name in SCHEMAS]
KINDS = ["c", "u", "same", "key", "close key", "d"]
CHANGES = st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS))
TRANSACTIONS = st.lists(st.lists(CHANGES, min_size=1, max_size=6), min_size=1, max_size=6)
Script = list[list[tuple[str, str]]]
EVERYTHING: Script = [
    [(name, kind) for kind in KINDS for name in NAMES],
    *([(name, kind)] for name in NAMES for kind in KINDS),
    [("a", "c"), ("a", "broken"), ("b", "u"), ("b", "broken")],
    [("nokey", "broken")],
]


def changes(kind: str, name: str, at: int, sequence: int) -> Change:
    """A change of this kind; keys are times in `b`."""

    def key(micros: int) -> Any:
        return (AT.replace(tzinfo=None) + timedelta(microseconds=micros)) if name == "b" else micros

    old = row(key(sequence * 10_000))
    images: dict[str, tuple[Any, ...]] = {
        "c": ("c", None, old),
        "u": ("u", old, {**old, "name": "y"}),
        "same": ("u", old, old),
        "key": ("u", old, row(key(sequence * 10_000 + 5_000))),
        "close key": ("u", old, row(key(sequence * 10_000 + 1))),
        "d": ("d", old),
        "broken": ("c", None, old),
    }
    exact = BROKEN if kind == "broken" else {}
    return Change(at, *images[kind], sequence=sequence, exact=exact)


def play(folder: Path, script: Script, cuts: set[int], properties: Mapping[str, object]) -> None:
    """Write transactions, count them at cuts, and compare with the records."""
    world = World.of(folder, **{name.replace(".", "__"): value for name, value in properties.items()})
    database, done = world.database(), Counted()
    for at, transaction in enumerate([*script, [("a", "c")]], start=1):
        numbered = list(enumerate(transaction, start=1))
        for name in dict.fromkeys(name for name, _ in transaction):
            world.append(name, *(changes(kind, name, at, number) for number, (mine, kind) in numbered if mine == name))
        if at in cuts or at == len(script) + 1:
            world.lake.cut(at)
            done += world.count(database)
    begun, ends = world.rendered()
    found = world.ends()
    assert list(found) == begun
    # Debezium writes the END of the newest transaction when the next one begins.
    assert list(found.items())[:-1] == list(ends.items())
    assert done.transactions == len(found)
    assert done.events == sum(count for count, _ in found.values())


@pytest.mark.long
@pytest.mark.feature("TXN-07", "FLT-13", "EVT-22")
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"skip.messages.without.change": True},
        {"message.key.columns": "dbo.a:name"},
        {"message.key.columns": "dbo.nokey:id"},
        {"time.precision.mode": "connect"},
        {"time.precision.mode": "connect", "message.key.columns": "dbo.*:id,name", "skipped.operations": "d"},
        {"skipped.operations": "u"},
        {"skipped.operations": "c"},
        {"skipped.operations": "c,d", "skip.messages.without.change": True},
    ],
    ids=str,
)
def test_counts_are_those_of_the_records(tmp_path: Path, properties: dict[str, str]):
    mode = "event.processing.failure.handling.mode"
    play(tmp_path / "broken", EVERYTHING, {3, 4}, {**properties, mode: "skip"})
    unbroken = [one for one in EVERYTHING if all(kind != "broken" for _, kind in one)]
    play(tmp_path / "unbroken", unbroken, {3, 4}, properties)


@pytest.mark.long
@pytest.mark.feature("TXN-07")
@settings(max_examples=20, deadline=None)
@given(
    TRANSACTIONS,
    st.sets(st.integers(1, 6)),
    st.sets(st.sampled_from("cudr"), max_size=2),
    st.booleans(),
    st.sampled_from(["", "dbo.a:name", "dbo.*:id,name", "dbo.nokey:name"]),
    st.sampled_from(["adaptive", "connect"]),
)
def test_counts_are_those_of_the_records_whatever_changes(
    script: Script,
    cuts: set[int],
    skipped: set[str],
    unchanged: bool,  # noqa: FBT001
    keys: str,
    times: str,
):
    own = {
        "skipped.operations": ",".join(sorted(skipped)) or "none",
        "skip.messages.without.change": unchanged,
        "time.precision.mode": times,
        **({"message.key.columns": keys} if keys else {}),
    }
    with TemporaryDirectory() as folder:
        play(Path(folder), script, cuts, own)


@pytest.mark.parametrize("count", [5, 40, 1000])
def test_each_transaction_has_the_counts_of_its_own_collections(count: int):
    """Arrow's groups are in no order that is promised: some transactions had the collections of others."""
    rows = [
        {
            "transaction": f"0000-{lsn(7 * number).raw.hex()}",
            "commit_lsn": lsn(7 * number).text,
            "collection": f"shop.dbo.{name}",
            "first": f"0000-{lsn(7 * number).raw.hex()}-a",
            "last": f"0000-{lsn(7 * number).raw.hex()}-b",
            "at": None,
            "events": number * 10 + place,
        }
        for number in range(1, count + 1)
        for place, name in enumerate("abc"[: 1 + number % 3], 1)
    ]
    table = event_counts.merged_counts([pa.Table.from_pylist(rows, event_counts.COUNTED)])
    found, counted = transactions._rows(table)  # pyright: ignore[reportPrivateUsage]
    ends = [row for row in found.to_pylist() if row["status"] == "END"]
    assert [row["transaction_id"] for row in ends] == [lsn(7 * number).text for number in range(1, count + 1)]
    for number, row in enumerate(ends, 1):
        expected = {f"shop.dbo.{name}": number * 10 + place for place, name in enumerate("abc"[: 1 + number % 3], 1)}
        assert dict(row["data_collections"]) == expected
        assert row["event_count"] == sum(expected.values())
    assert counted.transactions == count
    assert (counted.first, counted.last) == (lsn(7).text, lsn(7 * count).text)
