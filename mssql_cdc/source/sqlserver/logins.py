"""Bounds a login: what a driver does between a server's first answer and the end of its login.

`reach` has seen the server answer. TLS and the login itself may take long on a healthy server (a directory that checks
the password, a failover, a database that resumes), so they have the driver's login time-out, 30 s by default. A driver
need not keep to it: Microsoft's waits for ever while a server hangs within TLS. So each login has a thread of its own,
which is left behind when it does not end.
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
"""How much longer than its time-out a driver may take, since it says more than we can."""
MOST_HANGING = 8
"""So many logins to a server may hang; they end when it does, or closes their connections."""


def log_in(connection: Connection, catalog: str, connect: Callable[[], T]) -> T:
    """What `connect` returns or raises, if it ends within the login time-out.

    Args:
        connection: how long a login may take; 0 s: as long as the driver lets it.
        catalog: the database.
        connect: makes the connection.

    Raises:
        SourceUnavailableError: it does not end.
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
    """The error of a login that has not ended in time.

    Args:
        connection: how long it might have taken.
        catalog: the database.
        more: what else there is to say.
    """
    return SourceUnavailableError(
        f"The login to database {catalog!r} on {connection.address} did not end within {connection.login_timeout_s} s"
        f"{more}: check whether the server hangs, is starting or failing over. driver.loginTimeout sets how many "
        "seconds a login may take"
    )
