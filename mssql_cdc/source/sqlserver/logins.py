"""Limits the time of a login: what a driver does between a server's first answer and the end of the login.

`reach` has seen the server answer. TLS and the login itself may take long on a healthy server (a directory that checks
the password, a failover, a database that resumes), so they get the driver's login time-out, 30 s by default. A driver
may not keep to it: Microsoft's waits forever if a server hangs during TLS. So each login runs in a thread of its own,
which is left behind if the login does not end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import TypeVar

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceUnavailableError

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""How much longer than its time-out a driver may take, since its error says more than ours can."""
MOST_HANGING = 8
"""How many logins to a server may hang; they end when the server ends or closes their connections."""


def log_in(connection: Connection, catalog: str, connect: Callable[[], T]) -> T:
    """Return or raise what `connect` does, if it ends within the login time-out.

    Args:
        connection: how long a login may take; 0 s: as long as the driver allows.
        catalog: the database.
        connect: makes the connection.

    Raises:
        SourceUnavailableError: the login does not end.
    """
    if connection.login_timeout_s <= 0:
        return connect()
    name = f"login to {connection.address}"
    hanging = [one for one in threading.enumerate() if one.name == f"{name}, left behind"]
    if len(hanging) >= MOST_HANGING:
        raise too_slow(connection, catalog, f"; {len(hanging)} earlier logins still hang, so none was tried")
    ended: Queue[tuple[T | None, BaseException | None]] = Queue()

    def attempt() -> None:
        try:
            ended.put((connect(), None))
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            ended.put((None, error))

    thread = threading.Thread(target=attempt, name=name, daemon=True)
    thread.start()
    try:
        made, error = ended.get(timeout=connection.login_timeout_s + GRACE_SECONDS)
    except Empty:
        thread.name = f"{name}, left behind"
        raise too_slow(connection, catalog) from None
    if error is not None:
        raise error
    return made  # type: ignore[return-value]


def too_slow(connection: Connection, catalog: str, more: str = "") -> SourceUnavailableError:
    """The error for a login that has not ended in time.

    Args:
        connection: how long the login was allowed to take.
        catalog: the database.
        more: what else there is to say.
    """
    return SourceUnavailableError(
        f"The login to database {catalog!r} on {connection.address} did not end within {connection.login_timeout_s} s"
        f"{more}: check whether the server hangs, is starting or failing over. driver.loginTimeout sets how many "
        "seconds a login may take"
    )
