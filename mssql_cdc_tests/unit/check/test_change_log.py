"""A change log is one story per key that ends in the current table; each break of it is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.check.change_log import check_log
from mssql_cdc.check.story import Story, compared_columns
from mssql_cdc.events import to_change_log
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text, snapshot_position_text
from mssql_cdc.schema import Column, TableSchema, change_log_schema, current_schema
from mssql_cdc.schema.arrow import current_names
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, lsn, neutral, orders

SCHEMA = orders()
STORY = Story((SCHEMA,), ("id", "name", "note"), snapshot_position_text(0, lsn(1), number=1), cut_text(0, lsn(2)))


def image(key: int, name: str | None, note: str | None = None) -> dict[str, Any]:
    return {"id": key, "name": name, "note": note}


def read(key: int, name: str, at: int = 1, **more: Any) -> Change:
    return Change(at, "r", after=image(key, name), sequence=key, **more)


def update(at: int, key: int, old: str, new: str, **more: Any) -> Change:
    return Change(at, "u", before=image(key, old), after=image(key, new), **more)


HONEST = [
    read(1, "a"),
    read(2, "b"),
    read(3, "c"),
    update(3, 1, "a", "x"),
    Change(4, "d", before=image(2, "b")),
    Change(5, "c", after=image(4, "d")),
    update(6, 1, "x", "y"),
    Change(7, "c", after=image(2, "b again")),
]
ROWS = {1: "y", 2: "b again", 3: "c", 4: "d"}


def findings(
    folder: Path, changes: Sequence[Change], rows: dict[int, str] | None = None, story: Story = STORY
) -> list[str]:
    home = home_in(folder)
    append(change_log(home, SCHEMA), SCHEMA, *changes)
    return ended(home, ROWS if rows is None else rows, story)


def ended(home: TableHome, shown: dict[int, str], story: Story = STORY, *, batch: int = 1) -> list[str]:
    """What is found of a log that is to end in a current table of these rows."""
    return ended_in(home, [image(key, name) for key, name in shown.items()], SCHEMA, story, batch=batch)


def ended_in(
    home: TableHome, shown: Sequence[dict[str, Any]], newest: TableSchema, story: Story, *, batch: int
) -> list[str]:
    current = [{**row, "_key": f"{len(str(row['id']))}:{row['id']}"} for row in shown]
    write_deltalake(home.current, pa.Table.from_pylist(current, schema=current_schema(newest)))
    table = DeltaTable(home.current)
    columns = frozenset(field.name for field in table.schema().fields)

    def no_spark() -> Any:
        raise AssertionError("the table needs no Spark")

    pinned = PinnedTable(home.current, 0, batch, len(shown), columns, table, no_spark, current_names(newest))
    found = check_log(home.changes, pinned, story, LOCAL)
    return [line.removeprefix("change log: ") for line in found]


@pytest.mark.parametrize("part_rows", [1000, 2])
def test_an_honest_log_has_no_findings_in_one_part_or_in_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int
):
    monkeypatch.setattr("mssql_cdc.check.change_log.PART_ROWS", part_rows)
    assert findings(tmp_path, HONEST) == []


def test_a_missing_event_in_between_breaks_the_chain(tmp_path: Path):
    assert findings(tmp_path, [c for c in HONEST if c.at != 3]) == [
        "the before image differs from the preceding after image (1 rows, _key 1:1)"
    ]


def test_a_doubled_event_is_found(tmp_path: Path):
    """Review, bug 7: the same range was committed twice."""
    assert findings(tmp_path, [*HONEST, HONEST[-2]]) == ["duplicate position (1 rows, _key 1:1)"]


def test_a_missing_delete_is_found(tmp_path: Path):
    assert findings(tmp_path, [c for c in HONEST if c.at != 4]) == [
        "inserted although the row existed (1 rows, _key 1:2)"
    ]


def test_a_missing_insert_is_found(tmp_path: Path):
    changes = [*(c for c in HONEST if c.at != 5), update(8, 4, "d", "e")]
    assert findings(tmp_path, changes, {**ROWS, 4: "e"}) == [
        "changed although the row never existed (1 rows, _key 1:4)"
    ]


def test_a_change_after_a_delete_is_found(tmp_path: Path):
    changes = [*(c for c in HONEST if c.at != 7), update(8, 2, "b", "e")]
    assert findings(tmp_path, changes, {**ROWS, 2: "e"}) == ["changed after it was deleted (1 rows, _key 1:2)"]


def test_a_current_table_that_is_not_the_end_of_the_log_is_found(tmp_path: Path):
    assert findings(tmp_path, HONEST, {1: "x", 2: "b again", 3: "c", 5: "d"}) == [
        "ends with a row that the current table lacks (1 rows, _key 1:4)",
        "ends without a row that the current table has (1 rows, _key 1:5)",
        "ends with values that differ from the current table (1 rows, _key 1:1)",
    ]


def test_rows_of_a_snapshot_may_be_newer_than_their_positions_until_its_end(tmp_path: Path):
    """Case B: the chunk was read at 2 and shows a change whose event stands behind its position."""
    changes = [read(1, "new"), update(2, 1, "old", "new"), update(3, 1, "new", "newest")]
    assert findings(tmp_path, changes, {1: "newest"}) == []
    late = [read(1, "new"), update(3, 1, "old", "newest")]
    assert findings(tmp_path / "late", late, {1: "newest"}) == [
        "the before image differs from the preceding after image (1 rows, _key 1:1)"
    ]


def test_what_lies_before_the_last_whole_snapshot_is_not_judged(tmp_path: Path):
    changes = [update(1, 1, "lost", "a"), read(1, "b", at=9, snapshot=2), update(12, 1, "b", "c")]
    story = Story((SCHEMA,), STORY.columns, snapshot_position_text(0, lsn(9), number=2), cut_text(0, lsn(10)))
    assert findings(tmp_path, changes, {1: "c"}, story) == []


def test_cells_that_cdc_did_not_deliver_are_not_judged(tmp_path: Path):
    changes = [
        Change(1, "r", after=image(1, "a", "long")),
        Change(3, "u", before=image(1, "a"), after=image(1, "b"), unavailable=["note", "before.note"]),
        Change(4, "u", before=image(1, "b"), after=image(1, "c", "other"), unavailable=["before.note"]),
        Change(5, "d", before=image(1, "c"), unavailable=["note"]),
    ]
    assert findings(tmp_path, changes, {}) == []


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (Change(5, "c", after=image(4, None), unavailable=["name"]), "1:4"),
        (Change(6, "u", before=image(1, "x"), after=image(1, None), unavailable=["name"]), "1:1"),
        (Change(6, "u", before=image(1, "x"), after=image(1, "y"), unavailable=["before.name"]), "1:1"),
        (Change(9, "r", after=image(5, "e"), unavailable=["note"], snapshot=2), "1:5"),
    ],
    ids=["created", "updated", "updated before", "read"],
)
def test_a_value_that_cdc_delivers_may_not_be_called_unavailable(tmp_path: Path, change: Change, key: str):
    """Review, 4: with every cell called unavailable the check had only a note to say."""
    changes = [change if (one.at, one.op) == (change.at, change.op) else one for one in HONEST]
    changes += [change] if change.op == "r" else []
    found = findings(tmp_path, changes, {**ROWS, 5: "e"} if change.op == "r" else ROWS)
    assert f"calls a value unavailable that CDC delivers (1 rows, _key {key})" in found


def test_a_sweep_may_delete_what_the_log_never_had(tmp_path: Path):
    """A repair deletes a row that somebody else wrote to the current table."""
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, read(1, "a"))
    delete = to_change_log(
        neutral(SCHEMA, Change(5, "d", before=image(9, "alien"))), table_schema=SCHEMA, batch_number=state.batch + 1
    )
    place = delete.schema.get_field_index("_snapshot")
    flagged = delete.set_column(place, delete.schema.field(place), pa.array(["sweep:2"]))
    commit(state, write_files([flagged], state.target), {})
    assert ended(home, {1: "a"}, batch=2) == []


@pytest.mark.parametrize(
    ("former", "present", "keys"),
    [("a", 7, ""), (None, 7, "1:1"), ("other", 7, "1:1"), ("a", 8, "1:2"), ("a", None, "1:2")],
)
def test_a_value_must_be_in_the_delta_column_of_the_version_that_wrote_it(
    tmp_path: Path, former: str | None, present: int | None, keys: str
):
    """Row 1 is of the first version, row 2 of the second, in which `name` is a number and another Delta column."""
    columns = (SCHEMA.columns[0], column("name", "int"), SCHEMA.columns[2])
    newest = replace(with_delta_columns(orders(*columns), [SCHEMA]), version=2)
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, read(1, "a"), read(2, "b"))
    state = evolve(state, change_log_schema(newest))
    number = Change(3, "u", before={"id": 2, "name": 5}, after={"id": 2, "name": 7})
    state = append(state, newest, number)
    story = replace(STORY, versions=(SCHEMA, newest))
    shown = [{"id": 1, "name": former}, {"id": 2, "name_2": present}]
    found = ended_in(home, shown, newest, story, batch=state.batch)
    wrong = f"change log: ends with values that differ from the current table (1 rows, _key {keys})"
    assert found == [wrong.removeprefix("change log: ")] * bool(keys)


def placed(*columns: Column, version: int = 1) -> TableSchema:
    """A structure whose columns are at the positions 1, 2, …, unless they say another one."""
    return orders(*(replace(c, position=c.position or n) for n, c in enumerate(columns, 1)), version=version)


ID, NAME, X = column("id", "int"), column("name", "nvarchar", length=50), column("x", "int")


def story_in(
    folder: Path,
    versions: Sequence[TableSchema],
    changes: Sequence[Sequence[Change]],
    *,
    shown: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> list[str]:
    """What is found of a log whose changes were written under these versions, each version its own.

    Args:
        folder: Where the table is.
        versions: Its versions.
        changes: The changes of each version.
        shown: The rows of the current table.
        **more: What else the story has.
    """
    home = home_in(folder)
    state = change_log(home, versions[0])
    for schema, some in zip(versions, changes, strict=True):
        state = evolve(state, change_log_schema(schema))
        state = append(state, schema, *some) if some else state
    columns = compared_columns(versions, ())
    story = replace(STORY, versions=versions, columns=columns, **more)
    return ended_in(home, shown, versions[-1], story, batch=state.batch)


BROKEN = "the before image differs from the preceding after image"


@pytest.mark.parametrize(
    ("present", "before", "keys"),
    [
        ([("id", 1), ("name", 2)], None, ""),
        ([("id", 1), ("name", 2), ("x", 4)], None, ""),  # Another column has its name now.
        ([("id", 1), ("name", 2), ("x", 3)], None, "1:1"),
        (None, None, "1:1"),
        ([("id", 1), ("name", 2)], 6, "1:1"),
    ],
)
def test_a_column_that_the_source_has_no_longer_may_become_null(
    tmp_path: Path, present: Sequence[tuple[str, int]] | None, before: int | None, keys: str
):
    """CDC supplies NULL for it from the DROP COLUMN on: in the before image of a row that had a value, too."""
    changes = [
        Change(1, "r", after={"id": 1, "name": "a", "x": 5}),
        Change(3, "d", before={"id": 1, "name": "a", "x": before}),
    ]
    found = story_in(tmp_path, [placed(ID, NAME, X)], [changes], present=present)
    assert found == [f"{BROKEN} (1 rows, _key {keys})"] * bool(keys)


def test_a_column_that_was_dropped_and_added_again_is_null_in_its_former_life_only(tmp_path: Path):
    """The new instance has the new column, of which a NULL behind a value is a break."""
    former, newest = placed(ID, NAME, X), placed(ID, NAME, replace(X, position=4), version=2)
    image = {"id": 1, "name": "a"}
    first = [Change(1, "r", after={**image, "x": 5}), Change(3, "u", before=image, after=image)]
    second = [
        Change(4, "u", before={**image, "x": None}, after={**image, "x": 7}),
        Change(5, "d", before={**image, "x": None}),
    ]
    present = [("id", 1), ("name", 2), ("x", 4)]
    found = story_in(tmp_path, [former, newest], [first, second], present=present)
    assert found == [f"{BROKEN} (1 rows, _key 1:1)"]
    second[-1] = Change(5, "d", before={**image, "x": 7})
    assert story_in(tmp_path / "right", [former, newest], [first, second], present=present) == []


AT = datetime.fromisoformat("2026-01-02T03:04:05.003")
REWRITTEN = {
    "padded": (column("x", "char", length=3), column("x", "char", length=5), "a  ", "a    "),
    "bytes": (column("x", "binary", length=1), column("x", "binary", length=2), b"a", b"a\0"),
    "replaced": (column("x", "nvarchar", length=5), column("x", "varchar", length=5), "ż", "?"),
    "finer": (column("x", "datetime"), column("x", "datetime2", scale=7), AT, AT + timedelta(microseconds=333)),
    "coarser": (column("x", "datetime2", scale=3), column("x", "datetime2", scale=0), AT, AT.replace(microsecond=0)),
    "rounded": (
        column("x", "decimal", precision=9, scale=3),
        column("x", "decimal", precision=7, scale=1),
        Decimal("1.234"),
        Decimal("1.2"),
    ),
    "less": (column("x", "float"), column("x", "real"), 0.1, 0.10000000149011612),
}


@pytest.mark.parametrize("kind", REWRITTEN)
def test_a_value_that_an_alter_column_rewrote_breaks_no_story(tmp_path: Path, kind: str):
    """Behind `ALTER COLUMN` the before image of a row is what the source made of it, without a change row."""
    former, present, old, new = REWRITTEN[kind]
    first = placed(ID, NAME, former)
    versions = [first, with_delta_columns(placed(ID, NAME, present, version=2), [first])]
    image = {"id": 1, "name": "a"}
    read = [Change(1, "r", after={**image, "x": old})]
    changed = Change(3, "u", before={**image, "x": new}, after={**image, "x": new})
    deleted = Change(4, "d", before={**image, "x": new})
    assert story_in(tmp_path, versions, [read, [changed, deleted]]) == []
    # What lies behind the ALTER, and what else the row has, is compared.
    wrong = replace(deleted, before=image)
    found = story_in(tmp_path / "behind", versions, [read, [changed, wrong]])
    assert found == [f"{BROKEN} (1 rows, _key 1:1)"]
    other = replace(changed, before={**image, "name": "b", "x": new})
    found = story_in(tmp_path / "beside", versions, [read, [other, deleted]])
    assert found == [f"{BROKEN} (1 rows, _key 1:1)"]


def test_a_row_from_before_an_alter_column_is_still_held_against_the_current_table(tmp_path: Path):
    """Both are made of the log, so that no ALTER COLUMN lies between them."""
    former, present, old, new = REWRITTEN["padded"]
    versions = [placed(ID, NAME, former), placed(ID, NAME, present, version=2)]
    row = {"id": 1, "name": "a", "x": old}
    rows = [[Change(1, "r", after=row)], []]
    assert story_in(tmp_path, versions, rows, shown=[row]) == []
    found = story_in(tmp_path / "other", versions, rows, shown=[{**row, "x": new}])
    assert found == ["ends with values that differ from the current table (1 rows, _key 1:1)"]


def computed_then_ordinary(folder: Path, *later: Change, first: Change | None = None) -> list[str]:
    """What is found of a row that was updated while `x` was computed, and then under the ordinary `x`."""
    versions = [placed(ID, NAME, replace(X, computed=True)), placed(ID, NAME, replace(X, position=4), version=2)]
    row = {"id": 1, "name": "a"}
    update = first or Change(3, "u", before=row, after=row, unavailable=["x"])
    changes = [Change(1, "r", after={**row, "x": 6}), update]
    return story_in(folder, versions, [changes, later])


ORDINARY = {"id": 1, "name": "a", "x": 7}


def test_a_column_that_was_computed_is_known_from_its_ordinary_version_on(tmp_path: Path):
    """CDC delivers nothing of a computed column: its changes are no break, and rightly call it unavailable."""
    first, last = Change(5, "u", before={**ORDINARY, "x": None}, after=ORDINARY), Change(6, "d", before=ORDINARY)
    assert computed_then_ordinary(tmp_path, first, last) == []
    deleted = Change(5, "d", before={"id": 1, "name": "a"}, unavailable=["x"])
    found = computed_then_ordinary(tmp_path / "delivered", deleted)
    assert found == ["calls a value unavailable that CDC delivers (1 rows, _key 1:1)"]
    wrong = replace(last, before={**ORDINARY, "x": 8})
    assert computed_then_ordinary(tmp_path / "broken", first, wrong) == [f"{BROKEN} (1 rows, _key 1:1)"]
    other = Change(3, "u", before={"id": 1, "name": "b"}, after={"id": 1, "name": "a"}, unavailable=["x"])
    assert computed_then_ordinary(tmp_path / "beside", first, last, first=other) == [f"{BROKEN} (1 rows, _key 1:1)"]


@pytest.mark.parametrize(
    ("version", "line"),
    [(1, "calls a value unavailable that CDC delivers (1 rows, _key 1:1)"), (2, "")],
    ids=["before it was one", "since"],
)
def test_only_rows_of_a_version_that_is_a_lob_may_lack_it(tmp_path: Path, version: int, line: str):
    former = placed(ID, NAME, column("x", "nvarchar", length=5))
    versions = [former, with_delta_columns(placed(ID, NAME, column("x", "ntext"), version=2), [former])]
    row = {"id": 1, "name": "a", "x": "b"}
    changes = [[Change(1, "r", after=row)], []]
    changes[version - 1].append(Change(3, "d", before=row, unavailable=["x"]))
    assert story_in(tmp_path, versions, changes) == [line] * bool(line)
