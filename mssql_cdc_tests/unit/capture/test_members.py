"""What the lake knows about captured tables before anything is read: identity, versions, and what is missing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import load_tables, prepared, versioned
from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.snapshot.begin import note_unread
from mssql_cdc.capture.snapshot.chunk_plan import low_mark
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import StorageError
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.log import commit, create_table
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.steps import positions_taken
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Lost, Range, Wait
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.loss import write_loss
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId, change_log_schema
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource

ORDERS = TableId("shop", "dbo", "orders")


@pytest.fixture
def source() -> ModelSource:
    return ModelSource("orders", "people")


@pytest.fixture
def database(source: ModelSource, tmp_path: Path) -> Database:
    """A database whose tables stream, without rows so far: no Spark is needed."""
    database = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    stream(database)
    return database


def stream(database: Database) -> Survey:
    """Let every table stream from where the source stands."""
    seen = survey(database)
    captured = seen.facts.captured
    assert captured is not None
    structures = {t: known.structure(known.captured.newest, None) for t, known in seen.tables.items()}
    schemas, _ = versioned(database, structures, seen.history)
    entries = {
        t.text: replace(
            known.new_entry(),
            status="streaming",
            to=low_mark(captured, known.captured.newest.start_lsn).text,
            instance=known.captured.newest.identity,
            schema=schemas[t].version,
            filled=schemas[t].version,
        )
        for t, known in seen.tables.items()
    }
    append_offsets(
        database.layout, positions_taken(database.stamp(0), entries, snapshot="s", witness=None), seen=seen.offsets
    )
    return survey(database)


def test_an_instance_whose_start_cleanup_raised_is_the_same(source: ModelSource):
    """Else a second instance would not take over where it begins, and rows would lack its new columns (B14)."""
    instance = source.tables["orders"].captured().newest
    raised = replace(instance, start_lsn=instance.start_lsn.increment())
    assert raised.identity == instance.identity
    assert replace(raised, created=raised.created + timedelta(seconds=1)).identity != instance.identity


def test_an_identity_that_is_given_again_after_a_restore_belongs_to_its_new_table(
    source: ModelSource, database: Database
):
    """Storm, seed 100013: people took over orders' entry, with a schema version that it does not have."""
    former = source.tables["orders"].object_id
    source.tables["orders"].object_id = 777  # Made anew.
    stream(database)
    source.tables["orders"].object_id = former  # The database of before is back, where people is made anew.
    source.tables["people"].object_id = 777
    found = survey(database).tables
    people = found[TableId("shop", "dbo", "people")]
    assert people.entry is not None
    assert (people.folder, people.entry.schema) == ("dbo/people", 1)
    assert found[ORDERS].folder == "dbo/orders"


def test_a_structure_takes_effect_after_the_position(database: Database):
    """Review, D1: a default that changed under the same instance came before all older events."""
    seen = survey(database)
    known, position = seen.tables[ORDERS], seen.position(ORDERS)
    assert position is not None
    later = position.increment()
    assert known.structure(known.captured.newest, later).from_lsn == later.increment().text
    assert known.structure(known.captured.newest, None).from_lsn == known.captured.newest.start_lsn.text


def test_a_schema_history_that_is_gone_is_said(database: Database):
    """Review, bug 6: version 1 would have been given to another structure."""
    shutil.rmtree(database.layout.own("schema_history"))
    assert load_offsets(database.layout).entries[ORDERS.text].schema == 1
    with pytest.raises(StorageError, match=r"_schema_history lacks version 1 of shop\.dbo\.orders"):
        survey(database)


def written(database: Database) -> None:
    """A commit of each change log, which `_offsets` names."""
    seen = survey(database)
    entries = {}
    for table, known in seen.tables.items():
        state = prepared(database, known, known.captured.newest.schema)
        after = commit(state, [], {"kind": "range", "to": str(seen.position(table))})
        entries[table.text] = replace(
            known.new_entry(), delta_table_id=after.table_id, delta_version=after.delta_version, batch=after.batch
        )
    append_offsets(
        database.layout, positions_taken(database.stamp(0), entries, snapshot="t", witness=None), seen=seen.offsets
    )


@pytest.mark.parametrize("also", [(), ("schema_history", "snapshots", "gaps")])
def test_offsets_that_are_gone_are_said(database: Database, also: tuple[str, ...]):
    """Every table would begin as a new one: what was captured since its last commit would be no gap (A5)."""
    written(database)
    for name in ("offsets", *also):
        shutil.rmtree(database.layout.own(name), ignore_errors=True)
    for quick in (False, True):
        with pytest.raises(StorageError, match=r"_offsets is gone.*shop\.dbo\.orders, shop\.dbo\.people") as said:
            survey(database, quick=quick)
    assert f"move {database.layout.root} away" in str(said.value)
    assert not Path(database.layout.own("offsets")).exists()


def test_change_logs_that_another_run_began_since_are_no_sign_of_lost_offsets(source: ModelSource, tmp_path: Path):
    """A run reads the offsets of a new database; before it looks at the change logs, another one writes to both."""
    database = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    seen = survey(database)
    stream(database)
    written(database)
    found = load_tables(database, [one.captured for one in seen.tables.values()], seen.offsets, seen.history)
    assert found[ORDERS].entry is None


def test_an_older_copy_of_the_offsets_is_told_by_the_change_logs(
    database: Database, source: ModelSource, tmp_path: Path
):
    """Their commits name the newest row that they were planned from; the row that follows one may be missing (A5)."""
    folder, older = database.layout.own("offsets"), tmp_path / "older"
    shutil.copytree(folder, older)

    def ranged() -> None:
        source.put("orders", 1, f"at {source.number}")
        source.capture()
        seen = survey(database)
        decision = plan(seen.facts)
        assert isinstance(decision, Range)
        capture_range(database, seen, decision).raise_failure()

    ranged()
    newest, rows = tmp_path / "newest", load_offsets(database.layout).number
    shutil.copytree(folder, newest)
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    assert survey(database).offsets.number == rows - 1, "as behind a crash"
    shutil.rmtree(folder)
    shutil.copytree(newest, folder)
    ranged()
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    for quick in (False, True):
        with pytest.raises(StorageError, match=rf"is older than the change logs of shop\.dbo\.orders: .* row {rows}, "):
            survey(database, quick=quick)


@pytest.mark.parametrize("done", ["restored", "replaced", "removed", "emptied"])
def test_a_change_log_that_was_tampered_with_is_lost_and_the_others_go_on(
    database: Database, source: ModelSource, done: str
):
    """Review, bug 11: it stopped every table, and the snapshot that was advised could not be taken."""
    written(database)
    home = database.layout.home(ORDERS)
    if done == "restored":
        DeltaTable(home.changes).restore(0)
    elif done == "emptied":  # As a power loss leaves the newest commit.
        max(Path(home.changes, "_delta_log").glob("*.json")).write_bytes(b"")
    else:
        shutil.rmtree(home.changes)
    if done == "replaced":
        stranger = survey(database).tables[ORDERS].captured.newest.schema
        create_table(home.changes, change_log_schema(stranger), owner=home.app_id, properties={})
    seen = survey(database)
    decision = plan(seen.facts)
    assert isinstance(decision, Lost)
    assert decision.tables == (ORDERS,)
    write_loss(database, seen, decision)
    assert [gap.table for gap in open_gaps(database.layout)[ORDERS.text]] == [ORDERS.text]
    source.put("people", 1, "one")
    source.capture()
    after = survey(database)
    assert standings(after).missing.keys() == {ORDERS.text}
    others = plan(after.facts)
    assert isinstance(others, Range)
    assert [table.name for table in others.tables] == ["people"]
    # The snapshot that repairs it goes on counting, so that its rows are newer than all that was merged before.
    assert prepared(database, after.tables[ORDERS], after.tables[ORDERS].captured.newest.schema).batch >= 1


def test_a_table_that_cannot_be_captured_is_named_and_the_others_go_on(database: Database, source: ModelSource):
    """Review, bug 10: columns that differ by case ended the look at the whole database."""
    source.problems = {"orders": "columns differ only by case"}
    source.enable("odd")
    source.problems["odd"] = "odd columns"
    seen = survey(database)
    stand = standings(seen)
    assert (stand.missing, stand.failed) == (
        {ORDERS.text: "columns differ only by case"},
        {"shop.dbo.odd": "odd columns"},
    )
    assert isinstance(plan(seen.facts), Wait)
    source.put("people", 1, "one")
    source.capture()
    decision = plan(survey(database).facts)
    assert isinstance(decision, Range)
    assert [table.name for table in decision.tables] == ["people"]


def test_a_folder_of_another_connector_is_the_trouble_of_its_table(database: Database, source: ModelSource):
    source.enable("late")
    late = TableId("shop", "dbo", "late")
    home = database.layout.home(late)
    schema = survey(database).tables[late].captured.newest.schema
    create_table(home.changes, change_log_schema(schema), owner="mssql_cdc:other:shop/dbo/late", properties={})
    seen = survey(database)
    assert "belongs to mssql_cdc:other" in standings(seen).failed[late.text]
    assert {member.table.name for member in seen.facts.members} == {"orders", "people"}


def rename(source: ModelSource, old: str, new: str) -> None:
    """What `sp_rename` does: the object, its rows, its changes and its capture instance stay."""
    table = source.tables.pop(old)
    source.tables[new] = replace(table, name=new)
    source.log = [(number, new if name == old else name, change) for number, name, change in source.log]


def homes(seen: Survey) -> dict[str, tuple[str, str, Lsn | None]]:
    """Per table: its folder, its status and its position."""
    return {m.table.name: (seen.tables[m.table].folder, m.status, m.position) for m in seen.facts.members}


def test_tables_that_exchange_their_names_keep_their_folders_positions_and_versions(
    database: Database, source: ModelSource
):
    """Review, bug 24: identity is the object id, whatever name it has."""
    before = homes(survey(database))
    rename(source, "orders", "t")
    rename(source, "people", "orders")
    rename(source, "t", "people")
    seen = survey(database)
    assert homes(seen) == {"people": before["orders"], "orders": before["people"]}
    schemas, _ = versioned(
        database, {t: k.structure(k.captured.newest, None) for t, k in seen.tables.items()}, seen.history
    )
    assert {schema.version for schema in schemas.values()} == {2}
    for loaded in (load_history(database.layout), survey(database).history):
        chains = {name: [schema.object_id for schema in own] for name, own in loaded.versions.items()}
        assert chains == {"shop.dbo.orders": [101, 101], "shop.dbo.people": [100, 100]}


def test_a_renamed_table_that_takes_over_a_name_is_not_missed_under_its_own(database: Database, source: ModelSource):
    before = homes(survey(database))
    rename(source, "orders", "orders_old")
    rename(source, "people", "orders")
    seen = survey(database)
    assert homes(seen) == {"orders_old": before["orders"], "orders": before["people"]}
    assert seen.facts.absent == ()
    assert standings(seen).missing == {}


def test_a_new_table_that_takes_the_name_of_a_renamed_one_begins_afresh(database: Database, source: ModelSource):
    """Review, bug 24: the renamed table went on in a new folder, and its last changes were in no change log."""
    written(database)
    before = homes(survey(database))
    source.put("orders", 1, "the last change under the old name")
    rename(source, "orders", "orders_old")
    source.enable("orders")
    source.tables["orders"].object_id = 777
    source.capture()
    seen = survey(database)
    found = homes(seen)
    assert found["orders_old"] == before["orders"]
    assert found["orders"] == ("dbo/orders!777", "new", None)
    assert standings(seen).missing == {}
    # Readers of `_offsets` go by the name: numbers under it never repeat.
    assert seen.tables[ORDERS].least_batch == 1
    decision = plan(replace(seen.facts, members=tuple(m for m in seen.facts.members if m.status != "new")))
    assert isinstance(decision, Range)
    assert [(part.table.name, part.from_) for part in decision.slices if part.table.name == "orders_old"] == [
        ("orders_old", before["orders"][2])
    ]


def test_a_table_in_whose_place_another_one_is_leaves_a_gap(database: Database, source: ModelSource):
    """Dropped and created again, or renamed and left out by the filters: its last changes cannot be had."""
    source.tables["orders"].object_id = 777
    seen = survey(database)
    lake = seen.tables[ORDERS]
    assert (lake.recreated, lake.folder) == (True, "dbo/orders")
    for _ in range(2):
        note_unread(database, [lake], 0)
    (gap,) = open_gaps(database.layout)[ORDERS.text]
    assert lake.entry is not None
    assert (gap.from_, gap.to) == (lake.entry.to, None)
    assert "another table has replaced it" in gap.text
