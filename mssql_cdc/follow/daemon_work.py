"""One piece of work at a time in a daemon thread, whose result the thread that streams takes.

For work that the next run repeats if the process ends within it. `slow_work.py` does the work of many tables in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from mssql_cdc.errors import MssqlCdcError, TaskError
from mssql_cdc.spark.tasks import described

T = TypeVar("T")
Start = Callable[[Callable[[], None]], None]


@dataclass
class DaemonWork(Generic[T]):
    """Does one piece of work at a time.

    Attributes:
        name: What the work is called, in the thread's name and in errors.
        start: Runs the work, which stores its own result; None: in a daemon thread.
    """

    name: str
    start: Start | None = None
    _future: Future[T] | None = None

    @property
    def is_free(self) -> bool:
        """Whether the next piece may begin: the one before has been taken."""
        return self._future is None

    @property
    def runs(self) -> bool:
        """Whether the work is being done."""
        return self._future is not None and not self._future.done()

    @property
    def ended(self) -> bool:
        """Whether there is a result to take."""
        return self._future is not None and self._future.done()

    def begin(self, work: Callable[[], T]) -> None:
        """Begin a piece of work; the one before must have been taken."""
        assert self._future is None, self.name
        future = self._future = Future[T]()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 (handed to the thread that takes it)
                future.set_exception(error)

        if self.start is not None:
            self.start(run)
        else:
            threading.Thread(target=run, name=self.name, daemon=True).start()

    def take(self) -> T | MssqlCdcError:
        """Return the result or the error of the work that has `ended`.

        What is no error of the work, such as an interrupt, is raised: it ends the process, whichever thread it came in.
        """
        assert self._future is not None, self.name
        future, self._future = self._future, None
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, Exception):
            raise error
        return error if isinstance(error, MssqlCdcError) else TaskError(f"The {self.name} failed: {described(error)}")

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the work; return whether it has ended, or there is none.

        Args:
            seconds: How long, at most.
        """
        return self._future is None or not wait([self._future], timeout=seconds).not_done
