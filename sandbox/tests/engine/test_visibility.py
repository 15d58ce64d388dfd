"""Row versions: random interleavings of transactions against a model that copies whole tables."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.errors import SqlError
from tests.engine.conftest import committed, make_table, now, rows_of

STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["insert", "update", "rekey", "delete", "read", "save", "back", "commit", "rollback"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=60,
)


class Player:
    """A session with a transaction at a time, and what the model says it should see."""

    def __init__(self, table: Table, isolation: Isolation) -> None:
        self.table, self.isolation = table, isolation
        self.transaction: Transaction | None = None
        self.seen: dict[int, tuple] = {}
        self.saved: dict[int, tuple] | None = None

    def begin(self, state: dict[int, tuple]) -> Transaction:
        if self.transaction is None:
            self.transaction = self.table.database.server.transactions.begin(isolation=self.isolation)
            self.transaction.snapshot()
            self.seen, self.saved = dict(state), None
        return self.transaction

    def change(self, step: str, key: int, other: int, state: dict[int, tuple]) -> None:
        """A change through the primary key; nothing happens where the key is absent, taken or locked."""
        transaction = self.begin(state)
        before = dict(self.seen)
        transaction.begin_statement()
        try:
            self.apply(step, key, other, transaction)
        except (MustWait, SqlError):
            transaction.undo_statement()
            self.seen = before
        else:
            transaction.end_statement()

    def apply(self, step: str, key: int, other: int, transaction: Transaction) -> None:
        view = open_view(transaction, self.table.database, for_update=True)
        index = self.table.primary_key
        assert index is not None
        if step == "insert":
            row = (key, f"c{key}", str(other))
            self.table.insert(transaction, row)
            assert key not in self.seen or transaction.isolation is not Isolation.SNAPSHOT
            self.seen[key] = row
            return
        found = self.table.seek(view, index, (key,))
        assert [row for _, row in found] == ([self.seen[key]] if key in self.seen else [])
        for rowid, row in found:
            if step == "delete":
                self.table.delete(transaction, [rowid])
                del self.seen[key]
            else:
                new = (other, f"c{other}", row[2]) if step == "rekey" else (key, row[1], f"n{other}")
                self.table.update(transaction, [(rowid, new)])
                del self.seen[key]
                self.seen[new[0]] = new

    def end(self, step: str, state: dict[int, tuple], base: dict[int, tuple]) -> None:
        if self.transaction is None:
            return
        if step == "commit":
            self.transaction.commit()
            for key in base.keys() | self.seen.keys():
                if base.get(key) != self.seen.get(key):
                    state.pop(key, None)
                    if key in self.seen:
                        state[key] = self.seen[key]
        else:
            self.transaction.rollback()
        self.transaction = None


@settings(max_examples=150, deadline=None)
@example([(0, "insert", 1, 0), (0, "save", 0, 0), (1, "insert", 1, 0), (0, "back", 0, 0), (1, "insert", 1, 0)])
@given(STEPS)
def test_snapshot_transactions_see_their_own_changes_on_top_of_a_fixed_state(steps) -> None:
    database = Server().create_database("d")
    database.options.allow_snapshot_isolation = True
    table = make_table(database)
    players = [Player(table, Isolation.SNAPSHOT) for _ in range(3)]
    bases: list[dict[int, tuple]] = [{}, {}, {}]
    state: dict[int, tuple] = {}
    for who, step, key, other in steps:
        player = players[who]
        if player.transaction is None:
            bases[who] = dict(state)
        if step in {"commit", "rollback"}:
            player.end(step, state, bases[who])
        elif step == "read":
            assert rows_of(table, player.begin(state)) == [player.seen[k] for k in sorted(player.seen)]
        elif step == "save":
            player.begin(state).save("s")
            player.saved = dict(player.seen)
        elif step == "back" and player.transaction is not None and player.saved is not None:
            player.transaction.rollback_to("s")
            player.seen = dict(player.saved)
        elif step in {"insert", "update", "rekey", "delete"}:
            player.change(step, key, other, state)
    for player in players:
        player.end("rollback", state, {})
    assert now(table) == [state[key] for key in sorted(state)]
    assert table.versions == 0
    assert {len(index.entries) for index in table.indexes} == {len(state)}


def test_a_statement_snapshot_keeps_what_was_committed_when_it_began(database, table) -> None:
    database.options.read_committed_snapshot = True
    committed(database, lambda t: table.insert_many(t, [(n, f"c{n}", "old") for n in range(5000)]))
    reader = database.server.transactions.begin()
    reader.begin_statement()
    scan = table.scan(open_view(reader, database))
    seen = list(next(scan))
    committed(database, lambda t: table.update(t, [(4000, (4000, "c4000", "new"))]))
    committed(database, lambda t: table.delete(t, [4001]))
    committed(database, lambda t: table.insert(t, (9999, "late", "new")))
    seen += [row for part in scan for row in part]
    reader.end_statement()
    assert seen == [(n, f"c{n}", "old") for n in range(5000)]
    reader.commit()
    assert [row for row in now(table) if row[2] == "new"] == [(4000, "c4000", "new"), (9999, "late", "new")]
    assert table.versions == 0


def test_read_committed_waits_for_a_writer_and_dirty_reads_do_not(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", "old")))
    writer = database.server.transactions.begin(spid=51)
    writer.begin_statement()
    table.update(writer, [(0, (1, "a", "new"))])
    writer.end_statement()
    reader = database.server.transactions.begin(spid=52)
    assert rows_of(table, reader, frozenset({"nolock"})) == [(1, "a", "new")]
    assert rows_of(table, reader, frozenset({"readpast"})) == []
    with pytest.raises(MustWait) as waiting:
        rows_of(table, reader)
    writer.commit()
    assert waiting.value.request.settled
    reader.undo_statement()
    assert rows_of(table, reader) == [(1, "a", "new")]


def test_a_scan_that_had_to_wait_goes_on_where_it_stood(database, table) -> None:
    committed(database, lambda t: table.insert_many(t, [(n, f"c{n}", "x") for n in range(3000)]))
    writer, reader = database.server.transactions.begin(), database.server.transactions.begin()
    writer.begin_statement()
    table.delete(writer, [2500])
    reader.begin_statement()
    scan = table.scan(open_view(reader, database))
    seen: list[tuple] = []
    with pytest.raises(MustWait):
        seen.extend(row for part in scan for row in part)
    assert 0 < len(seen) < 2500
    writer.commit()
    seen += [row for part in scan for row in part]
    assert [row[0] for row in seen] == [n for n in range(3000) if n != 2500]


def test_snapshot_isolation_must_be_allowed(database, table) -> None:
    reader = database.server.transactions.begin(isolation=Isolation.SNAPSHOT)
    with pytest.raises(SqlError, match="snapshot isolation is not allowed in this database") as raised:
        rows_of(table, reader)
    assert raised.value.number == 3952


def test_a_snapshot_transaction_may_not_change_what_changed_since(database, table) -> None:
    database.options.allow_snapshot_isolation = True
    committed(database, lambda t: table.insert(t, (1, "a", "old")))
    late = database.server.transactions.begin(isolation=Isolation.SNAPSHOT)
    assert rows_of(table, late) == [(1, "a", "old")]
    committed(database, lambda t: table.update(t, [(0, (1, "a", "new"))]))
    late.begin_statement()
    with pytest.raises(SqlError) as raised:
        table.update(late, [(0, (1, "a", "mine"))])
    assert raised.value.number == 3960
    assert "access table 'dbo.t'" in raised.value.message
    late.rollback()


def test_a_snapshot_older_than_a_schema_change_is_refused(database, table) -> None:
    from mssql_sandbox.engine.storage import alter

    database.options.allow_snapshot_isolation = True
    late = database.server.transactions.begin(isolation=Isolation.SNAPSHOT)
    late.snapshot()
    committed(database, lambda t: alter.drop_column(table, t, "note"))
    with pytest.raises(SqlError) as raised:
        rows_of(table, late)
    assert raised.value.number == 3961
