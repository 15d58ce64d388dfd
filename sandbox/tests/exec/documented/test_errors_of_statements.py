"""Errors of single statements, and whether the batch goes on: constraints, names, values, definitions.

An error is shown as number/severity/state/line[/procedure] and the beginning of its text, a row as its values.
"""

import pytest

from tests.exec.documented.conftest import Answers

CASES: list[tuple[str, list[str]]] = [
    (
        "INSERT p (id, n) VALUES (1, 'b'); SELECT @@ERROR",
        [
            "2627/14/1/L1 Violation of PRIMARY KEY constraint 'pk_p'. Cannot insert duplicate key in ob",
            "3621/0/0/L1 The statement has been terminated.",
            "2627",
        ],
    ),
    (
        "INSERT p (id, n) VALUES (2, 'a'); SELECT @@ERROR",
        [
            "2627/14/1/L1 Violation of UNIQUE KEY constraint 'uq_p'. Cannot insert duplicate key in obj",
            "3621/0/0/L1 The statement has been terminated.",
            "2627",
        ],
    ),
    (
        "INSERT p (id, d) VALUES (2, 1); SELECT @@ERROR",
        [
            "2601/14/1/L1 Cannot insert duplicate key row in object 'dbo.p' with unique index 'ux'. The",
            "3621/0/0/L1 The statement has been terminated.",
            "2601",
        ],
    ),
    (
        "INSERT p (id, c) VALUES (2, -1); SELECT @@ERROR",
        [
            '547/16/0/L1 The INSERT statement conflicted with the CHECK constraint "ck_p". The conflict',
            "3621/0/0/L1 The statement has been terminated.",
            "547",
        ],
    ),
    (
        "INSERT f (pid, x) VALUES (99, 1); SELECT @@ERROR",
        [
            '547/16/0/L1 The INSERT statement conflicted with the FOREIGN KEY constraint "fk_f". The co',
            "3621/0/0/L1 The statement has been terminated.",
            "547",
        ],
    ),
    (
        "DELETE p WHERE id = 1; SELECT @@ERROR",
        [
            '547/16/0/L1 The DELETE statement conflicted with the REFERENCE constraint "fk_f". The conf',
            "3621/0/0/L1 The statement has been terminated.",
            "547",
        ],
    ),
    (
        "UPDATE p SET id = 5 WHERE id = 1; SELECT @@ERROR",
        [
            '547/16/0/L1 The UPDATE statement conflicted with the REFERENCE constraint "fk_f". The conf',
            "3621/0/0/L1 The statement has been terminated.",
            "547",
        ],
    ),
    (
        "DROP TABLE p; SELECT @@ERROR",
        ["3726/16/1/L1 Could not drop object 'dbo.p' because it is referenced by a FOREIGN KEY const", "3726"],
    ),
    (
        "TRUNCATE TABLE p; SELECT @@ERROR",
        ["4712/16/1/L1 Cannot truncate table 'p' because it is being referenced by a FOREIGN KEY con", "4712"],
    ),
    (
        "INSERT f (pid) VALUES (1); SELECT @@ERROR",
        [
            "515/16/2/L1 Cannot insert the value NULL into column 'x', table 'db.dbo.f'; column does no",
            "3621/0/0/L1 The statement has been terminated.",
            "515",
        ],
    ),
    (
        "INSERT p (id, n) VALUES (7, 'abcd'); SELECT @@ERROR",
        [
            "2628/16/1/L1 String or binary data would be truncated in table 'db.dbo.p', column 'n'. Tru",
            "3621/0/0/L1 The statement has been terminated.",
            "2628",
        ],
    ),
    (
        "INSERT p (id, b) VALUES (8, 300); SELECT @@ERROR",
        [
            "220/16/1/L1 Arithmetic overflow error for data type tinyint, value = 300.",
            "3621/0/0/L1 The statement has been terminated.",
            "220",
        ],
    ),
    (
        "INSERT p (id, d) VALUES (8, 12345.6); SELECT @@ERROR",
        [
            "8115/16/8/L1 Arithmetic overflow error converting numeric to data type numeric.",
            "3621/0/0/L1 The statement has been terminated.",
            "8115",
        ],
    ),
    (
        "INSERT p (id, d) VALUES (8, 'abc'); SELECT 'not reached'",
        ["8114/16/5/L1 Error converting data type varchar to numeric."],
    ),
    (
        "UPDATE p SET c = 1 / 0; SELECT @@ERROR",
        ["8134/16/1/L1 Divide by zero error encountered.", "3621/0/0/L1 The statement has been terminated.", "8134"],
    ),
    (
        "SELECT CONVERT(int, 'x'); SELECT 'not reached'",
        ["245/16/1/L1 Conversion failed when converting the varchar value 'x' to data type int."],
    ),
    ("SELECT 1 / 0; SELECT @@ERROR", ["8134/16/1/L1 Divide by zero error encountered.", "8134"]),
    (
        "SELECT CAST(300 AS tinyint); SELECT @@ERROR",
        ["220/16/1/L1 Arithmetic overflow error for data type tinyint, value = 300.", "220"],
    ),
    ("SELECT * FROM nope; SELECT 'not reached'", ["208/16/1/L1 Invalid object name 'nope'."]),
    ("SELECT nope FROM p; SELECT 'not reached'", ["207/16/1/L1 Invalid column name 'nope'."]),
    ("SELECT q.id FROM p", ['4104/16/1/L1 The multi-part identifier "q.id" could not be bound.']),
    ("SELECT id FROM p, f", ["209/16/1/L1 Ambiguous column name 'id'."]),
    ("EXEC nope; SELECT @@ERROR", ["2812/16/62/L1 Could not find stored procedure 'nope'.", "2812"]),
    ("SELECT nope()", ["195/15/10/L1 'nope' is not a recognized built-in function name."]),
    (
        "SELECT id, COUNT(*) FROM p",
        ["8120/16/1/L1 Column 'p.id' is invalid in the select list because it is not contained in ei"],
    ),
    (
        "SELECT 1 AS a, 2 AS a INTO #twice",
        ["2705/16/3/L1 Column names in each table must be unique. Column name 'a' in table '#twice' "],
    ),
    ("SELECT 1 FROM", ["102/15/1/L1 Incorrect syntax near 'FROM'."]),
    ("SELECT (1", ["102/15/1/L1 Incorrect syntax near '1'."]),
    (
        "INSERT p (id, n) VALUES (1)",
        ["109/15/1/L1 There are more columns in the INSERT statement than values specified in the VA"],
    ),
    (
        "INSERT p (id) VALUES (1, 2)",
        ["110/15/1/L1 There are fewer columns in the INSERT statement than values specified in the V"],
    ),
    (
        "INSERT f (id, pid, x) VALUES (1, 1, 1)",
        ["544/16/1/L1 Cannot insert explicit value for identity column in table 'f' when IDENTITY_IN"],
    ),
    (
        "SELECT * FROM p WHERE id IN (SELECT id, n FROM p)",
        ["116/16/1/L1 Only one expression can be specified in the select list when the subquery is n"],
    ),
    (
        "SELECT (SELECT 1 UNION ALL SELECT 2)",
        ["512/16/1/L1 Subquery returned more than 1 value. This is not permitted when the subquery f"],
    ),
    (
        "SELECT id FROM p UNION SELECT id, n FROM p",
        ["205/16/1/L1 All queries combined using a UNION, INTERSECT or EXCEPT operator must have an "],
    ),
    (
        "SELECT DISTINCT n FROM p ORDER BY id",
        ["145/15/1/L1 ORDER BY items must appear in the select list if SELECT DISTINCT is specified."],
    ),
    (
        "SELECT id FROM p ORDER BY 5",
        ["108/15/1/L1 The ORDER BY position number 5 is out of range of the number of items in the s"],
    ),
    (
        "DECLARE @a int; DECLARE @a int",
        ["134/15/1/L1 The variable name '@a' has already been declared. Variable names must be uniqu"],
    ),
    ("SELECT @nope", ['137/15/1/L1 Must declare the scalar variable "@nope".']),
    (
        "COMMIT; SELECT @@ERROR",
        ["3902/16/1/L1 The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.", "3902"],
    ),
    (
        "ROLLBACK; SELECT @@ERROR",
        ["3903/16/1/L1 The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.", "3903"],
    ),
    (
        "SAVE TRAN x; SELECT @@ERROR",
        ["628/16/0/L1 Cannot issue SAVE TRANSACTION when there is no active transaction.", "628"],
    ),
    (
        "BEGIN TRAN; ROLLBACK TRAN nosuch; SELECT @@ERROR, @@TRANCOUNT",
        ["6401/16/1/L1 Cannot roll back nosuch. No transaction or savepoint of that name was found.", "6401 1"],
    ),
    (
        "EXEC begins; SELECT @@TRANCOUNT",
        ["266/16/2/L0/begins Transaction count after EXECUTE indicates a mismatching number of BEGIN", "1"],
    ),
    (
        "BEGIN TRAN; EXEC ends; SELECT @@TRANCOUNT",
        ["266/16/2/L0/ends Transaction count after EXECUTE indicates a mismatching number of BEGIN a", "0"],
    ),
    ("CREATE TABLE p (i int)", ["2714/16/6/L1 There is already an object named 'p' in the database."]),
    ("DROP TABLE nope", ["3701/11/5/L1 Cannot drop the table 'nope', because it does not exist or you do not have pe"]),
    (
        "ALTER TABLE nope ADD x int",
        ['4902/16/1/L1 Cannot find the object "nope" because it does not exist or you do not have pe'],
    ),
    (
        "ALTER TABLE p ADD id int",
        ["2705/16/3/L1 Column names in each table must be unique. Column name 'id' in table 'dbo.p' "],
    ),
    (
        "ALTER TABLE p DROP COLUMN c; SELECT @@ERROR",
        [
            "5074/16/1/L1 The object 'ck_p' is dependent on column 'c'.",
            "4922/16/9/L1 ALTER TABLE DROP COLUMN c failed because one or more objects access this colu",
            "4922",
        ],
    ),
    (
        "ALTER TABLE p ALTER COLUMN d bigint",
        [
            "5074/16/1/L1 The index 'ux' is dependent on column 'd'.",
            "4922/16/9/L1 ALTER TABLE ALTER COLUMN d failed because one or more objects access this co",
        ],
    ),
    ("ALTER TABLE p ALTER COLUMN n varchar(20); UPDATE p SET n = 'longer'; SELECT n FROM p", ["longer"]),
    (
        "ALTER TABLE p ADD z int NOT NULL",
        ["4901/16/1/L1 ALTER TABLE only allows columns to be added that can contain nulls, or have a"],
    ),
    ("CREATE TABLE z (a nope)", ["2715/16/6/L1 Column, parameter, or variable #1: Cannot find data type nope."]),
    (
        "CREATE TABLE z (a varchar(9000))",
        ["2717/15/2/L1 The size (9000) given to the type 'varchar' exceeds the maximum allowed (8000"],
    ),
    (
        "CREATE TABLE z (a int PRIMARY KEY, b int PRIMARY KEY)",
        ["8110/16/0/L1 Cannot add multiple PRIMARY KEY constraints to table 'z'."],
    ),
    (
        "CREATE TABLE z (a int CONSTRAINT fk_z REFERENCES nope (a))",
        [
            "1767/16/0/L1 Foreign key 'fk_z' references invalid table 'nope'.",
            "1750/16/0/L1 Could not create constraint or index. See previous errors.",
        ],
    ),
    (
        "BEGIN TRY CREATE TABLE z (a int REFERENCES nope (a)) END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH",
        ["1750"],
    ),
]


@pytest.mark.parametrize(("batch", "expected"), CASES)
def test_batch_answers(answers: Answers, batch: str, expected: list[str]) -> None:
    found = answers(batch)
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected
