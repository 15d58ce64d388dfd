"""Workloads that run beside a test.

`writing` executes any statements over and over. `Churn` inserts, updates and deletes rows of two tables, changes their
keys, and keeps the tables small. Their changes are known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from mssql_cdc.config import load_connector
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.kit import Place

TABLES = ("a", "b")
Change = tuple[str, str, int, int]
"""The table, the operation, the id and the number of the row afterwards."""


def create(place: Place) -> None:
    """Create and capture the tables."""
    for name in TABLES:
        place.create(name, "id int NOT NULL PRIMARY KEY, n int NOT NULL")
    place.settle()


@contextmanager
def writing(
    place: Place, statements: Callable[[int], Sequence[str]], *, pause: float = 0.02, at_least: int = 1
) -> Iterator[None]:
    """Execute statements over a connection of their own until the block ends; an error of theirs fails the test.

    Args:
        place: Where they are executed.
        statements: Those of a round, by the number of the round.
        pause: Seconds between two rounds.
        at_least: Rounds that there have to be while the block lasts.
    """
    stop = Event()
    rounds = 0
    errors: list[Exception] = []

    def write() -> None:
        nonlocal rounds
        try:
            with control(load_connector(place.config).connection, place.database) as connection:
                while not stop.wait(pause):
                    for statement in statements(rounds):
                        connection.execute(statement, doing="playing the application")
                    rounds += 1
        except Exception as error:  # noqa: BLE001 (shown where the block ends)
            errors.append(error)

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
    assert not errors, errors
    assert rounds >= at_least, f"{rounds} rounds were written"


@dataclass
class Churn:
    """Random transactions over both tables, whose ids stay below `ids`.

    Attributes:
        place: Where the tables are.
        chance: Draws the statements.
        ids: The number of ids.
    """

    place: Place
    chance: random.Random
    ids: int = 300
    _present: dict[str, set[int]] = field(default_factory=lambda: {name: set[int]() for name in TABLES})
    _number: int = 0

    def fill(self) -> None:
        """Insert two of three ids into both tables."""
        for name, present in self._present.items():
            present.update(id_ for id_ in range(self.ids) if id_ % 3)
            self.place.sql(f"INSERT INTO dbo.{name} VALUES {', '.join(f'({id_}, 0)' for id_ in sorted(present))}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write until the block ends; nothing else may write to the tables."""
        with writing(self.place, self._transaction, pause=0.03):
            yield

    def _transaction(self, _: int) -> list[str]:
        statements = [self._statement() for _ in range(self.chance.randint(1, 4))]
        return [f"BEGIN TRAN; {'; '.join(statements)}; COMMIT"]

    def _statement(self) -> str:
        name = self.chance.choice(TABLES)
        present, id_ = self._present[name], self.chance.randrange(self.ids)
        self._number += 1
        if id_ not in present:
            present.add(id_)
            return f"INSERT INTO dbo.{name} (id, n) VALUES ({id_}, {self._number})"
        other = self.chance.randrange(self.ids)
        kind = self.chance.choice(["update", "update", "delete", "key"])
        if kind == "key" and other not in present:
            present.remove(id_)
            present.add(other)
            return f"UPDATE dbo.{name} SET id = {other}, n = {self._number} WHERE id = {id_}"
        if kind == "delete":
            present.remove(id_)
            return f"DELETE FROM dbo.{name} WHERE id = {id_}"
        return f"UPDATE dbo.{name} SET n = {self._number} WHERE id = {id_}"


def table_changes(place: Place, name: str, behind: str) -> list[tuple[str, int, int]]:
    """Operation, id and number of a table's changes in their order; a changed key is a deletion and an insertion.

    Args:
        place: Where the table is.
        name: The table.
        behind: The commit LSN behind which they are, as 20 hexadecimal digits.
    """
    rows = place.control.rows(
        f"SELECT __$operation, id, n FROM cdc.dbo_{name}_CT WHERE __$start_lsn > 0x{behind} "
        "ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation",
        doing="reading changes",
    )
    found: list[tuple[str, int, int]] = []
    before = (0, 0)
    for operation, id_, n in ((int(one), int(two), int(three)) for one, two, three in rows):
        if operation == 3:
            before = id_, n
        elif operation == 4 and before[0] != id_:
            found += [("d", *before), ("c", id_, n)]
        else:
            found.append(({1: "d", 2: "c", 4: "u"}[operation], id_, n))
    return found


def every_change(place: Place) -> list[Change]:
    """The changes of both tables in the order of the change tables; a changed key is a deletion and an insertion."""
    query = " UNION ALL ".join(
        f"SELECT '{name}' t, __$start_lsn s, __$command_id c, __$seqval q, __$operation o, id, n FROM cdc.dbo_{name}_CT"
        for name in TABLES
    )
    rows = place.control.rows(f"SELECT t, o, id, n FROM ({query}) x ORDER BY s, c, q, o", doing="reading changes")
    found: list[Change] = []
    before = ("", 0, 0)
    for table, operation, id_, n in ((str(t), int(o), int(i), int(n)) for t, o, i, n in rows):
        if operation == 3:
            before = table, id_, n
        elif operation == 4 and before[1] != id_:
            found += [(table, "d", *before[1:]), (table, "c", id_, n)]
        else:
            found.append((table, {1: "d", 2: "c", 4: "u"}[operation], id_, n))
    return found


def change_of(payload: Mapping[str, Any]) -> Change:
    """A record's change; a deletion has the row as it was."""
    row = payload["before" if payload["op"] == "d" else "after"]
    return payload["source"]["table"], payload["op"], row["id"], row["n"]
