"""Names of constraints that were given none, as the server makes them up.

Evidence: names in schemas that people have published, for instance the membership tables of ASP.NET and the sample
database pubs; the column names and the digits of every case below were read there.
"""

from __future__ import annotations

import pytest

from mssql_sandbox.exec.tables.constraint_names import columns_hash, key_name, rule_name


@pytest.mark.parametrize(
    ("columns", "digits"),
    [
        (("id",), "3213E83F"),
        (("Id",), "3214EC07"),
        (("ID",), "3214EC27"),
        (("pk",), "321403CF"),
        (("name",), "72E12F1A"),
        (("UserId",), "1788CC4C"),
        (("UserId", "RoleId"), "AF2760AD"),
        (("UserId", "LoginProvider", "Name"), "8CC49841"),
        (("USERID", "LOGINPROVIDER", "NAME"), "B542FEFE"),
    ],
)
def test_primary_key_is_named_after_its_columns(columns: tuple[str, ...], digits: str) -> None:
    assert key_name("PK", "TrainersCoursesLink", columns)[:20] == f"PK__Trainers__{digits[:6]}"
    assert f"{columns_hash(columns) ^ 1:08X}" == digits


@pytest.mark.parametrize(("column", "digits"), [("email", "AB6E6164"), ("username", "F3DBC572"), ("name", "72E12F1B")])
def test_unique_constraint_is_named_after_its_columns(column: str, digits: str) -> None:
    name = key_name("UQ", "users", [column])
    assert name.startswith(f"UQ__users__{digits}")
    assert len(name) == len("UQ__users__AB6E616495701B88")


@pytest.mark.parametrize(
    ("kind", "table", "column", "name"),
    [
        ("DF", "publishers", "country", "DF__publisher__count__7D78A4E7"),
        ("DF", "employee", "job_id", "DF__employee__job_id__7D78A4E7"),
        ("FK", "titleauthor", "au_id", "FK__titleauth__au_id__7D78A4E7"),
        ("FK", "Trainers", "location", "FK__Trainers__locati__7D78A4E7"),
        ("CK", "T1", "", "CK__T1__7D78A4E7"),
    ],
)
def test_other_constraints_are_named_after_table_column_and_object(kind, table: str, column: str, name: str) -> None:
    assert rule_name(kind, table, column, 0x7D78A4E7) == name
