"""A Spark session that starts on first use, or in advance, in a thread, while its user does something else.

See `session.py` for what a session is and how it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

from mssql_cdc.spark.remote import answers, is_remote
from mssql_cdc.spark.session import active_session, has_ended, stop_session, verify_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LazySpark:
    """Starts Spark on first use, so that a run without rows, a sensor or a check never starts a JVM.

    `begin` starts it in advance, in a thread. If the process already has a session, that one is used and left running.
    A session whose JVM was killed is replaced.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._found = active_session()  # Here, since Spark's answer depends on the thread.
        self._starting: Future[SparkSession] | None = None
        self._lock = Lock()
        self._stopped = False

    def begin(self) -> None:
        """Start the session in a thread, unless this was done. An error is raised where the session is needed."""
        self._begun()

    def _begun(self) -> Future[SparkSession] | None:
        with self._lock:
            session = self._session
            if session is not None and has_ended(session):
                self._found = self._starting = None
            if self._found is None and self._starting is None and not self._stopped:
                pool = ThreadPoolExecutor(1, thread_name_prefix="spark")
                self._starting = pool.submit(self._start)
                pool.shutdown(wait=False)
            return self._starting

    def __call__(self) -> SparkSession:
        """Return the session, starting it if necessary.

        Raises:
            ConfigurationError: Spark could not start, or the process's session lacks Delta.
        """
        running = self.running
        if running is not None and is_remote(running) and not answers(running):
            self._starting = None  # The server was restarted; it has other sessions.
        begun = self._begun()
        if begun is not None:
            try:
                return begun.result()
            except Exception:
                # What failed may work next time: a server, a Maven repository, a disk that was full.
                with self._lock:
                    if self._starting is begun:
                        self._starting = None
                raise
        assert self._found is not None  # otherwise it was begun
        verify_session(self._found)
        return self._found

    @property
    def is_ready(self) -> bool:
        """Whether a call returns, or fails, at once. If not, the session starts in a thread from now on."""
        begun = self._begun()
        return begun is None or begun.done()

    @property
    def running(self) -> SparkSession | None:
        """The session, if there is one now."""
        session = self._session
        return None if session is None or has_ended(session) else session

    @property
    def _session(self) -> SparkSession | None:
        begun = self._starting
        if begun is None:
            return self._found
        return begun.result() if begun.done() and begun.exception() is None else None

    def stop(self) -> None:
        """Stop the session if it was started here; if it is still starting, wait for it first."""
        with self._lock:
            self._stopped = True
        begun = self._starting
        if begun is not None and begun.exception() is None:
            stop_session(begun.result())


def is_ready(spark: Callable[[], SparkSession]) -> bool:
    """Whether `spark()` returns at once. If not, the session starts in a thread from now on."""
    return not isinstance(spark, LazySpark) or spark.is_ready


def running(spark: Callable[[], SparkSession]) -> SparkSession | None:
    """The session, if there is one now; none is started."""
    return spark.running if isinstance(spark, LazySpark) else spark()
