"""ODBC's escapes, which mssql-jdbc and Microsoft's ODBC driver hand on to the server."""

import pytest

from tests.exec.conftest import Client


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{fn UCASE('ab')}", "AB"),
        ("{fn lcase(N'AB')}", "ab"),
        ("{fn LENGTH('abc  ')}", 3),
        ("{fn IFNULL(NULL, 5)}", 5),
        ("{fn LOCATE('c', 'abc')}", 3),
        ("{fn INSERT('abcd', 2, 2, 'x')}", "axd"),
        ("{fn MOD(7, 4)}", 3),
        ("{fn TRUNCATE(12.789, 1)}", 12.7),
        ("{fn CONVERT('12', SQL_INTEGER)}", 12),
        ("{fn DAYOFWEEK({d '2024-02-29'})}", 5),
        ("{fn MONTHNAME({d '2024-02-29'})}", "February"),
        ("{fn TIMESTAMPDIFF(SQL_TSI_DAY, {d '2024-02-28'}, {d '2024-03-01'})}", 2),
        ("{fn BIT_LENGTH('ab')}", 16),
        ("{fn CONCAT({fn RTRIM('a ')}, 'b')}", "ab"),
        ("{fn CAST('3' AS int)}", 3),
        ("LEN({fn CURDATE()})", 10),
    ],
)
def test_escaped_functions_have_odbcs_names(sql: Client, text: str, value: object) -> None:
    ((found,),) = sql(f"SELECT {text}").rows
    assert found == value if isinstance(value, str) else float(found) == value


@pytest.mark.parametrize(
    "text", ["{fn MOD(1)}", "{fn CONVERT(1, SQL_NOTHING)}", "{fn TIMESTAMPADD(day, 1, 2)}", "{fn}"]
)
def test_wrong_arguments_are_a_syntax_error(sql: Client, text: str) -> None:
    assert sql(f"SELECT {text}").errors[0] in (102, 156)
