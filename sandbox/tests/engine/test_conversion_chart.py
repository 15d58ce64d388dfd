"""The chart of CAST and CONVERT in the documentation: what error 529 forbids of each type; all else is allowed."""

import pytest

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError

FORBIDDEN = {
    "binary varbinary": ("float ntext real text"),
    "char varchar": (""),
    "nchar nvarchar": ("image"),
    "datetime smalldatetime": ("image ntext text uniqueidentifier xml"),
    "date": (
        "bigint bit decimal float image int money ntext numeric real smallint smallmoney text time "
        "rowversion tinyint uniqueidentifier xml"
    ),
    "time": (
        "bigint bit date decimal float image int money ntext numeric real smallint smallmoney text "
        "rowversion tinyint uniqueidentifier xml"
    ),
    "datetimeoffset datetime2": (
        "bigint bit decimal float image int money ntext numeric real smallint smallmoney text rowversion "
        "tinyint uniqueidentifier xml"
    ),
    "decimal numeric bigint int smallint tinyint money smallmoney bit": (
        "date datetime2 datetimeoffset image ntext text time uniqueidentifier xml"
    ),
    "float real": ("date datetime2 datetimeoffset image ntext text time rowversion uniqueidentifier xml"),
    "rowversion": ("date datetime2 datetimeoffset float nchar ntext nvarchar real text time uniqueidentifier xml"),
    "uniqueidentifier": (
        "bigint bit date datetime datetime2 datetimeoffset decimal float image int money ntext numeric "
        "real smalldatetime smallint smallmoney text time rowversion tinyint xml"
    ),
    "image": (
        "bigint bit char date datetime datetime2 datetimeoffset decimal float int money nchar ntext "
        "numeric nvarchar real smalldatetime smallint smallmoney text time tinyint uniqueidentifier "
        "varchar xml"
    ),
    "ntext text": (
        "bigint binary bit date datetime datetime2 datetimeoffset decimal float image int money numeric "
        "real smalldatetime smallint smallmoney time rowversion tinyint uniqueidentifier varbinary"
    ),
    "sql_variant": ("image ntext text rowversion xml"),
    "xml": (
        "bigint bit date datetime datetime2 datetimeoffset decimal float image int money ntext numeric "
        "real smalldatetime smallint smallmoney text time rowversion tinyint uniqueidentifier"
    ),
}
TYPES = sorted(" ".join(FORBIDDEN).split())


def refusal(source: str, target: str) -> int:
    """The error of a conversion, 0 for none."""
    try:
        converter(_type(source), _type(target))
    except SqlError as failure:
        return failure.number
    return 0


def _type(name: str) -> SqlType:
    return SqlType(name, length=30, precision=9, scale=2)


@pytest.mark.parametrize("sources", FORBIDDEN)
def test_conversions_that_are_not_allowed_are_529(sources: str) -> None:
    for source in sources.split():
        refused = {target for target in TYPES if target != "sql_variant" and refusal(source, target) == 529}
        assert refused == set(FORBIDDEN[sources].split()) - {source}


@pytest.mark.parametrize("source", ["rowversion", "image", "ntext", "text", "xml"])
def test_what_sql_variant_cannot_hold_clashes_with_it(source: str) -> None:
    assert refusal(source, "sql_variant") == 206
