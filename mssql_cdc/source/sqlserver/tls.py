"""What to do about a refused TLS connection: the advice names the properties that take effect in this configuration."""

from __future__ import annotations

import re

from mssql_cdc.config import Connection
from mssql_cdc.config.driver_given import advised

_MICROSOFT = "ODBC Driver 18 for SQL Server"


def turn_off(connection: Connection | None, *, driver: str = _MICROSOFT) -> str:
    """What to do if a server does not encrypt.

    Args:
        connection: the configuration; None: there is none.
        driver: the ODBC driver.
    """
    given = connection.given_settings if connection else ()
    off = advised(given, "encrypt", "false", otherwise="database", driver=driver)
    return f"Install a certificate on the server, or turn encryption off with {off}"


def remedy(text: str, connection: Connection | None) -> str | None:
    """What to do about a message of Microsoft's driver; None if it is about something else. FreeTDS gives no reason.

    Args:
        text: the message.
        connection: the configuration; None: there is none.
    """
    given = connection.given_settings if connection else ()
    if "Encryption not supported" in text:
        return f"The server does not encrypt connections. {turn_off(connection)}"
    if "SSL Provider" not in text:
        return None
    if re.search(r"host ?name|subject name", text, re.IGNORECASE):
        name = advised(given, "hostNameInCertificate", otherwise="driver", driver=_MICROSOFT)
        return f"Set {name} to the certificate's host name"
    if "certificate" in text:
        own = advised(given, "serverCertificate", otherwise="driver", driver=_MICROSOFT)
        trust = advised(given, "trustServerCertificate", "true", otherwise="driver", driver=_MICROSOFT)
        strict = any(one.setting == "encrypt" and one.meaning == "strict" for one in given)
        last = "" if strict else f", or accept any certificate with {trust}"  # In strict mode it would be ignored.
        return (
            "The server's certificate is not trusted: install its certificate authority on this machine"
            f"{' or' if strict else ','} set {own} to the certificate's file{last}"
        )
    if re.search(r"unsupported protocol|wrong version|no protocols", text):
        return "The server and this machine have no TLS version in common: update the server or its TLS settings"
    return None
