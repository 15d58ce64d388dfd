"""Where the real drivers are, and how they are told to connect."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyodbc
import pytest

from tests.tds.scripted import PASSWORD


@dataclass(frozen=True)
class Driver:
    """An ODBC driver and how its connection strings are written."""

    name: str
    library: str
    address: Callable[[int], str]
    encrypted: str
    clear: str

    def connection_string(self, port: int, *, password: str = PASSWORD, encrypt: bool = False, more: str = "") -> str:
        """For user sa on loopback."""
        encryption = self.encrypted if encrypt else self.clear
        return f"DRIVER={self.library};{self.address(port)};UID=sa;PWD={{{password}}};{encryption}{more}"

    def connect(
        self, port: int, *, encrypt: bool = False, autocommit: bool = True, more: str = ""
    ) -> pyodbc.Connection:
        """A pyodbc connection."""
        text = self.connection_string(port, encrypt=encrypt, more=more)
        return pyodbc.connect(text, autocommit=autocommit, timeout=10)


def microsoft_library() -> str:
    """The shared library of the wheel mssql-python-odbc, or nothing."""
    try:
        import mssql_python_odbc
    except ImportError:
        return ""
    found = Path(mssql_python_odbc.get_libs_dir()).glob("linux/debian_ubuntu/x86_64/lib/libmsodbcsql-*.so*")
    return str(next(found, ""))


@functools.cache
def driver(name: str) -> Driver:
    """The driver of that name; skips the test where it is not installed."""
    if name == "FreeTDS":
        if name not in pyodbc.drivers():
            pytest.skip("the FreeTDS ODBC driver is not installed (Debian: tdsodbc)")
        return Driver(
            name, name, lambda port: f"SERVER=127.0.0.1;PORT={port};TDS_Version=7.4;ClientCharset=UTF-8",
            "Encryption=require;", "",
        )  # fmt: skip
    library = microsoft_library()
    if not library:
        pytest.skip("Microsoft's ODBC driver is not installed (PyPI: mssql-python-odbc)")
    return Driver(
        name, library, lambda port: f"SERVER=127.0.0.1,{port};TrustServerCertificate=yes",
        "Encrypt=yes;", "Encrypt=no;",
    )  # fmt: skip


DRIVERS = ("FreeTDS", "msodbcsql")
