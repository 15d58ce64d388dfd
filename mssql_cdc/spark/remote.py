"""Sessions on a Spark Connect server: attaching to one, private sessions, canceling jobs.

The server owns the JVM, so nothing that is done with such a session may need one. `spark/server.py` starts a server.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from typing import TYPE_CHECKING, Any

from mssql_cdc import __version__
from mssql_cdc.errors import ConfigurationError, SourceUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 (Spark's name of the variable, no token)
"""Spark's own variable: the server requires the token that it holds, and the client sends it."""
PARALLELISM = "spark.default.parallelism"
_FOUND_PARALLELISM = "spark.mssql_cdc.parallelism"
_USER = "mssql_cdc"
_SESSIONS = 1_000
_EXTRA = "pip install 'mssql-cdc[connect]'"


def is_remote(session: SparkSession) -> bool:
    """Whether a Spark Connect server runs the session's jobs."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def attach(url: str) -> SparkSession:
    """Attach to the session that all runs of this version share: its Python workers are already running.

    Args:
        url: `sc://host:port`, optionally with parameters; a `session_id` among them determines the session.

    Raises:
        ConfigurationError: The packages of the client are missing, or the server refuses the token.
        SourceUnavailableError: No server answers.
    """
    try:
        # Turns Delta's conflicts into the same exceptions as those of a session with a JVM.
        import delta.connect  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from pyspark.errors.exceptions.connect import SparkConnectGrpcException
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as RemoteSession
    except ImportError as error:
        raise ConfigurationError(f"spark.remote needs more packages ({error}): {_EXTRA}") from error
    for number in range(_SESSIONS):
        session: Any = RemoteSession.builder.remote(named_session(url, number)).create()
        session.release_session_on_close = False
        # By default, requests to a server that is gone are silently retried for ten minutes.
        session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=2_000)])
        try:
            session.conf.set("spark.sql.session.timeZone", "UTC")
        except Exception as error:
            session.stop()
            if isinstance(error, SparkConnectGrpcException) and "INVALID_HANDLE.SESSION" in str(error):
                continue  # The server has ended that session; its name cannot be used again.
            raise _refused(url, error) from error
        return session
    raise SourceUnavailableError(f"The Spark Connect server {_shown(url)} has ended every session; restart it")


def private(session: SparkSession) -> SparkSession:
    """Open a separate session on the same server; `end` releases it."""
    shared: Any = session
    clone = shared.cloneSession()
    clone.release_session_on_close = True  # PySpark forgets to set it, and then cannot stop the clone.
    clone.client.set_retry_policies(shared.client.get_retry_policies())
    _clones(session).add(clone)
    return clone


def end(clone: SparkSession, session: SparkSession) -> None:
    """Release a private session and its workers.

    Args:
        clone: What `private` returned.
        session: The session that it is a clone of.
    """
    _clones(session).discard(clone)
    clone.stop()


def cancel(session: SparkSession) -> None:
    """Cancel the jobs that this process runs in the session and its private ones, but none of other processes."""
    for one in (session, *_clones(session)):
        one.interruptTag(_tag())


def mark(session: SparkSession) -> None:
    """Let `cancel` find the jobs that this thread starts from now on, in the session and its private ones."""
    for one in (session, *_clones(session)):
        one.addTag(_tag())


def _tag() -> str:
    """The tag of this process's jobs, since the session is shared."""
    return f"mssql_cdc-{socket.gethostname()}-{os.getpid()}"


def parallelism(session: SparkSession) -> int:
    """The number of tasks that the server runs at a time: only it knows how many cores there are."""
    try:
        known = session.conf.get(PARALLELISM, None) or session.conf.get(_FOUND_PARALLELISM, None)
        if known is None:
            known = session.range(0, 1_000).selectExpr("spark_partition_id() AS part").distinct().count()
            session.conf.set(_FOUND_PARALLELISM, str(known))
    except Exception as error:
        raise gone(error) from error
    return int(known)


def answers(session: SparkSession) -> bool:
    """Whether the server still knows the session: one that was restarted does not."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception:  # noqa: BLE001 (whatever the reason, the session cannot be used)
        return False
    return True


def gone(error: Exception, url: str = "") -> SourceUnavailableError:
    """The error for a server that does not answer."""
    found = re.search(r'details = "(.*?)"', f"{error} {error.__cause__ or error.__context__ or ''}")
    why, named = f" ({found[1][:300]})" if found else "", f" {_shown(url)}" if url else ""
    return SourceUnavailableError(
        f"The Spark Connect server{named} does not answer{why}. Start it with mssql-cdc spark-server. With a token, "
        "the client uses TLS unless the host is 'localhost'"
    )


def _clones(session: SparkSession) -> set[SparkSession]:
    found: set[SparkSession] = session.__dict__.setdefault("_mssql_cdc_clones", set())
    return found


def named_session(url: str, number: int) -> str:
    """The URL with the name of the `number`-th shared session."""
    text = url.rstrip(";")
    parameters = text.partition("://")[2].partition("/;")[2]
    given = {part.partition("=")[0] for part in parameters.split(";")}
    named = text if parameters else f"{text.rstrip('/')}/"
    if "user_id" not in given:
        named += f";user_id={_USER}"
    if "session_id" not in given:
        # Workers hold the modules of this version.
        named += f";session_id={uuid.uuid5(uuid.NAMESPACE_URL, f'mssql_cdc {__version__} {number}')}"
    elif number:
        raise ConfigurationError(f"The server has ended the session that {_shown(url)} names; name another one")
    return named


def _shown(url: str) -> str:
    """The URL without its parameters, one of which may be a token."""
    return url.partition("/;")[0]


def _refused(url: str, error: Exception) -> Exception:
    text = str(error)
    if "UNAUTHENTICATED" in text or "PERMISSION_DENIED" in text or "invalid token" in text.lower():
        return ConfigurationError(
            f"The Spark Connect server {_shown(url)} refuses the token: {TOKEN_VARIABLE} must be the same for both"
        )
    return gone(error, url)
