"""The server that tests run against: a sandbox of their own, or the SQL Server that `MSSQL_TEST_URL` names.

The variable holds the ODBC connection string of a sysadmin, without DATABASE. SQL Server Agent must run there.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mssql_sandbox.address import Address
from mssql_sandbox.process import sandbox_process

from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote

VARIABLE = "MSSQL_TEST_URL"
NEEDS_SANDBOX = f"needs the sandbox's clock, faults or statement log, and {VARIABLE} names another server"
_PAIR = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)\s*(?:;|$)")
_YES = {"yes", "true", "1", "mandatory"}


@dataclass(frozen=True)
class Server(Address):
    """How to reach a server, with the connector properties that its TLS needs.

    `settle_seconds` is how long its capture job may take for what was written; `is_sandbox` says whether the
    procedures of schema `sandbox` are there.
    """

    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    settle_seconds: float = 30
    is_sandbox: bool = True

    def database(self, number: int) -> str:
        """A name for a test's database; one that no other run uses where others use the server too."""
        return f"place{number}" if self.is_sandbox else f"mssql_cdc_{uuid.uuid4().hex[:10]}_{number}"


def configured() -> str | None:
    """What `MSSQL_TEST_URL` says; None when it is not set."""
    return os.environ.get(VARIABLE) or None


@contextmanager
def open_server(folder: Path) -> Iterator[Server]:
    """The configured server, or a sandbox that runs until the block ends."""
    address = configured()
    if address is not None:
        yield server_of(address)
        return
    with sandbox_server(folder) as server:
        yield server


@contextmanager
def sandbox_server(folder: Path, *options: str) -> Iterator[Server]:
    """A sandbox whatever is configured; `options` are those of `mssql-sandbox`."""
    with sandbox_process(folder, "--capture-interval", "0.2", *options) as process:
        yield Server(process.host, process.port, process.user, process.password, {"driver.encrypt": "false"})


def grant(right: str, name: str, database: str) -> str:
    """What grants a right to a user of a database, or to the login of that name in `master`, as the server wants it."""
    statement = f"GRANT {right} TO {quote(name)}"
    return f"USE master; {statement}; USE {quote(database)}" if right.startswith("VIEW SERVER") else statement


def drop_database(master: Control, name: str) -> None:
    """Drop a test's database if it is still there; what is connected to it is cut off.

    A database that stays is scanned by its capture job five times a second and searched by queries about all databases:
    with 150 of them, the sandbox spends a fifth of a core on nothing and twice the time on each test.
    """
    quoted, text = quote(name), name.replace("'", "''")
    for action in (f"ALTER DATABASE {quoted} SET SINGLE_USER WITH ROLLBACK IMMEDIATE", f"DROP DATABASE {quoted}"):
        master.execute(f"IF DB_ID(N'{text}') IS NOT NULL {action}", doing="tidying a test")


def server_of(address: str) -> Server:
    """The server of an ODBC connection string.

    Raises:
        ValueError: it names no server or no login; the message never repeats the text.
    """
    pairs = {key.lower(): _unbraced(value) for key, value in _PAIR.findall(address)}
    missing = [key for key in ("server", "uid", "pwd") if not pairs.get(key)]
    if missing:
        raise ValueError(f"{VARIABLE} lacks {', '.join(missing).upper()}; expected SERVER=host,1433;UID=…;PWD=…")
    host, _, port = pairs["server"].removeprefix("tcp:").partition(",")
    trusted = pairs.get("trustservercertificate", "no").lower() in _YES
    properties = {
        "driver.encrypt": "true" if pairs.get("encrypt", "yes").lower() in _YES else "false",
        **({"driver.trustServerCertificate": "true"} if trusted else {}),  # FreeTDS refuses to be asked for a check.
    }
    return Server(
        host, int(port or pairs.get("port", "1433")), pairs["uid"], pairs["pwd"], properties, 120, is_sandbox=False
    )


def _unbraced(value: str) -> str:
    return value[1:-1].replace("}}", "}") if value.startswith("{") else value
