"""BULK INSERT: files on the server's side.

Evidence: Microsoft's page on BULK INSERT, and the published AdventureWorks scripts, which load their
files this way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mssql_sandbox.engine.events import Message
from mssql_sandbox.exec.session import Session
from tests.exec.conftest import Client

TABLE = """
CREATE TABLE dbo.b (
    id int IDENTITY(10, 10) NOT NULL CONSTRAINT pk_b PRIMARY KEY, name nvarchar(5) NULL DEFAULT N'none',
    size int NULL CONSTRAINT ck_b CHECK (size > 0), twice AS (size * 2)
)
"""
READ = "SELECT id, name, size, twice FROM dbo.b ORDER BY id"


@pytest.fixture
def bulk(sql: Client, tmp_path: Path) -> Callable[..., tuple[list[int], list[tuple]]]:
    """Load a file with this content: the errors, and the rows that the table then has."""
    assert sql(TABLE).errors == []

    def run(content: str | bytes, options: str = "", read: str = READ) -> tuple[list[int], list[tuple]]:
        file = tmp_path / "rows.txt"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        answer = sql(f"BULK INSERT dbo.b FROM '{file}' {options and f'WITH ({options})'}")
        return answer.errors, sql(read).rows

    return run


@pytest.mark.parametrize(
    ("content", "options", "rows"),
    [
        pytest.param("1\ta\t2\t\n2\tb\t3\t\n", "", [(10, "a", 2, 4), (20, "b", 3, 6)], id="identity-values-are-new"),
        pytest.param("1\ta\t2\t99\n", "KEEPIDENTITY", [(1, "a", 2, 4)], id="computed-fields-are-passed-over"),
        pytest.param("1\t\t2\t\r\n", "", [(10, "none", 2, 4)], id="an-empty-field-is-the-default"),
        pytest.param("1\t\t\t\n", "KEEPNULLS", [(10, None, None, None)], id="keepnulls"),
        pytest.param("1\ta\nb\t2\t\n", "", [(10, "a\nb", 2, 4)], id="line-ends-inside-fields-end-no-row"),
        pytest.param("1\ta\t2\t", "", [(10, "a", 2, 4)], id="the-last-row-needs-no-end"),
        pytest.param(
            "7+|a+|2+|&|\n",
            r"FIELDTERMINATOR = '+|', ROWTERMINATOR = '&|\n', KEEPIDENTITY",
            [(7, "a", 2, 4)],
            id="terminators-of-several-signs",
        ),
        pytest.param(
            "1|a|2|\r;2|b|3|\r;",
            "FIELDTERMINATOR = '|', ROWTERMINATOR = '0x0d3b', FIRSTROW = 2",
            [(10, "b", 3, 6)],
            id="hexadecimal-terminator-and-firstrow",
        ),
        pytest.param("1\ta\t2\t\n2\tb\t2\t\n", "LASTROW = 1, TABLOCK", [(10, "a", 2, 4)], id="lastrow"),
        pytest.param("1\té\t2\t\n", "CODEPAGE = '65001'", [(10, "é", 2, 4)], id="utf-8"),
        pytest.param("1\té\t2\t\n".encode("cp1252"), "CODEPAGE = 'ACP'", [(10, "é", 2, 4)], id="ansi"),
        pytest.param(
            "\ufeff1\té\t2\t\n".encode("utf-16-le"), "DATAFILETYPE = 'widechar'", [(10, "é", 2, 4)], id="utf-16"
        ),
        pytest.param("1\ta\t-2\t\n", "", [(10, "a", -2, -4)], id="checks-sleep"),
    ],
)
def test_fields_become_columns_in_order(
    bulk: Callable[..., tuple], content: str | bytes, options: str, rows: list[tuple]
) -> None:
    assert bulk(content, options) == ([], rows)


@pytest.mark.parametrize(
    ("content", "options", "errors", "ids"),
    [
        pytest.param("1\ta\tx\t\n2\tb\t3\t\n", "", [4864], [10], id="what-is-no-number"),
        pytest.param("1\tabcdef\t1\t\n2\tb\t3\t\n", "", [4863], [10], id="what-is-too-long"),
        pytest.param("\ta\t1\t\n", "KEEPIDENTITY", [4869], [], id="null-where-none-may-be"),
        pytest.param(b"1\t\xff\t1\t\n2\tb\t3\t\n", "CODEPAGE = '65001'", [4864], [10], id="bytes-that-are-no-text"),
        pytest.param("1\ta\tx\t\n2\tb\t3\t\n", "MAXERRORS = 0", [4864, 4865, 7399, 7330], [], id="too-many-errors"),
        pytest.param("1\ta\t1\t\n2\tb", "", [4832, 7399, 7330], [], id="a-file-cut-short"),
        pytest.param("1\ta\t0\t\n", "CHECK_CONSTRAINTS", [547], [], id="checks-that-are-awake"),
        pytest.param("1\ta\t1\t\n1\tb\t1\t\n", "KEEPIDENTITY", [2627], [], id="a-key-twice"),
        pytest.param("", "CODEPAGE = '99999'", [2775], [], id="an-unknown-code-page"),
        pytest.param("", "DATAFILETYPE = 'native'", [40517], [], id="native-files"),
        pytest.param("", "FORMATFILE = 'x.fmt'", [40517], [], id="format-files"),
        pytest.param("", "FORMAT = 'CSV'", [40517], [], id="quoted-fields"),
        pytest.param("", "ERRORFILE = 'bad.txt'", [40517], [], id="error-files"),
        pytest.param("", "NOTHING = 1", [102], [], id="an-option-that-does-not-exist"),
    ],
)
def test_what_cannot_be_read_is_told_by_row_and_column(
    bulk: Callable[..., tuple], content: str | bytes, options: str, errors: list[int], ids: list[int]
) -> None:
    found, rows = bulk(content, options)
    assert found == errors
    assert [row[0] for row in rows] == ids


def test_a_conversion_error_names_row_and_column(sql: Client, tmp_path: Path) -> None:
    sql(TABLE)
    data = tmp_path / "rows.txt"
    data.write_text("1\ta\t1\t\n2\tb\tmuch\t\n")
    (message,) = [event for event in sql(f"BULK INSERT dbo.b FROM '{data}'").events if isinstance(event, Message)]
    assert message.text == (
        "Bulk load data conversion error (type mismatch or invalid character for the specified codepage) for row 2, "
        "column 3 (size)."
    )


def test_files_that_cannot_be_opened_are_named(sql: Client, tmp_path: Path) -> None:
    sql(TABLE)
    assert sql(f"BULK INSERT dbo.b FROM '{tmp_path / 'nothing'}'").errors == [4860]
    assert sql(f"BULK INSERT dbo.b FROM '{tmp_path}'").errors == [4861], "no regular file"


@pytest.mark.parametrize(("grant", "errors"), [("", [4834]), ("ALTER SERVER ROLE bulkadmin ADD MEMBER kim", [])])
def test_only_bulkadmin_and_sysadmin_read_files_of_the_server(
    sql: Client, tmp_path: Path, grant: str, errors: list[int]
) -> None:
    file = tmp_path / "rows.txt"
    file.write_bytes(b"")
    setup = (
        f"{TABLE}; CREATE LOGIN kim WITH PASSWORD = 'x1$Xyz'; CREATE USER kim; GRANT INSERT ON dbo.b TO kim; {grant}"
    )
    assert sql(setup).errors == []
    kim = Client(Session(sql.session.server, login="kim", database="db"))
    assert kim(f"BULK INSERT dbo.b FROM '{file}'").errors == errors
    kim.session.close()
