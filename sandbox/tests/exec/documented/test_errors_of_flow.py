"""RAISERROR, THROW, TRY, XACT_ABORT, calls of procedures, jumps; what views and functions may not hold.

An error is shown as number/severity/state/line[/procedure] and the beginning of its text, a row as its values.
"""

import pytest

from tests.exec.documented.conftest import Answers

CASES: list[tuple[str, list[str]]] = [
    ("RAISERROR ('hello %s %d', 16, 1, 'x', 5); SELECT @@ERROR", ["50000/16/1/L1 hello x 5", "50000"]),
    ("RAISERROR ('info', 10, 1); SELECT @@ERROR", ["50000/10/1/L1 info", "0"]),
    ("RAISERROR ('a', 10, 1) WITH SETERROR; SELECT @@ERROR", ["50000/10/1/L1 a", "50000"]),
    (
        "RAISERROR (60001, 16, 1)",
        ["18054/16/1/L1 Error 60001, severity 16, state 1 was raised, but no message with that error"],
    ),
    (
        "RAISERROR (50000, 16, 1)",
        ["2732/16/1/L1 Error number 50000 is invalid. The number must be from 13000 through 21474836"],
    ),
    (
        "RAISERROR ('x', 19, 1)",
        ["2754/16/1/L1 Error severity levels greater than 18 can only be specified by members of the"],
    ),
    ("RAISERROR ('x', 16, 300); RAISERROR ('x', 16, -1)", ["50000/16/255/L1 x", "50000/16/1/L1 x"]),
    ("RAISERROR ('x', -5, 1)", ["50000/0/1/L1 x"]),
    (
        "RAISERROR ('%d', 16, 1, 'x')",
        ["2786/16/1/L1 The data type of substitution parameter 1 does not match the expected type of"],
    ),
    (
        "RAISERROR ('%s', 16, 1, 5)",
        ["2786/16/1/L1 The data type of substitution parameter 1 does not match the expected type of"],
    ),
    (
        "RAISERROR ('%s', 16, 1, 5.5)",
        ["2748/16/1/L1 Cannot specify numeric data type (parameter 1) as a substitution parameter."],
    ),
    ("THROW 50000, 'boom', 5; SELECT 'not reached'", ["50000/16/5/L1 boom"]),
    (
        "THROW 49999, 'boom', 5",
        ["35100/16/10/L1 Error number 49999 in the THROW statement is outside the valid range. Speci"],
    ),
    ("THROW", ["10704/15/1/L1 To rethrow an error, a THROW statement must be used inside a CATCH block. In"]),
    (
        "BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_LINE(); THROW END CATCH",
        ["8134 1", "8134/16/1/L1 Divide by zero error encountered."],
    ),
    (
        "BEGIN TRY SELECT * FROM nope END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH",
        ["208/16/1/L1 Invalid object name 'nope'."],
    ),
    ("BEGIN TRY EXEC ('SELECT * FROM nope') END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH", ["208"]),
    (
        "BEGIN TRY EXEC fails END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_PROCEDURE(), ERROR_LINE() END CATCH",
        ["2627 fails 2"],
    ),
    (
        "BEGIN TRAN; BEGIN TRY SELECT CONVERT(int, 'x') END TRY BEGIN CATCH SELECT XACT_STATE() END CATCH",
        ["-1", "3998/16/1/L1 Uncommittable transaction is detected at the end of the batch. The transactio"],
    ),
    (
        "SET XACT_ABORT ON; BEGIN TRAN; INSERT p (id) VALUES (1); SELECT 'not reached'",
        [
            "2627/14/1/L1 Violation of PRIMARY KEY constraint 'pk_p'. Cannot insert duplicate key in ob",
            "3621/0/0/L1 The statement has been terminated.",
        ],
    ),
    ("SET XACT_ABORT ON; BEGIN TRAN; RAISERROR ('x', 16, 1); SELECT @@TRANCOUNT", ["50000/16/1/L1 x", "1"]),
    (
        "BEGIN TRAN; INSERT p (id) VALUES (1); SELECT @@TRANCOUNT",
        [
            "2627/14/1/L1 Violation of PRIMARY KEY constraint 'pk_p'. Cannot insert duplicate key in ob",
            "3621/0/0/L1 The statement has been terminated.",
            "1",
        ],
    ),
    (
        "EXEC fails; SELECT @@ERROR",
        [
            "2627/14/1/L2/fails Violation of PRIMARY KEY constraint 'pk_p'. Cannot insert duplicate key",
            "3621/0/0/L2/fails The statement has been terminated.",
            "2627",
            "0",
        ],
    ),
    (
        "EXEC adds; SELECT @@ERROR",
        ["201/16/4/L0/adds Procedure or function 'adds' expects parameter '@a', which was not suppli", "201"],
    ),
    (
        "EXEC adds 1, 2, 3; SELECT @@ERROR",
        ["8144/16/2/L0/adds Procedure or function adds has too many arguments specified.", "8144"],
    ),
    ("EXEC adds @c = 1; SELECT @@ERROR", ["8145/16/2/L0/adds @c is not a parameter for procedure adds.", "8145"]),
    ("EXEC adds 'x'", ["8114/16/5/L0/adds Error converting data type varchar to int."]),
    (
        "EXEC sp_executesql N'SELECT @p', N'@p int'",
        ["8178/16/1/L1 The parameterized query '(@p int)SELECT @p' expects the parameter '@p', which"],
    ),
    (
        "EXEC sp_executesql 'SELECT 1'",
        ["214/16/2/L1 Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'."],
    ),
    ("WAITFOR DELAY 'x'", ["148/15/1/L1 Incorrect time syntax in time string 'x' used with WAITFOR."]),
    ("USE nope", ["911/16/1/L1 Database 'nope' does not exist. Make sure that the name is entered correctly."]),
    ("GOTO nowhere", ["133/15/1/L1 A GOTO statement references the label 'nowhere' but the label has not been dec"]),
    ("BREAK", ["135/15/1/L1 Cannot use a BREAK statement outside the scope of a WHILE statement."]),
    ("CONTINUE", ["136/15/1/L1 Cannot use a CONTINUE statement outside the scope of a WHILE statement."]),
    ("RETURN 5", ["178/15/1/L1 A RETURN statement with a return value cannot be used in this context."]),
    ("FETCH NEXT FROM nocursor", ["16916/16/1/L1 A cursor with the name 'nocursor' does not exist."]),
    ("SELECT TOP (-1) * FROM p", ["127/15/1/L1 A TOP N or FETCH rowcount value may not be negative."]),
    ("SELECT TOP ('x') * FROM p", ["8114/16/5/L1 Error converting data type varchar to bigint."]),
    (
        "SELECT * FROM p ORDER BY id OFFSET -1 ROWS",
        ["10742/15/1/L1 The offset specified in a OFFSET clause may not be negative."],
    ),
    ("SELECT SUM(n) FROM p", ["8117/16/1/L1 Operand data type varchar is invalid for sum operator."]),
    ("SELECT DATEADD(foo, 1, 0)", ["155/15/1/L1 'foo' is not a recognized dateadd option."]),
    ("SELECT CAST(1 AS nope)", ["243/16/1/L1 Type nope is not a defined system type."]),
    (
        "SELECT p.* FROM p AS x",
        ["107/15/1/L1 The column prefix 'p' does not match with a table name or alias name used in t"],
    ),
    (
        "CREATE VIEW v AS SELECT 1",
        ["4511/16/1/L1 Create View or Function failed because no column name was specified for colum"],
    ),
    (
        "CREATE VIEW v AS SELECT id FROM p ORDER BY id",
        ["1033/15/1/L1 The ORDER BY clause is invalid in views, inline functions, derived tables, su"],
    ),
    (
        "CREATE VIEW v AS SELECT id, id FROM p",
        ["4506/16/1/L1 Column names in each view or function must be unique. Column name 'id' in vie"],
    ),
    (
        "SELECT * FROM (SELECT id FROM p ORDER BY id) x",
        ["1033/15/1/L1 The ORDER BY clause is invalid in views, inline functions, derived tables, su"],
    ),
    (
        "WITH a AS (SELECT 1 AS x), a AS (SELECT 2 AS y) SELECT * FROM a",
        ["239/16/1/L1 Duplicate common table expression name 'a' was specified."],
    ),
    (
        "CREATE FUNCTION g() RETURNS int AS BEGIN INSERT p (id) VALUES (9) RETURN 1 END",
        ["443/16/15/L1 Invalid use of a side-effecting operator 'INSERT' within a function."],
    ),
    (
        "CREATE FUNCTION g() RETURNS int AS BEGIN SELECT 1 RETURN 1 END",
        ["444/16/2/L1 Select statements included within a function cannot return data to a client."],
    ),
    (
        "CREATE TRIGGER t ON nope AFTER INSERT AS SELECT 1",
        ["8197/16/4/L1 The object 'nope' does not exist or is invalid for this operation."],
    ),
    (
        "ALTER DATABASE nope SET RECOVERY SIMPLE",
        [
            "5011/14/5/L1 User does not have permission to alter database 'nope', the database does not",
            "5069/16/1/L1 ALTER DATABASE statement failed.",
        ],
    ),
    (
        "DROP DATABASE nope",
        ["3701/11/1/L1 Cannot drop the database 'nope', because it does not exist or you do not have"],
    ),
    (
        "GRANT SELECT ON nope TO public",
        ["15151/16/1/L1 Cannot find the object 'nope', because it does not exist or you do not have "],
    ),
]


@pytest.mark.parametrize(("batch", "expected"), CASES)
def test_batch_answers(answers: Answers, batch: str, expected: list[str]) -> None:
    found = answers(batch)
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected
