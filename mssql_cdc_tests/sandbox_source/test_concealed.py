"""Masked columns and filtered rows: found in the catalog, and met in the transaction of each read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc.errors import AccessDeniedError
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.catalog import captured_tables
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.concealed import WholeRows, sees_policies
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.values import Concealment
from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop, rows, server_values

READER = ("SELECT ON SCHEMA::dbo", "SELECT ON SCHEMA::cdc", "VIEW DATABASE STATE", "VIEW DEFINITION")
BY_FUNCTION = (
    "SELECT ON SCHEMA::dbo",
    *(f"SELECT ON cdc.{name}" for name in ("change_tables", "captured_columns", "ddl_history", "lsn_time_mapping")),
    *(f"SELECT ON cdc.fn_cdc_get_all_changes_dbo_{name}" for name in ("t", "first_table")),
    "VIEW DATABASE STATE",
)
"""The least rights: change tables are read through their functions, and their columns are not shown."""
MASKED = Concealment(masked=("a''b]c",))


def concealed(shop: Shop, name: str = "t") -> Concealment:
    """What the login of a shop has concealed from it."""
    with control(shop.connection, shop.catalog) as opened:
        (found,) = (table for table in captured_tables(opened) if table.table_id.name == name)
    return found.concealed


def create(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, [a''b]]c] int MASKED WITH (FUNCTION = 'default()'), n int NULL")
    shop.run("INSERT dbo.t VALUES (1, 42, 7)")
    shop.scan()


def test_masked_columns_are_those_that_the_login_may_not_unmask(shop: Shop) -> None:
    create(shop)
    reader = shop.seen_by("reader", *READER)
    assert concealed(shop) == Concealment()
    assert concealed(reader) == MASKED
    shop.run(f"GRANT UNMASK ON dbo.t TO [{shop.catalog}_reader]")
    assert concealed(reader) == MASKED, "CDC has given the change table's column the mask"
    shop.run(f"GRANT UNMASK ON SCHEMA::cdc TO [{shop.catalog}_reader]")
    assert concealed(reader) == Concealment()
    shop.run(f"DENY UNMASK ON dbo.t ([a''b]]c]) TO [{shop.catalog}_reader]")
    assert concealed(reader) == MASKED


def test_a_mask_that_only_the_change_table_has_counts(shop: Shop) -> None:
    create(shop)
    reader = shop.seen_by("reader", *READER)
    shop.run("ALTER TABLE dbo.t ALTER COLUMN [a''b]]c] DROP MASKED")
    assert concealed(reader) == MASKED
    shop.run("ALTER TABLE cdc.dbo_t_CT ALTER COLUMN [a''b]]c] DROP MASKED")
    assert concealed(reader) == Concealment()


@pytest.mark.parametrize("grant", ["UNMASK", "UNMASK ON SCHEMA::cdc"])
def test_a_mask_of_a_change_table_that_the_login_does_not_see_counts(shop: Shop, grant: str) -> None:
    """Its columns are not shown; that it has masks, CDC has noted."""
    create(shop)
    reader = shop.seen_by("reader", *BY_FUNCTION, "UNMASK ON dbo.t")
    assert concealed(reader) == MASKED
    shop.run(f"GRANT {grant} TO [{shop.catalog}_reader]")
    assert concealed(reader) == Concealment()


@pytest.fixture(scope="module")
def server_2019(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    with sandbox_process(tmp_path_factory.mktemp("old"), "--server-version", "2019") as process:
        yield server_values(process)


def test_before_2022_the_permission_on_the_database_counts(server_2019: dict[str, object]) -> None:
    with open_shop(server_2019) as shop:
        create(shop)
        reader = shop.seen_by("reader", *READER)
        assert concealed(reader) == MASKED
        shop.run(f"GRANT UNMASK TO [{shop.catalog}_reader]")
        assert concealed(reader) == Concealment()


def test_a_chunk_is_not_read_through_a_mask(shop: Shop) -> None:
    """The right may be taken away after the catalog was read."""
    create(shop)
    reader = shop.seen_by("reader", *READER)
    with pytest.raises(
        AccessDeniedError, match=r"masks in the place of values \(a''b\]c.*GRANT UNMASK ON \[dbo\]\.\[t\]"
    ):
        rows(reader.chunk("t"))
    assert [row["after"]["n"] for row in rows(reader.chunk("t", hidden=frozenset({"a''b]c"})))] == [7]
    shop.run(f"GRANT UNMASK TO [{shop.catalog}_reader]")
    assert [row["after"]["a''b]c"] for row in rows(reader.chunk("t"))] == [42]


def test_a_mask_that_is_put_on_while_a_chunk_is_read_fails_it(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, n int NULL")
    shop.run("INSERT dbo.t SELECT value, value FROM GENERATE_SERIES(1, 5)")
    shop.scan()
    batches = shop.seen_by("reader", *READER).chunk("t", fetch_rows=2).read()
    next(batches)
    shop.run("ALTER TABLE dbo.t ALTER COLUMN n ADD MASKED WITH (FUNCTION = 'default()')")
    with pytest.raises(AccessDeniedError, match="masks in the place of values"):
        list(batches)


MODES = {"direct": READER, "by choice": READER, "for lack of rights": BY_FUNCTION}


def change_readers(shop: Shop, mode: str, *names: str) -> list[ChangeReader]:
    """Readers as they are planned while the login may unmask everything."""
    reader = shop.seen_by("reader", *MODES[mode], "UNMASK")
    with control(reader.connection, shop.catalog) as opened:
        tables = {table.table_id.name: table for table in captured_tables(opened)}
    assert all(table.concealed == Concealment() for table in tables.values())
    instances = [tables[name].newest for name in names]
    if mode == "by choice":
        instances = [replace(one, change_table=None) for one in instances]
    assert all((one.change_table is None) is (mode != "direct") for one in instances)
    return [reader.changes(name, instance=one) for name, one in zip(names, instances, strict=True)]


@pytest.mark.parametrize("mode", MODES)
def test_changes_are_not_read_through_a_mask(shop: Shop, mode: str) -> None:
    create(shop)
    (changes,) = change_readers(shop, mode, "t")
    assert [row["after"]["a''b]c"] for row in rows(changes)] == [42]
    shop.run(f"REVOKE UNMASK FROM [{shop.catalog}_reader]", f"GRANT UNMASK ON dbo.t TO [{shop.catalog}_reader]")
    with pytest.raises(AccessDeniedError, match=r"masks in the place of values \(a''b\]c.*GRANT UNMASK ON SCHEMA::cdc"):
        rows(changes)


@pytest.mark.parametrize("mode", MODES)
def test_a_right_that_goes_while_changes_are_read_fails_the_reader(shop: Shop, mode: str) -> None:
    create(shop)
    shop.run("INSERT dbo.t VALUES (2, 43, 7), (3, 44, 7)")
    (changes,) = change_readers(shop, mode, "t")
    batches = replace(changes, page_rows=1).read()
    next(batches)
    shop.run(f"REVOKE UNMASK FROM [{shop.catalog}_reader]")
    with pytest.raises(AccessDeniedError, match="masks in the place of values"):
        list(batches)


@pytest.mark.parametrize("mode", MODES)
def test_a_shared_read_names_the_table_that_it_read_through_masks(shop: Shop, mode: str) -> None:
    create(shop)
    shop.run("INSERT dbo.first_table VALUES (1)")
    readers = change_readers(shop, mode, "first_table", "t")
    with shop.source().share(readers) as shared:
        assert [len(list(shared.read(one))) for one in readers] == [1, 1]
        assert not shared.spoiled()
    shop.run(f"REVOKE UNMASK FROM [{shop.catalog}_reader]")
    with shop.source().share(readers) as shared:
        for one in readers:
            list(shared.read(one))
        assert {number: type(error) for number, error in shared.spoiled().items()} == {1: AccessDeniedError}


def test_masks_of_columns_that_nothing_uses_do_not_spoil_changes(shop: Shop) -> None:
    create(shop)
    changes = shop.seen_by("reader", *READER).changes("t")
    schema = changes.instance.schema
    columns = tuple(replace(one, excluded=one.name == "a''b]c") for one in schema.columns)
    left = replace(changes, instance=replace(changes.instance, schema=replace(schema, columns=columns)))
    assert [row["after"]["n"] for row in rows(left)] == [7]


FUNCTION = "CREATE FUNCTION dbo.sees (@n int) RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS ok WHERE @n = 1"


def test_filter_predicates_of_enabled_policies_are_found(shop: Shop) -> None:
    create(shop)
    shop.run(FUNCTION, "CREATE SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.sees(n) ON dbo.t WITH (STATE = OFF)")
    assert concealed(shop) == Concealment()
    shop.run("ALTER SECURITY POLICY dbo.p WITH (STATE = ON)")
    assert concealed(shop) == Concealment(policies=("dbo.p",))
    assert concealed(shop, "first_table") == Concealment()


def test_a_chunk_of_a_filtered_table_is_read_only_on_trust(shop: Shop) -> None:
    create(shop)
    shop.run(FUNCTION, "CREATE SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.sees(n) ON dbo.t")
    with pytest.raises(AccessDeniedError, match=r"row-level security \(dbo\.p\).*snapshot\.row\.level\.security=trust"):
        rows(shop.chunk("t"))
    assert rows(shop.chunk("t", trusts_policies=True)) == []
    assert [row["after"]["n"] for row in rows(shop.changes("t"))] == [7], "change tables are not filtered"


@pytest.mark.parametrize(
    ("rights", "seen"), [(READER[:3], False), (READER, True), ((*READER[:3], "ALTER ANY SECURITY POLICY"), True)]
)
def test_only_some_logins_see_policies(shop: Shop, rights: tuple[str, ...], *, seen: bool) -> None:
    create(shop)
    shop.run(FUNCTION, "CREATE SECURITY POLICY dbo.p ADD FILTER PREDICATE dbo.sees(n) ON dbo.t")
    reader = shop.seen_by("reader", *rights)
    assert bool(concealed(reader).policies) is seen
    with control(reader.connection, shop.catalog) as opened:
        assert sees_policies(opened) is seen


def test_masks_come_before_policies_and_only_columns_that_are_read_count() -> None:
    whole = WholeRows(TableId("shop", "dbo", "t"), frozenset({"id", "n"}), trusted=False)
    assert whole.problem(Concealment()) is None
    assert whole.problem(Concealment(masked=("other",))) is None
    assert "(n: dynamic" in str(whole.problem(Concealment(masked=("n", "other"), policies=("dbo.p",))))
    assert "(dbo.p)" in str(whole.problem(Concealment(masked=("other",), policies=("dbo.p",))))
