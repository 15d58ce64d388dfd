"""How large captured values may be, and what change rows show of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cdc.client import World

TABLE = (
    "CREATE TABLE dbo.t (id int PRIMARY KEY, a int, u nvarchar(max), v varchar(max), b varbinary(max), "
    "free nvarchar(max))"
)
LIMIT = 65536
FITS, TOO_LONG = "fits", "too long"


@pytest.fixture
def limited(world: World) -> Iterator[World]:
    """A tracked table all of whose columns but the last are captured, on a server with the default limit."""
    world.execute(f"EXEC sp_configure 'max text repl size (B)', {LIMIT}; RECONFIGURE")
    world.execute(TABLE)
    world.enable("t", captured_column_list="N'id, a, u, v, b'")
    yield world
    world.execute(f"EXEC sp_configure 'max text repl size (B)', {LIMIT}; RECONFIGURE")


def repeated(kind: str, count: int) -> str:
    literal = {"nvarchar": "N'x'", "varchar": "'x'", "varbinary": "0x01"}[kind]
    return f"CAST(REPLICATE(CAST({literal} AS {kind}(max)), {count}) AS {kind}(max))"


SIZES = {
    "[pub] characters of nvarchar count twice": ("u", "nvarchar", LIMIT // 2, FITS),
    "[pub] one more is too long": ("u", "nvarchar", LIMIT // 2 + 1, TOO_LONG),
    "[doc] varchar counts bytes": ("v", "varchar", LIMIT, FITS),
    "[pub] varchar too long": ("v", "varchar", LIMIT + 1, TOO_LONG),
    "[doc] what is not captured is free": ("free", "nvarchar", LIMIT, FITS),
}


@pytest.mark.parametrize(("column", "kind", "count", "outcome"), SIZES.values(), ids=SIZES)
def test_a_captured_value_beyond_the_limit_fails_when_it_is_written(
    limited: World, column: str, kind: str, count: int, outcome: str
) -> None:
    """The text names bytes, of an UPDATE as well as of an INSERT."""
    length = count * (2 if kind == "nvarchar" else 1)
    limited.execute("INSERT t (id) VALUES (0)")
    for statement in (
        f"INSERT t (id, {column}) VALUES (1, {repeated(kind, count)})",
        f"UPDATE t SET {column} = {repeated(kind, count)} WHERE id = 0",
    ):
        if outcome == FITS:
            limited.execute(statement)
            continue
        failure = limited.error(statement)
        start = f"Length of LOB data ({length}) to be replicated exceeds configured maximum {LIMIT}."
        assert (failure.number, failure.text[: len(start)]) == (7139, start)


def test_minus_one_lifts_the_limit_at_once(limited: World) -> None:
    """[doc] -1 means no limit but the type's own."""
    limited.execute("EXEC sp_configure 'max text repl size (B)', -1; RECONFIGURE")
    limited.execute(f"INSERT t (id, u) VALUES (1, {repeated('nvarchar', LIMIT)})")
    limited.capture()
    assert limited.changes("dbo_t", "DATALENGTH(u)") == [(2 * LIMIT,)]


@pytest.mark.parametrize("name", ["max text repl size (B)", "max text repl size", "MAX TEXT"])
def test_the_option_may_be_cut_short_while_it_is_unique(world: World, name: str) -> None:
    """[doc] sp_configure matches the beginning of a name."""
    world.execute(f"EXEC sp_configure '{name}', {LIMIT}")
    assert world.error("EXEC sp_configure 'no such option', 1").number == 15123


def test_tables_which_are_not_tracked_know_no_limit(world: World) -> None:
    """[doc] the option concerns replicated and captured columns only."""
    world.execute(TABLE)
    world.execute(f"INSERT t (id, u) VALUES (1, {repeated('nvarchar', LIMIT)})")
    assert world.value("SELECT DATALENGTH(u) FROM t") == 2 * LIMIT


@pytest.mark.parametrize("kind", ["ntext", "image", "text"])
def test_old_large_types_have_no_before_image(world: World, kind: str) -> None:
    """[doc] NULL in operations 1 and 3, whether the update concerns them or not; the mask tells."""
    old, new = ("0x01", "0x02") if kind == "image" else ("'a'", "'b'")
    world.execute(f"CREATE TABLE dbo.t (id int PRIMARY KEY, a int, x {kind})")
    world.enable("t")
    for statement in (f"INSERT t VALUES (1, 1, {old})", f"UPDATE t SET x = {new}", "DELETE t"):
        world.execute(statement)
    world.capture()
    rows = world.changes("dbo_t", "__$operation, __$update_mask, CASE WHEN x IS NULL THEN 0 ELSE 1 END")
    assert [(row[0], row[1].hex(), row[2]) for row in rows] == [
        (2, "07", 1),
        (3, "04", 0),
        (4, "04", 1),
        (1, "07", 0),
    ]


def test_both_halves_of_a_deferred_update_have_max_values(world: World) -> None:
    """[doc] operation 1 carries max values, also as half of a key update."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, note nvarchar(max), old ntext)")
    world.enable("t")
    world.execute("INSERT t VALUES (1, N'long', N'legacy')")
    world.execute("UPDATE t SET id = 2")
    world.capture()
    assert world.changes("dbo_t", "__$operation, id, note, CAST(old AS nvarchar(max))") == [
        (2, 1, "long", "legacy"),
        (1, 1, "long", None),
        (2, 2, "long", "legacy"),
    ]
