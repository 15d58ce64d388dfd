"""The log: order of LSNs, and what capture reads of tracked tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.log import DdlChange, Log, RowChange, lsn_text
from mssql_sandbox.engine.storage import schema_change
from tests.engine.conftest import committed, make_table


@pytest.fixture
def tracked(database, table):
    table.tracked = True
    database.log.capturing = True
    return table


def changes(database) -> list[RowChange]:
    newest = list(database.log.pending())[-1]
    return [entry for entry in newest.entries if isinstance(entry, RowChange)]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_commit_lsns_grow_and_lie_above_the_rows_of_their_transactions(steps) -> None:
    log = Log()
    log.capturing = True
    parts = {}
    commits = []
    for number, (who, ends) in enumerate(steps):
        part = parts.get(who) or parts.setdefault(who, log.begin(number, 0))
        part.change(1, "insert", None, (number,))
        if ends:
            commits.append(log.commit(parts.pop(who), 0))
    assert commits == sorted(set(commits))
    for transaction in log.read(0, 100):
        assert all(transaction.begin_lsn < entry.lsn < transaction.commit_lsn for entry in transaction.entries)
    assert [transaction.commit_lsn for transaction in log.read(0, 100)] == commits


def test_lsns_have_the_text_form_of_dmvs() -> None:
    assert lsn_text(0x0000002700000160_0011) == "00000027:00000160:0011"
    log = Log()
    assert lsn_text(log.end_lsn).startswith("00000027:")


def test_row_changes_of_a_transaction_are_logged_in_order_below_its_commit(database, tracked) -> None:
    committed(database, lambda t: (tracked.insert(t, (1, "a", "x")), tracked.insert(t, (2, "b", "x"))))
    assert [(c.operation, c.after) for c in changes(database)] == [
        ("insert", (1, "a", "x")),
        ("insert", (2, "b", "x")),
    ]
    first, second = changes(database)
    assert first.lsn < second.lsn < list(database.log.pending())[-1].commit_lsn


def test_an_update_carries_both_images_and_a_bit_per_changed_column(database, tracked) -> None:
    committed(database, lambda t: tracked.insert(t, (1, "a", "x")))
    committed(database, lambda t: tracked.update(t, [(0, (1, "a", "y"))]))
    (change,) = changes(database)
    assert (change.operation, change.before, change.after, change.changed, change.deferred) == (
        "update",
        (1, "a", "x"),
        (1, "a", "y"),
        0b100,
        False,
    )


def test_an_update_of_a_unique_column_is_deferred(database, tracked) -> None:
    committed(database, lambda t: tracked.insert(t, (1, "a", "x")))
    committed(database, lambda t: (tracked.update(t, [(0, (1, "b", "x"))]), tracked.update(t, [(0, (1, "b", "y"))])))
    assert [c.deferred for c in changes(database)] == [True, False]


def test_several_primary_keys_at_once_are_deletes_before_inserts(database, tracked) -> None:
    committed(database, lambda t: tracked.insert_many(t, [(1, "a", None), (2, "b", None)]))
    committed(database, lambda t: tracked.update(t, [(0, (2, "a", None)), (1, (3, "b", None))]))
    found = changes(database)
    assert [c.operation for c in found] == ["delete", "delete", "insert", "insert"]
    assert len({c.lsn for c in found}) == 4


def test_an_update_without_a_change_writes_nothing_for_capture(database, tracked) -> None:
    committed(database, lambda t: tracked.insert(t, (1, "a", "x")))
    position = database.log.end_position
    committed(database, lambda t: tracked.update(t, [(0, (1, "a", "x"))]))
    assert database.log.read(position, 10) == []


def test_what_was_rolled_back_is_not_captured(database, tracked) -> None:
    transaction = database.server.transactions.begin()
    tracked.insert(transaction, (1, "a", None))
    transaction.save("s")
    tracked.insert(transaction, (2, "b", None))
    transaction.rollback_to("s")
    tracked.insert(transaction, (3, "c", None))
    transaction.commit()
    assert [c.after for c in changes(database)] == [(1, "a", None), (3, "c", None)]


def test_untracked_tables_only_make_the_log_grow(database, tracked) -> None:
    other = make_table(database, "other")
    before = database.log.end_lsn
    committed(database, lambda t: other.insert(t, (1, "a", None)))
    assert database.log.end_lsn > before
    assert database.log.read(0, 10) == []


def test_truncating_after_the_cursor_keeps_positions(database, tracked) -> None:
    for number in range(3):
        committed(database, lambda t, n=number: tracked.insert(t, (n, str(n), None)))
    database.log.truncate(2)
    (last,) = database.log.read(2, 10)
    assert database.log.end_position == 3
    assert isinstance(last.entries[0], RowChange)
    assert last.entries[0].after == (2, "2", None)
    database.log.stop_capturing()
    assert database.log.read(0, 10) == []


def test_ddl_of_a_tracked_table_lies_in_order_between_its_rows(database, tracked) -> None:
    def play(transaction) -> None:
        tracked.insert(transaction, (1, "a", None))
        schema_change.log_ddl(tracked, transaction, "add column", "ALTER TABLE t ADD x int", column="x")
        tracked.insert(transaction, (2, "b", None))

    committed(database, play)
    (transaction,) = database.log.read(0, 10)
    assert [type(entry) for entry in transaction.entries] == [RowChange, DdlChange, RowChange]
    assert [entry.lsn for entry in transaction.entries] == sorted(entry.lsn for entry in transaction.entries)
