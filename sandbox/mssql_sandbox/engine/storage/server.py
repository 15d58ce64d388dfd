"""The server: databases, logins, configuration, and what all of them share (clock, locks, transactions).

What does not belong here: sessions, the wire, the system catalog (`catalog` is a hook that the server part fills).
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.collation import Collation, collation_named
from mssql_sandbox.engine.locks import LockManager
from mssql_sandbox.engine.product import ProductVersion
from mssql_sandbox.engine.replica import Replica
from mssql_sandbox.engine.storage.database import SYSTEM_DATABASES, Database
from mssql_sandbox.engine.storage.objects import NameMap
from mssql_sandbox.engine.transaction_manager import TransactionManager
from mssql_sandbox.errors import error

DEFAULT_COLLATION = "SQL_Latin1_General_CP1_CI_AS"
_FIRST_USER_DATABASE_ID = 5


@dataclass(slots=True)
class Login:
    """A server login; members of sysadmin may do everything."""

    name: str
    password: str
    principal_id: int
    server_roles: set[str] = field(default_factory=set)
    default_database: str = "master"
    disabled: bool = False
    must_change: bool = False
    """Whether the next login must set a new password."""
    permissions: set[str] = field(default_factory=set)
    sid: bytes = field(default_factory=lambda: os.urandom(16))
    create_date: int = 0


class Server:
    """All state of one stand-in server."""

    def __init__(
        self,
        *,
        name: str = "SANDBOX",
        collation: str = DEFAULT_COLLATION,
        clock: Clock | None = None,
        version: ProductVersion | None = None,
    ) -> None:
        self.name = name
        self.clock = clock or Clock()
        self.version = version or ProductVersion()
        self.collation: Collation = collation_named(collation)
        self.locks = LockManager()
        self.transactions = TransactionManager(self.clock, self.locks)
        self.databases: NameMap[Database] = NameMap(self.collation)
        self.detached: dict[str, Database] = {}
        """Detached databases by the path of their first file, case-folded."""
        self.logins: NameMap[Login] = NameMap(self.collation)
        self.config: dict[str, int] = {
            "max text repl size (B)": 65536, "clr enabled": 0, "show advanced options": 0, "user options": 0,
            "default language": 0, "nested triggers": 1, "max degree of parallelism": 0,
            "contained database authentication": 0,
        }  # fmt: skip
        self.trace_flags: set[int] = set()
        self.catalog: Any = None
        self.agent_running = True
        self.start_time = self.clock.local_datetime()
        self.sessions: dict[int, Any] = {}
        self.replica = Replica(self.transactions, self.clock, self._reads_only)
        self.transactions.replica = self.replica
        self.instance_id = uuid.uuid4()
        self._next_principal_id = 2
        for number, system in enumerate(SYSTEM_DATABASES, 1):
            self.databases[system] = Database(self, system, number, collation=self.collation)
            self.databases[system].options.compatibility_level = self.version.compatibility_level
        self.databases["tempdb"].options.recovery_model = "SIMPLE"

    def _reads_only(self, spid: int) -> bool:
        session = self.sessions.get(spid)
        return session is not None and session.read_only_intent

    def add_login(self, name: str, password: str, *, server_roles: set[str] | None = None) -> Login:
        """A new login; error 15025 if the name is taken."""
        if name in self.logins:
            raise error(15025, name=name)
        login = Login(name, password, self._next_principal_id, server_roles or set())
        login.create_date = self.clock.local_datetime()
        if name.lower() == "sa":
            login.principal_id, login.sid = 1, b"\x01"
            login.server_roles.add("sysadmin")
        else:
            self._next_principal_id = max(self._next_principal_id + 1, 257)
        self.logins[name] = login
        return login

    def database(self, name: str) -> Database:
        """The database; error 911 if there is none."""
        database = self.databases.get(name)
        if database is None:
            raise error(911, name=name)
        return database

    def database_by_id(self, database_id: int) -> Database | None:
        """The database with this id, or None."""
        return next((db for db in self.databases.values() if db.id == database_id), None)

    def create_database(self, name: str, *, collation: Collation | None = None) -> Database:
        """A new database with the lowest free id; error 1801 if the name is taken."""
        if name in self.databases:
            raise error(1801, name=name)
        taken = {database.id for database in (*self.databases.values(), *self.detached.values())}
        number = next(n for n in range(_FIRST_USER_DATABASE_ID, 32767) if n not in taken)
        database = Database(self, name, number, collation=collation or self.collation)
        database.options.compatibility_level = self.version.compatibility_level
        self.databases[name] = database
        return database

    def drop_database(self, name: str) -> Database:
        """Remove a database; errors 3701 (unknown), 3708 (system); 3702 (in use) is the session's check."""
        database = self.databases.get(name)
        if database is None:
            raise error(3701, kind="database", name=name, state=1)
        if database.is_system:
            raise error(3708, kind="database", name=name)
        self.databases.pop(name)
        return database

    def rename_database(self, database: Database, new_name: str) -> None:
        """ALTER DATABASE … MODIFY NAME; error 1801 if the name is taken."""
        if new_name in self.databases and self.databases[new_name] is not database:
            raise error(1801, name=new_name)
        self.databases.pop(database.name)
        database.name = new_name
        self.databases[new_name] = database
