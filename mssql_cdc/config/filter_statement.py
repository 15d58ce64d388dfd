"""The filters of a signal's `additional-conditions`: texts that become part of a SELECT, and may do nothing but filter.

Whoever may write into the signal table chooses them, and the connector's login runs them: a filter is one plain SELECT
of the table that it filters, or one condition. `snapshot.select.statement.overrides`, which only the owner of the
configuration writes, is not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mssql_cdc.config.filters import split_name

MOST_CHARACTERS = 4000
_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<text>N?'(?:[^']|'')*')
    |(?P<name>\[(?:[^\]]|\]\])+\]|"(?:[^"]|"")+")
    |(?P<word>[^\W\d][\w$#@]*)
    |(?P<number>0x[0-9a-f]*|\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)
    |(?P<comment>--|/\*)
    |(?P<sign>[<>=!+\-*/%&|^~(),.])
    |(?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALLOWED_CALLS = _words("""
    ABS CAST CEILING CHARINDEX COALESCE CONCAT CONVERT DATALENGTH DATEADD DATEDIFF DATEPART DATEFROMPARTS DAY FLOOR
    GETDATE GETUTCDATE IIF ISNULL LEFT LEN LOWER LTRIM MONTH NULLIF REPLACE RIGHT ROUND RTRIM SUBSTRING SYSDATETIME
    SYSUTCDATETIME TRIM TRY_CAST TRY_CONVERT UPPER YEAR
    AND BETWEEN ELSE ESCAPE IN LIKE NOT OR THEN WHEN
    BINARY CHAR DATETIME2 DATETIMEOFFSET DECIMAL FLOAT NCHAR NUMERIC NVARCHAR TIME VARBINARY VARCHAR""")
"""What may stand before a parenthesis."""
_WORDS_OF_STATEMENTS = _words("""
    ALTER APPLY BACKUP BEGIN BULK COMMIT COMPUTE CREATE CROSS CURSOR DBCC DECLARE DELETE DENY DROP EXCEPT EXEC EXECUTE
    FETCH FOR FROM FULL GOTO GRANT GROUP HAVING INSERT INTERSECT INTO JOIN KILL MERGE NEXT OFFSET OPEN OPENDATASOURCE
    OPENJSON OPENQUERY OPENROWSET OPENXML OPTION ORDER OUTER OUTPUT PIVOT PRINT RAISERROR READTEXT RECONFIGURE RESTORE
    RETURN REVERT REVOKE ROLLBACK SAVE SELECT SET SHUTDOWN THROW TOP TRUNCATE UNION UNPIVOT UPDATE UPDATETEXT USE VALUES
    WAITFOR WHERE WHILE WITH WRITETEXT""")
_EXPECTED = "expected SELECT * FROM <the table> WHERE <condition>"


def check_statement(text: str, collection: str) -> None:
    """Check that a filter is `SELECT * FROM <the collection's table> [[AS] alias] [WHERE <condition>]`.

    Raises:
        ValueError: it is something else; the message never repeats the filter.
    """
    tokens = _tokens(text)
    words = [token.upper() for token in tokens[:3]]
    if words != ["SELECT", "*", "FROM"]:
        raise ValueError(f"the filter of {collection} does not begin with SELECT * FROM; {_EXPECTED}")
    rest = tokens[3:]
    name, rest = _name(rest)
    if not _is_table(name, collection):
        raise ValueError(f"the filter of {collection} reads another table; {_EXPECTED}")
    if rest and rest[0].upper() == "AS":
        rest = rest[1:]
    if rest and _is_name(rest[0]) and rest[0].upper() not in _WORDS_OF_STATEMENTS:
        rest = rest[1:]
    if not rest:
        return
    if rest[0].upper() != "WHERE" or len(rest) == 1:
        raise ValueError(f"the filter of {collection} does more than filter; {_EXPECTED}")
    _check_condition(rest[1:], collection)


def rows_with(condition: str, collection: str) -> str:
    """The filter of a blocking snapshot that reads the rows of a table which fulfill a condition.

    Args:
        condition: What `check_condition` takes.
        collection: The table's name.

    Raises:
        ValueError: The condition does more than filter.
    """
    check_condition(condition, collection)
    name = ".".join(f"[{part.replace(']', ']]')}]" for part in split_name(collection))
    return f"SELECT * FROM {name} WHERE {condition}"


def check_condition(text: str, collection: str) -> None:
    """Check that a filter is one condition (raises ValueError, which never repeats the filter)."""
    tokens = _tokens(text)
    if not tokens:
        raise ValueError(f"the filter of {collection} is empty")
    _check_condition(tokens, collection)


def _check_condition(tokens: Sequence[str], collection: str) -> None:
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")  # noqa: S105 - parentheses
        if depth < 0:
            raise ValueError(f"the filter of {collection} has an unmatched closing parenthesis")
        if _is_word(token) and token.upper() in _WORDS_OF_STATEMENTS:
            raise ValueError(f"the filter of {collection} contains {token.upper()}, which no condition may contain")
        called = place + 1 < len(tokens) and tokens[place + 1] == "("
        if called and _is_name(token) and token.upper() not in _ALLOWED_CALLS:
            raise ValueError(f"the filter of {collection} calls {token}, which is not allowed in a filter")
    if depth:
        raise ValueError(f"the filter of {collection} has an unclosed parenthesis")


def _tokens(text: str) -> list[str]:
    """The tokens of a filter, without blanks.

    Raises:
        ValueError: it is too long, or contains what no condition needs: comments, semicolons, variables, open quotes.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a filter has {len(text)} characters, at most {MOST_CHARACTERS} are allowed")
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        if token.lastgroup in {"comment", "other"}:
            raise ValueError(f"a filter contains {token[0]!r}, which no condition may contain")
        if token.lastgroup != "blank":
            found.append(token[0])
    return found


def _name(tokens: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The dotted name at the beginning, and the tokens behind it."""
    place = 0
    while place < len(tokens) and _is_name(tokens[place]):
        place += 1
        if place < len(tokens) and tokens[place] == ".":
            place += 1
        else:
            break
    return "".join(tokens[:place]), tokens[place:]


def _is_table(name: str, collection: str) -> bool:
    """Whether the name is the collection's, with or without database and schema."""
    parts = [part.lower() for part in split_name(name)]
    wanted = [part.lower() for part in split_name(collection)]
    return bool(name) and parts == wanted[-len(parts) :]


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] == "_"


def _is_name(token: str) -> bool:
    return (_is_word(token) and not token.endswith("'")) or token[0] in '["'
