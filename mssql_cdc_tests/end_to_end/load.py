"""A workload whose changes are known: two tables, transactions over both, each row once inserted, some updated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
def load(place: Place, *, first: int = 0) -> Iterator[None]:
    """Write transactions until the block ends; ids begin at `first`, which is even."""
    stop = Event()

    def write() -> None:
        with control(load_connector(place.config).connection, place.database) as connection:
            number = first
            while not stop.is_set():
                rows = [f"INSERT INTO dbo.{TABLES[(number + i) % 2]} VALUES ({number + i}, 1)" for i in range(5)]
                more = f"UPDATE dbo.a SET n = n + 1 WHERE id = {number}"
                connection.execute(f"BEGIN TRAN; {'; '.join(rows)}; {more}; COMMIT", doing="playing the application")
                number += 6
                time.sleep(0.05)

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def changes_of(place: Place) -> list[Change]:
    """The changes of both tables in the order of the change tables."""
    query = " UNION ALL ".join(
        f"SELECT '{name}' t, __$start_lsn s, __$command_id c, __$seqval q, __$operation o, id, n "
        f"FROM cdc.dbo_{name}_CT WHERE __$operation IN (2, 4)"
        for name in TABLES
    )
    rows = place.control.rows(f"SELECT t, o, id, n FROM ({query}) x ORDER BY s, c, q, o", doing="reading changes")
    return [(str(table), "c" if operation == 2 else "u", int(id_), int(n)) for table, operation, id_, n in rows]


def change_of(payload: Mapping[str, Any]) -> Change:
    """A record's change."""
    return payload["source"]["table"], payload["op"], payload["after"]["id"], payload["after"]["n"]
