"""The filters of a signal's `additional-conditions`: texts that become part of a SELECT, and may do nothing but filter.

Anyone who may write to the signal table chooses them, and the connector's login runs them: a filter is one plain SELECT
from the table that it filters, or one condition. It reads no other table, and calls only functions that compute a value
from their arguments, not much larger than these (`filter_growth.py`). `snapshot.select.statement.overrides`, which only
the owner of the configuration writes, is not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mssql_cdc.config.filter_growth import check_growth
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
    ABS ACOS ASCII ASIN ATAN ATN2 BINARY_CHECKSUM CAST CEILING CHARINDEX CHECKSUM CHOOSE COALESCE CONCAT CONCAT_WS
    CONVERT COS COT DATALENGTH DATEADD DATEDIFF DATEDIFF_BIG DATEFROMPARTS DATENAME DATEPART DATETIME2FROMPARTS
    DATETIMEFROMPARTS DATETIMEOFFSETFROMPARTS DATETRUNC DAY DEGREES DIFFERENCE EOMONTH EXP FLOOR GETDATE GETUTCDATE
    GREATEST HASHBYTES IIF ISDATE ISJSON ISNULL ISNUMERIC JSON_QUERY JSON_VALUE LEAST LEFT LEN LOG LOG10 LOWER LTRIM
    MONTH NULLIF PARSENAME PATINDEX PI POWER QUOTENAME RADIANS REPLACE REVERSE RIGHT ROUND RTRIM SIGN SIN
    SMALLDATETIMEFROMPARTS SOUNDEX SQRT SQUARE STR STUFF SUBSTRING SWITCHOFFSET SYSDATETIME SYSDATETIMEOFFSET
    SYSUTCDATETIME TAN TIMEFROMPARTS TODATETIMEOFFSET TRANSLATE TRIM TRY_CAST TRY_CONVERT UNICODE UPPER YEAR
    AND BETWEEN BY ELSE ESCAPE IN LIKE NOT OR THEN WHEN
    BINARY CHAR DATETIME2 DATETIMEOFFSET DECIMAL FLOAT NCHAR NUMERIC NVARCHAR TIME VARBINARY VARCHAR""")
"""What may precede an opening parenthesis."""
_SIZED = _words("NVARCHAR VARBINARY VARCHAR")
"""Types that can hold gigabytes if their length is MAX."""
_WORDS_OF_STATEMENTS = _words("""
    ALTER APPLY BACKUP BEGIN BULK COMMIT COMPUTE CREATE CROSS CURSOR DBCC DECLARE DELETE DENY DROP EXCEPT EXEC EXECUTE
    FETCH FOR FROM FULL GOTO GRANT GROUP HAVING INSERT INTERSECT INTO JOIN KILL MERGE NEXT OFFSET OPEN OPENDATASOURCE
    OPENJSON OPENQUERY OPENROWSET OPENXML OPTION ORDER OUTER OUTPUT PIVOT PRINT RAISERROR READTEXT RECONFIGURE RESTORE
    RETURN REVERT REVOKE ROLLBACK SAVE SELECT SET SHUTDOWN THROW TOP TRUNCATE UNION UNPIVOT UPDATE UPDATETEXT USE VALUES
    WAITFOR WHERE WHILE WITH WRITETEXT""")
_DERIVED = "expected one SELECT: put the rest into a view or a subquery, or leave the hint out"
_EXPECTED = "expected SELECT * FROM <the table> [WHERE <condition>] [ORDER BY <columns>]"


def bounded_statement(text: str, collection: str) -> str:
    """The filter `SELECT <* or columns> FROM <the collection's table> [[AS] alias] [WHERE …] [ORDER BY …] [;]`.

    Args:
        text: The filter.
        collection: The name of the table.

    Returns:
        The filter without its ORDER BY: it is read as a derived table, in which ORDER BY means nothing and is an error.

    Raises:
        ValueError: it has another form; the message never repeats the filter.
    """
    statement = text.strip().removesuffix(";")
    tokens = _tokens(statement)
    words = [token.upper() for token in tokens]
    source = words.index("FROM") + 1 if "FROM" in words else 0
    if not source or words[0] != "SELECT" or not _is_select_list(tokens[1 : source - 1]):
        raise ValueError(f"the filter of {collection} does not begin with SELECT * FROM; {_EXPECTED}")
    ordered = _place_of_order(words)
    statement = statement[: _starts(statement)[ordered]].rstrip() if ordered < len(tokens) else statement
    if ordered < len(tokens):
        if words[ordered + 1 : ordered + 2] != ["BY"] or len(tokens) == ordered + 2:
            raise ValueError(f"the filter of {collection} has an incomplete ORDER BY; {_EXPECTED}")
        _check_condition(tokens[ordered + 2 :], collection)
    name, rest = _name(tokens[source:ordered])
    if not _is_table(name, collection):
        raise ValueError(f"the filter of {collection} reads another table; {_EXPECTED}")
    if rest and rest[0].upper() == "AS":
        rest = rest[1:]
    if rest and _is_name(rest[0]) and rest[0].upper() not in _WORDS_OF_STATEMENTS:
        rest = rest[1:]
    if not rest:
        return statement
    if rest[0].upper() != "WHERE" or len(rest) == 1:
        raise ValueError(f"the filter of {collection} does more than filter; {_EXPECTED}")
    _check_condition(rest[1:], collection)
    return statement


def unordered(statement: str) -> str:
    """A SELECT without its last ORDER BY and semicolon, which a derived table may not have.

    An ORDER BY that determines which rows there are is kept: with TOP, OFFSET or FOR.
    """
    text = statement.strip().removesuffix(";")
    tokens = [token for token in _TOKEN.finditer(text) if token.lastgroup != "blank"]
    words = [token[0].upper() for token in tokens]
    ordered = _place_of_order(words)
    if ordered == len(words) or "TOP" in words[:4] or not {"OFFSET", "FOR"}.isdisjoint(words[ordered:]):
        return text
    return text[: tokens[ordered].start()].rstrip()


def derivable(statement: str) -> str:
    """The statement of an override, which is read as a derived table: `SELECT … FROM (<statement>) AS t`.

    Raises:
        ValueError: It cannot be a derived table because it begins with WITH or ends with OPTION. The server reports
            any other error, and all errors in a statement with comments.
    """
    tokens = [token for token in _TOKEN.finditer(statement) if token.lastgroup != "blank"]
    if any(token.lastgroup == "comment" for token in tokens):
        return statement
    depth, words = 0, [token[0].upper() for token in tokens]
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "OPTION" and depth == 0:
            raise ValueError(f"found OPTION after the query, which a derived table cannot have; {_DERIVED}")
    if words[:1] == ["WITH"]:
        raise ValueError(f"found WITH before SELECT, which a derived table cannot have; {_DERIVED}")
    return statement


def rows_with(condition: str, collection: str) -> str:
    """The filter of a blocking snapshot that reads the rows of a table that meet a condition.

    Args:
        condition: A text that `check_condition` accepts.
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
        called = _is_name(token) and place + 1 < len(tokens) and tokens[place + 1] == "("
        if called and (token.upper() not in _ALLOWED_CALLS or (place > 0 and tokens[place - 1] == ".")):
            raise ValueError(f"the filter of {collection} calls {token}, which is not allowed in a filter")
        if called and token.upper() in _SIZED and _is_max(tokens[place + 2 : place + 4]):
            raise ValueError(f"the filter of {collection} has MAX as a length; write a number")
    if depth:
        raise ValueError(f"the filter of {collection} has an unclosed parenthesis")
    check_growth(tokens, collection)


def _is_max(tokens: Sequence[str]) -> bool:
    return len(tokens) == 2 and tokens[0].strip('[]"').upper() == "MAX" and tokens[1] == ")"


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


def _starts(text: str) -> list[int]:
    """Where the tokens of a filter begin."""
    return [token.start() for token in _TOKEN.finditer(text) if token.lastgroup != "blank"]


def _place_of_order(words: Sequence[str]) -> int:
    """The index of the ORDER outside of all parentheses; the number of words if there is none."""
    depth = 0
    for place, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if word == "ORDER" and depth == 0:
            return place
    return len(words)


def _is_select_list(tokens: Sequence[str]) -> bool:
    """Whether the list is `*`, or column names, which may be qualified."""
    if list(tokens) == ["*"]:
        return True
    while tokens:
        name, tokens = _name(tokens)
        if not name or name.endswith(".") or (tokens and (tokens[0] != "," or len(tokens) == 1)):
            return False
        if not tokens:
            return True
        tokens = tokens[1:]
    return False


def _name(tokens: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The dotted name at the beginning, and the tokens after it."""
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
