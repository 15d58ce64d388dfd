"""Whole scripts as published sample databases are written: one of our own, and any that a folder holds.

`SQL_SAMPLE_SCRIPTS` may name a folder with scripts such as instnwnd.sql, instpubs.sql, Chinook_SqlServer.sql: each is
run batch by batch and none may fail. Variables that a script wants and does not set, such as the folder that its BULK
INSERT statements read from, are those of the environment.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mssql_sandbox.engine.events import Message
from mssql_sandbox.registry import Catalog
from mssql_sandbox.scripts import split_batches
from mssql_sandbox.sqlcmd import load
from tests.exec.conftest import Client

FOLDER = os.environ.get("SQL_SAMPLE_SCRIPTS", "")
SCRIPTS = sorted(Path(FOLDER).glob("*.sql")) if FOLDER else []
SHOP = """
SET NOCOUNT ON
SET DATEFORMAT mdy
USE master
GO
IF EXISTS (SELECT * FROM sysdatabases WHERE name = 'Bakery') DROP DATABASE Bakery
GO
DECLARE @path nvarchar(520)
SET @path = (SELECT SUBSTRING(filename, 1, CHARINDEX(N'master.mdf', LOWER(filename)) - 1)
    FROM master.dbo.sysaltfiles_of_old WHERE 1 = 0)
GO
CREATE DATABASE Bakery
GO
ALTER DATABASE Bakery SET RECOVERY SIMPLE, AUTO_SHRINK OFF
GO
USE Bakery
GO
IF EXISTS (SELECT * FROM sysobjects WHERE id = object_id('dbo.Loaves') AND sysstat & 0xf = 3) DROP TABLE dbo.Loaves
GO
EXECUTE sp_addtype flourcode, 'char(4)', 'NOT NULL'
GO
CREATE TABLE Flours (
    code flourcode CONSTRAINT PK_flours PRIMARY KEY CLUSTERED CHECK (code LIKE '[A-Z][0-9][0-9][0-9]'),
    title "nvarchar"(40) NOT NULL, price money NULL DEFAULT (0), picture image NULL, note ntext NULL
)
GO
CREATE TABLE Loaves (
    LoafID int IDENTITY (1, 1) NOT NULL, "Loaf Name" nvarchar(40) NOT NULL, FlourCode flourcode,
    Baked datetime NULL CONSTRAINT DF_Loaves_Baked DEFAULT (GETDATE()), Weight real, Cost AS (Weight * 2) PERSISTED,
    guid uniqueidentifier ROWGUIDCOL NOT NULL DEFAULT (NEWID()),
    CONSTRAINT PK_Loaves PRIMARY KEY CLUSTERED (LoafID),
    CONSTRAINT FK_Loaves_Flours FOREIGN KEY (FlourCode) REFERENCES dbo.Flours (code),
    CONSTRAINT CK_Weight CHECK (Weight > 0)
) ON [PRIMARY]
GO
CREATE INDEX "LoafName" ON dbo.Loaves ("Loaf Name") WITH (FILLFACTOR = 80)
GO
ALTER TABLE Loaves NOCHECK CONSTRAINT ALL
GO
INSERT Flours VALUES ('W550', 'Wheat', 1.25, 0x151C2F00, 'all purpose')
INSERT Flours (code, title) VALUES ('R997', N'Rye')
GO
SET QUOTED_IDENTIFIER ON
GO
SET IDENTITY_INSERT "Loaves" ON
GO
INSERT "Loaves" ("LoafID", "Loaf Name", "FlourCode", "Baked", "Weight")
    VALUES (7, 'Baker''s best', 'W550', '7/4/1996', 0.5)
GO
SET IDENTITY_INSERT Loaves OFF
INSERT Loaves ("Loaf Name", FlourCode, Baked, Weight)
VALUES ('Dark', 'R997', '1996-07-16', 1), ('Pale', 'W550', NULL, 2)
GO
ALTER TABLE Loaves CHECK CONSTRAINT ALL
GO
CREATE VIEW "Loaves by Flour" AS
SELECT Flours.title, Loaves.*
FROM Flours INNER JOIN Loaves ON Flours.code = Loaves.FlourCode
WHERE ((Loaves.Weight) > 0)
GO
CREATE PROCEDURE "Heaviest Loaves" @least real = 0 AS
SET ROWCOUNT 2
SELECT "Loaf Name" AS Heaviest, Weight FROM Loaves WHERE Weight >= @least ORDER BY Weight DESC
GO
CREATE TRIGGER loaf_insupd ON Loaves FOR INSERT, UPDATE AS
DECLARE @least real
SELECT @least = MIN(Weight) FROM inserted
IF (@least > 10)
BEGIN
    RAISERROR ('No loaf weighs %d.', 16, 1, 11)
    ROLLBACK TRANSACTION
END
GO
GRANT EXECUTE ON "Heaviest Loaves" TO public
GO
EXEC sp_addextendedproperty N'MS_Description', N'What is baked', N'SCHEMA', N'dbo', N'TABLE', N'Loaves'
GO
UPDATE STATISTICS Loaves
GO
"""
QUESTIONS = [
    ("SELECT title, COUNT(*) FROM [Loaves by Flour] GROUP BY title WITH ROLLUP", [("Rye", 1), ("Wheat", 2), (None, 3)]),
    ("EXEC [Heaviest Loaves] @least = 1", [("Pale", 2.0), ("Dark", 1.0)]),
    ("SELECT MAX(LoafID), SUM(Cost) FROM Loaves", [(9, 7.0)]),
    ("INSERT Loaves VALUES ('x', 'W550', NULL, 12, DEFAULT) SELECT 1", None),
]


@pytest.fixture
def prompt(sql: Client) -> Client:
    server = sql.session.server
    server.catalog = Catalog(server)
    return sql


def failures(client: Client, script: str) -> list[str]:
    """What failed, with the line in the script."""
    found = []
    for batch in split_batches(script):
        for event in client(batch.text).events:
            if isinstance(event, Message) and event.severity > 10:
                found.append(f"line {batch.line + event.line - 1}: Msg {event.number}: {event.text}")
    return found


def test_a_shop_in_the_style_of_the_samples_loads(prompt: Client) -> None:
    (failure,) = failures(prompt, SHOP)
    assert "Msg 208" in failure, "the only table that does not exist"
    for question, rows in QUESTIONS:
        answer = prompt(question)
        if rows is None:
            assert answer.errors == [50000, 3609]
        else:
            assert answer.rows == rows
    prompt.session.server.catalog.close()


@pytest.mark.skipif(not SCRIPTS, reason="SQL_SAMPLE_SCRIPTS names no folder with scripts")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_published_scripts_load(prompt: Client, script: Path) -> None:
    prompt("USE master")
    assert failures(prompt, load(script, os.environ).text) == []
    prompt.session.server.catalog.close()
