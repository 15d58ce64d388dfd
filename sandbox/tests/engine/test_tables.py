"""Tables: constraints with their messages, indexes, ALTER TABLE, undo, counters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine.storage import alter, index_changes, rule_changes
from mssql_sandbox.engine.storage.columns import Column, Computed, Identity
from mssql_sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import BIGINT, INT, ROWVERSION, make_type, varchar
from mssql_sandbox.errors import SqlError
from tests.engine.conftest import committed, make_table, now


def refused_in(transaction: Transaction, action) -> SqlError:
    """The error of a statement, which is undone."""
    transaction.begin_statement()
    with pytest.raises(SqlError) as raised:
        action(transaction)
    transaction.undo_statement()
    return raised.value


def refused(database, action) -> SqlError:
    """The error of a statement in a transaction of its own."""
    transaction = database.server.transactions.begin()
    failure = refused_in(transaction, action)
    transaction.commit()
    return failure


def test_a_duplicate_primary_key_is_error_2627(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", None)))
    failure = refused(database, lambda t: table.insert(t, (1, "b", None)))
    assert (failure.number, failure.severity) == (2627, 14)
    assert failure.message == (
        "Violation of PRIMARY KEY constraint 'PK_t'. Cannot insert duplicate key in object 'dbo.t'. "
        "The duplicate key value is (1)."
    )


def test_a_duplicate_in_a_unique_index_is_error_2601_and_null_counts_as_a_value(database, table) -> None:
    committed(database, lambda t: table.insert_many(t, [(1, "a", None), (2, None, None)]))
    failure = refused(database, lambda t: table.insert(t, (3, "A ", None)))
    assert failure.message == (
        "Cannot insert duplicate key row in object 'dbo.t' with unique index 'UQ_t'. The duplicate key value is (A )."
    )
    assert refused(database, lambda t: table.insert(t, (3, None, None))).message.endswith("is (<NULL>).")
    assert now(table) == [(1, "a", None), (2, None, None)]


def test_an_update_may_shift_all_keys_because_uniqueness_is_checked_at_its_end(database, table) -> None:
    committed(database, lambda t: table.insert_many(t, [(n, str(n), None) for n in range(5)]))
    committed(database, lambda t: table.update(t, [(n, (n + 1, str(n + 1), None)) for n in range(5)]))
    assert [row[0] for row in now(table)] == [1, 2, 3, 4, 5]
    assert refused(database, lambda t: table.update(t, [(0, (2, "x", None))])).number == 2627
    assert [row[0] for row in now(table)] == [1, 2, 3, 4, 5]


def test_a_filtered_unique_index_looks_only_at_its_rows(database) -> None:
    table = make_table(database)
    only = Index("F", 0, (("note", False),), unique=True, predicate=lambda row: row[2] is not None)
    committed(database, lambda t: index_changes.add_index(table, t, only))
    committed(database, lambda t: table.insert_many(t, [(1, "a", None), (2, "b", None), (3, "c", "x")]))
    assert refused(database, lambda t: table.insert(t, (4, "d", "x"))).number == 2601
    committed(database, lambda t: table.update(t, [(2, (3, "c", None)), (0, (1, "a", "x"))]))
    assert len(only.entries) == 1


def test_null_in_a_not_null_column_is_error_515(database, table) -> None:
    failure = refused(database, lambda t: table.insert(t, (None, "a", None)))
    assert failure.message == (
        "Cannot insert the value NULL into column 'id', table 'd.dbo.t'; column does not allow nulls. INSERT fails."
    )


def test_a_check_is_violated_by_false_only(database, table) -> None:
    check = Check("CK", 1, "([id]>(0))", lambda row: None if row[2] is None else row[0] > 0, column="id")
    committed(database, lambda t: rule_changes.add_check(table, t, check, existing=True))
    committed(database, lambda t: table.insert(t, (-1, "a", None)))
    failure = refused(database, lambda t: table.insert(t, (-2, "b", "x")))
    assert failure.message == (
        'The INSERT statement conflicted with the CHECK constraint "CK". The conflict occurred in database "d", '
        "table \"dbo.t\", column 'id'."
    )


def linked(database, **actions):
    parent = make_table(database, "parent")
    child = make_table(database, "child")
    committed(database, lambda t: alter.add_column(child, t, Column("parent_id", INT), lambda: None))
    key = ForeignKey("FK", 2, child, ("parent_id",), parent, ("id",), **actions)
    committed(database, lambda t: rule_changes.add_foreign_key(t, key, existing=True))
    committed(database, lambda t: parent.insert_many(t, [(1, "a", None), (2, "b", None)]))
    committed(database, lambda t: child.insert_many(t, [(1, "a", None, 1), (2, "b", None, None), (3, "c", None, 2)]))
    return parent, child


def test_a_foreign_key_needs_its_parent_on_both_sides(database) -> None:
    parent, child = linked(database)
    assert refused(database, lambda t: child.insert(t, (9, "z", None, 7))).message == (
        'The INSERT statement conflicted with the FOREIGN KEY constraint "FK". The conflict occurred in database "d", '
        "table \"dbo.parent\", column 'id'."
    )
    assert refused(database, lambda t: parent.delete(t, [0])).message == (
        'The DELETE statement conflicted with the REFERENCE constraint "FK". The conflict occurred in database "d", '
        "table \"dbo.child\", column 'parent_id'."
    )
    assert refused(database, parent.truncate).number == 4712
    assert refused(database, lambda t: database.drop_object(t, parent)).number == 3726
    assert len(now(parent)) == 2


def test_cascades_follow_the_parent(database) -> None:
    parent, child = linked(database, on_delete="CASCADE", on_update="CASCADE")
    committed(database, lambda t: parent.update(t, [(0, (10, "a", None))]))
    assert [row[3] for row in now(child)] == [10, None, 2]
    committed(database, lambda t: parent.delete(t, [0]))
    assert [row[0] for row in now(child)] == [2, 3]


def test_an_index_over_the_foreign_key_finds_the_same_children(database) -> None:
    parent, child = linked(database, on_delete="CASCADE")
    committed(database, lambda t: index_changes.add_index(child, t, Index("IX", 0, (("parent_id", False),))))
    committed(database, lambda t: child.insert(t, (4, "d", None, 1)))
    committed(database, lambda t: parent.delete(t, [0]))
    assert [row[0] for row in now(child)] == [2, 3]


def test_a_statement_that_ends_its_transaction_closes_its_scope_with_it(database, table) -> None:
    transaction = database.server.transactions.begin()
    transaction.begin_statement()
    table.insert(transaction, (1, "a", None))
    transaction.commit()
    transaction.end_statement()
    assert transaction.state == "committed"
    assert transaction.locks == {}
    assert now(table) == [(1, "a", None)]


def test_set_null_takes_the_parent_away(database) -> None:
    parent, child = linked(database, on_delete="SET NULL")
    committed(database, lambda t: parent.delete(t, [0]))
    assert [row[3] for row in now(child)] == [None, None, 2]


def test_identity_values_are_not_given_back_and_end_with_an_overflow(database) -> None:
    identity = Identity(253, 1)
    tiny = make_type("tinyint")
    assert [identity.take(tiny), identity.take(tiny)] == [253, 254]
    identity.note(255)
    with pytest.raises(SqlError, match="Arithmetic overflow error converting IDENTITY to data type tinyint"):
        identity.take(tiny)


def test_rowversion_and_computed_columns_are_filled_by_storage(database) -> None:
    columns = [
        Column("id", INT, nullable=False),
        Column("rv", ROWVERSION, nullable=False),
        Column("twice", BIGINT, computed=Computed("([id]*(2))", lambda row: row[0] * 2)),
    ]
    table = committed(database, lambda t: database.create_table(t, "dbo", "v", columns))
    committed(database, lambda t: table.insert(t, (4, None, None)))
    ((_, first, twice),) = now(table)
    committed(database, lambda t: table.update(t, [(0, (5, None, None))]))
    ((_, second, again),) = now(table)
    assert (twice, again, len(first)) == (8, 10, 8)
    assert second > first
    assert database.last_rowversion == second


def test_columns_come_and_go_and_older_images_stay_readable(database, table) -> None:
    committed(database, lambda t: table.insert_many(t, [(1, "a", "x"), (2, "b", "y")]))
    transaction = database.server.transactions.begin()
    table.update(transaction, [(0, (1, "a", "new"))])
    alter.add_column(table, transaction, Column("n", INT, nullable=False), lambda: 7)
    assert refused_in(transaction, lambda t: alter.drop_column(table, t, "code")).number == 4922
    assert alter.dependants(table, "code") == [("index", "UQ_t")]
    index_changes.drop_index(table, transaction, table.indexes[1])
    alter.drop_column(table, transaction, "code")
    note = Column("note", varchar(20, collation=database.collation))
    alter.alter_column(table, transaction, note, str.upper)
    transaction.begin_statement()
    rows = [row for part in table.scan(open_view(transaction, database)) for row in part]
    assert rows == [(1, "NEW", 7), (2, "Y", 7)]
    transaction.rollback()
    assert now(table) == [(1, "a", "x"), (2, "b", "y")]
    assert [column.name for column in table.columns] == ["id", "code", "note"]
    assert refused(database, lambda t: table.insert(t, (1, "c", None))).number == 2627


def test_a_not_null_column_needs_a_value_for_existing_rows(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", None)))
    failure = refused(database, lambda t: alter.add_column(table, t, Column("n", INT, nullable=False), lambda: None))
    assert failure.number == 4901
    assert now(table) == [(1, "a", None)]


def test_building_a_unique_index_over_duplicates_is_error_1505(database, table) -> None:
    committed(database, lambda t: table.insert_many(t, [(1, "a", "x"), (2, "b", "X")]))
    failure = refused(
        database, lambda t: index_changes.add_index(table, t, Index("U", 0, (("note", False),), unique=True))
    )
    assert failure.number == 1505
    assert failure.message.endswith("The duplicate key value is (x).")


def test_truncate_empties_a_table_and_can_be_taken_back(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", None)))
    transaction = database.server.transactions.begin()
    table.truncate(transaction)
    table.insert(transaction, (1, "z", None))
    transaction.rollback()
    assert now(table) == [(1, "a", None)]
    table.tracked = True
    assert refused(database, table.truncate).message == (
        "Cannot truncate table 't' because it is published for replication or enabled for Change Data Capture."
    )


def test_dropping_a_table_can_be_taken_back(database, table) -> None:
    transaction = database.server.transactions.begin()
    database.drop_object(transaction, table)
    assert database.table("dbo", "T") is None
    transaction.rollback()
    assert database.table("DBO", "T") is table
    assert database.object_by_id(table.object_id) is table


def test_table_variables_keep_their_rows_through_a_rollback_but_not_through_a_failed_statement(database) -> None:
    variable = database.make_table("dbo", "@v", [Column("id", INT, nullable=False)], kind="variable")
    transaction = database.server.transactions.begin()
    transaction.begin_statement()
    variable.insert(transaction, (1,))
    transaction.end_statement()
    transaction.begin_statement()
    variable.insert(transaction, (2,))
    transaction.undo_statement()
    transaction.rollback()
    assert now(variable) == [(1,)]
    assert transaction.parts == {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3) | st.none()), unique=True), st.booleans())
def test_range_scans_of_a_composite_index_follow_its_order(pairs, descending) -> None:
    database = Server().create_database("d")
    columns = [Column("a", INT, nullable=False), Column("b", INT)]
    table = committed(database, lambda t: database.create_table(t, "dbo", "p", columns))
    index = Index("I", 0, (("a", False), ("b", descending)))
    committed(database, lambda t: index_changes.add_index(table, t, index))
    committed(database, lambda t: table.insert_many(t, pairs))

    def play(transaction: Transaction) -> None:
        view = open_view(transaction, database)
        found = [
            row for part in table.scan(view, index=index, low=(-1,), high=(2,), high_inclusive=False) for row in part
        ]
        sign = -1 if descending else 1
        model = [pair for pair in pairs if -1 <= pair[0] < 2]
        assert found == sorted(model, key=lambda p: (p[0], sign * (-99 if p[1] is None else p[1])))
        for pair in pairs:
            assert [row for _, row in table.seek(view, index, pair)] == [pair]

    committed(database, play)
