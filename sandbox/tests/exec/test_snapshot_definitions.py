"""Row versions and changed definitions: what a snapshot may still read [doc: error 3961]."""

from __future__ import annotations

from collections.abc import Callable

from tests.exec.conftest import Client

CHANGE = "ALTER TABLE t ADD c int NULL"


def _begun(connect: Callable[[], Client], options: str) -> Client:
    client = connect()
    client(f"ALTER DATABASE db SET {options}; CREATE TABLE t (a int); INSERT t VALUES (1)")
    return client


def test_under_read_committed_snapshot_a_transaction_reads_what_it_has_just_defined(
    connect: Callable[[], Client],
) -> None:
    client = _begun(connect, "READ_COMMITTED_SNAPSHOT ON")
    assert client("BEGIN TRANSACTION; CREATE TABLE u (a int); INSERT u VALUES (2); SELECT a FROM u").rows == [(2,)]
    assert client(f"{CHANGE}; SELECT COUNT(*) FROM t; COMMIT").rows == [(1,)]


def test_under_read_committed_snapshot_a_statement_after_anothers_change_reads_the_new_definition(
    connect: Callable[[], Client],
) -> None:
    client, other = _begun(connect, "READ_COMMITTED_SNAPSHOT ON"), connect()
    client("BEGIN TRANSACTION; SELECT a FROM t")
    other(CHANGE)
    assert client("SELECT a, c FROM t").rows == [(1, None)]


def test_a_snapshot_transaction_cannot_read_what_another_has_defined_anew_since(
    connect: Callable[[], Client],
) -> None:
    client, other = _begun(connect, "ALLOW_SNAPSHOT_ISOLATION ON"), connect()
    client("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION; SELECT a FROM t")
    other(CHANGE)
    assert client("SELECT a FROM t").errors == [3961]


def test_a_snapshot_transaction_reads_a_table_that_it_has_created(connect: Callable[[], Client]) -> None:
    client = _begun(connect, "ALLOW_SNAPSHOT_ISOLATION ON")
    client("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION; SELECT a FROM t")
    assert client("CREATE TABLE u (a int); INSERT u VALUES (2); SELECT a FROM u").rows == [(2,)]
