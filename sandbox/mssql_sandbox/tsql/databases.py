"""CREATE and ALTER of databases with options and filegroups, of schemas, of partition functions and schemes."""

from __future__ import annotations

import re

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.control import ControlParser

_PATH = re.compile(r"FILENAME\s*=\s*N?'(?P<path>(?:[^']|'')*)'", re.IGNORECASE)
_SWITCHES = frozenset(
    [
        "AUTO_CLOSE",
        "AUTO_CREATE_STATISTICS",
        "AUTO_SHRINK",
        "AUTO_UPDATE_STATISTICS",
        "AUTO_UPDATE_STATISTICS_ASYNC",
        "CURSOR_CLOSE_ON_COMMIT",
        "ANSI_NULL_DEFAULT",
        "ANSI_NULLS",
        "ANSI_PADDING",
        "ANSI_WARNINGS",
        "ARITHABORT",
        "CONCAT_NULL_YIELDS_NULL",
        "NUMERIC_ROUNDABORT",
        "QUOTED_IDENTIFIER",
        "RECURSIVE_TRIGGERS",
        "DATE_CORRELATION_OPTIMIZATION",
        "DB_CHAINING",
        "TRUSTWORTHY",
        "ENCRYPTION",
        "HONOR_BROKER_PRIORITY",
        "NESTED_TRIGGERS",
        "TRANSFORM_NOISE_WORDS",
        "MIXED_PAGE_ALLOCATION",
        "READ_COMMITTED_SNAPSHOT",
        "ALLOW_SNAPSHOT_ISOLATION",
        "MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT",
        "ACCELERATED_DATABASE_RECOVERY",
        "OPTIMIZED_LOCKING",
        "TEMPORAL_HISTORY_RETENTION",
        "QUERY_STORE",
        "CHANGE_TRACKING",
    ]
)
_WORDS = frozenset(
    [
        "SINGLE_USER",
        "RESTRICTED_USER",
        "MULTI_USER",
        "ONLINE",
        "OFFLINE",
        "EMERGENCY",
        "READ_ONLY",
        "READ_WRITE",
        "ENABLE_BROKER",
        "DISABLE_BROKER",
        "NEW_BROKER",
        "ERROR_BROKER_CONVERSATIONS",
    ]
)
_CHOICES = {
    "RECOVERY": ("FULL", "SIMPLE", "BULK_LOGGED"),
    "PAGE_VERIFY": ("CHECKSUM", "TORN_PAGE_DETECTION", "NONE"),
    "CURSOR_DEFAULT": ("LOCAL", "GLOBAL"),
    "PARAMETERIZATION": ("SIMPLE", "FORCED"),
    "CONTAINMENT": ("NONE", "PARTIAL"),
    "DELAYED_DURABILITY": ("DISABLED", "ALLOWED", "FORCED"),
}
_NUMBERS = frozenset({"COMPATIBILITY_LEVEL", "TARGET_RECOVERY_TIME", "TWO_DIGIT_YEAR_CUTOFF", "DEFAULT_LANGUAGE"})
_IN_PARENTHESES = frozenset({"QUERY_STORE", "CHANGE_TRACKING", "FILESTREAM", "AUTOMATIC_TUNING"})


class DatabaseParser(ControlParser):
    """Adds databases, schemas and partitions. Options that SQL Server does not have are syntax errors."""

    __slots__ = ()

    def create(self) -> st.Statement:
        """CREATE (provided by `Parser`)."""
        raise NotImplementedError

    # ---- databases --------------------------------------------------------------------------------------

    def create_database(self, line: int) -> st.Statement:
        """CREATE DATABASE name …; CREATE DATABASE has been read. Files matter for FOR ATTACH only."""
        name = self.identifier()
        collation = ""
        filegroups: list[str] = []
        files: list[str] = []
        options: tuple[tuple[str, str], ...] = ()
        if self.accept("CONTAINMENT"):
            self.expect("=")
            options = (("CONTAINMENT", self.expect_one("NONE", "PARTIAL")),)
        if self.accept("ON"):
            self.accept("PRIMARY")
            files.append(self._file())
            while self.accept(","):
                if self.accept("FILEGROUP"):
                    filegroups.append(self._filegroup_name())
                files.append(self._file())
        if self.accept("LOG", "ON"):
            files.append(self._file())
            while self.accept(","):
                files.append(self._file())
        attached: tuple[str, ...] = ()
        if self.accept("FOR") and self.expect_one("ATTACH", "ATTACH_REBUILD_LOG"):
            attached = tuple(files)
        if self.accept("COLLATE"):
            collation = self.word_as_written()
        if self.accept("WITH"):
            options += self._database_options()
        return st.CreateDatabase(name, collation, tuple(filegroups), options, attached, line=line)

    def _filegroup_name(self) -> str:
        name = self.identifier()
        if self.accept("CONTAINS"):
            self.expect_one("FILESTREAM", "MEMORY_OPTIMIZED_DATA")
        self.accept_one("DEFAULT")
        return name

    def _file(self) -> str:
        """A file specification; returns the path of the file."""
        found = _PATH.search(self.skip_parentheses())
        return "" if found is None else found["path"].replace("''", "'")

    def alter_database(self, line: int) -> st.Statement:
        """ALTER DATABASE name | CURRENT …; ALTER DATABASE has been read."""
        if self.accept("SCOPED"):
            return self._scoped_configuration(line)
        name = "" if self.accept("CURRENT") else self.identifier()
        word = self.text
        if self.accept("COLLATE"):
            return st.AlterDatabase(name, collation=self.word_as_written(), line=line)
        if word in ("ADD", "REMOVE", "MODIFY"):
            self.advance()
            return self._files(name, word.lower(), line)
        self.expect("SET")
        options = self._database_options()
        if self.accept("WITH"):
            if self.accept("ROLLBACK"):
                if self.accept("AFTER"):
                    self.integer()
                    self.accept_one("SECONDS")
                else:
                    self.expect("IMMEDIATE")
                options += (("ROLLBACK IMMEDIATE", ""),)
            else:
                self.expect("NO_WAIT")
        return st.AlterDatabase(name, options, line=line)

    def _scoped_configuration(self, line: int) -> st.Statement:
        self.expect("CONFIGURATION")
        start = self.token.start
        self.expect_one("SET", "CLEAR")
        while self.token.kind != "e" and self.text != ";":
            self.advance()
        return st.Maintenance("scoped configuration", (self.source.text[start : self.peek(-1).end],), line=line)

    def _files(self, database: str, action: str, line: int) -> st.Statement:
        """ADD | REMOVE | MODIFY of files and filegroups, MODIFY NAME. Files themselves are ignored."""
        if action == "modify" and self.accept("NAME"):
            self.expect("=")
            return st.AlterDatabase(database, new_name=self.identifier(), line=line)
        if self.accept("FILEGROUP"):
            name = self._filegroup_name()
            if action == "modify" and self.accept("NAME"):
                self.expect("=")
                self.identifier()
            elif action == "modify":
                self.accept_one("DEFAULT", "READ_ONLY", "READ_WRITE", "AUTOGROW_ALL_FILES", "AUTOGROW_SINGLE_FILE")
            return st.AlterDatabase(database, filegroup=(action, name), line=line)
        self.accept("LOG")
        self.expect("FILE")
        if action == "remove":
            self.identifier()
            return st.AlterDatabase(database, line=line)
        self._file()
        while self.accept(","):
            self._file()
        target = ("use", self.identifier()) if self.accept("TO", "FILEGROUP") else ("", "")
        return st.AlterDatabase(database, filegroup=target, line=line)

    def _database_options(self) -> tuple[tuple[str, str], ...]:
        found = [self._database_option()]
        while self.accept(","):
            found.append(self._database_option())
        return tuple(found)

    def _database_option(self) -> tuple[str, str]:
        token = self.token
        name = self.word().upper()
        if name in _WORDS:
            return name, ""
        self.accept("=")
        if name in _CHOICES:
            return name, self.expect_one(*_CHOICES[name])
        if name in _NUMBERS:
            value = str(self.integer()) if self.token.kind in ("i", "d") else self.word()
            self.accept_one("MINUTES", "SECONDS")
            return name, value
        value = self.accept_one("ON", "OFF") if name in _SWITCHES else ""
        if self.text == "(" and name in _IN_PARENTHESES:
            details = self.skip_parentheses()
            return name, value or f"({details})"
        if not value:
            self.fail(token)
        return name, value

    # ---- schemas ------------------------------------------------------------------------------------------

    def create_schema(self, line: int) -> st.Statement:
        """CREATE SCHEMA name [AUTHORIZATION owner]; CREATE SCHEMA has been read."""
        name = "" if self.text == "AUTHORIZATION" else self.identifier()
        owner = self.identifier() if self.accept("AUTHORIZATION") else ""
        if self.text in ("GRANT", "DENY", "REVOKE", "CREATE"):
            raise self.unsupported(f"CREATE SCHEMA {self.text}")
        return st.CreateSchema(name or owner, owner, line=line)

    def alter_schema(self, line: int) -> st.Statement:
        """ALTER SCHEMA name TRANSFER [class ::] object; ALTER SCHEMA has been read."""
        name = self.identifier()
        self.expect("TRANSFER")
        kind = "OBJECT"
        if self.peek().text == "::":
            kind = self.expect_one("OBJECT", "TYPE")
            self.expect("::")
        return st.AlterSchema(name, kind.lower(), self.name(), line=line)

    # ---- partitions ---------------------------------------------------------------------------------------

    def create_partition(self, line: int) -> st.Statement:
        """PARTITION FUNCTION | SCHEME; CREATE PARTITION has been read."""
        if self.accept("SCHEME"):
            name = self.identifier()
            self.expect("AS", "PARTITION")
            function = self.identifier()
            every = self.accept("ALL")
            self.expect("TO", "(")
            groups = [self.word_as_written()]
            while self.accept(","):
                groups.append(self.word_as_written())
            self.expect(")")
            return st.CreatePartitionScheme(name, function, tuple(groups), every, line=line)
        self.expect("FUNCTION")
        name = self.identifier()
        self.expect("(")
        type_name = self.type_name()
        self.expect(")", "AS", "RANGE")
        right = self.accept_one("LEFT", "RIGHT") == "RIGHT"
        self.expect("FOR", "VALUES")
        return st.CreatePartitionFunction(name, type_name, self.call_arguments(), right, line=line)
