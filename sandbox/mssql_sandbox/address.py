"""The address of a server, as connection strings for each kind of client."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote_plus


@dataclass(frozen=True)
class Address:
    """Host, port and credentials of a server."""

    host: str
    port: int
    user: str
    password: str

    def odbc(self, database: str = "master", *, driver: str = "FreeTDS") -> str:
        """A connection string for pyodbc and other ODBC clients.

        Args:
            database: the database to connect to.
            driver: name or library of an ODBC driver: FreeTDS, or one of Microsoft's.
        """
        login = f"DATABASE={_braced(database)};UID={self.user}"
        if "freetds" in driver.lower() or "tdsodbc" in driver.lower():
            # FreeTDS reads up to the last closing brace and does not undo doubling.
            place = f"SERVER={self.host};PORT={self.port};TDS_Version=7.4;ClientCharset=UTF-8"
            return f"DRIVER={_braced(driver)};{login};PWD={{{self.password}}};{place}"
        place = f"SERVER={self.host},{self.port};Encrypt=no;TrustServerCertificate=yes"
        return f"DRIVER={_braced(driver)};{login};PWD={_braced(self.password)};{place}"

    def sqlalchemy(self, database: str = "master", *, driver: str = "FreeTDS") -> str:
        """A URL for SQLAlchemy's `create_engine`, with pyodbc; the arguments are those of `odbc`."""
        return f"mssql+pyodbc:///?odbc_connect={quote_plus(self.odbc(database, driver=driver))}"

    def jdbc(self, database: str = "master") -> str:
        """A URL for Microsoft's JDBC driver."""
        login = f"user={_braced(self.user)};password={_braced(self.password)}"
        options = "encrypt=false;trustServerCertificate=true"
        return f"jdbc:sqlserver://{self.host}:{self.port};databaseName={_braced(database)};{login};{options}"


def _braced(text: str) -> str:
    return "{" + text.replace("}", "}}") + "}"
