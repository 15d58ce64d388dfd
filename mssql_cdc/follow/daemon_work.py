"""Work in a daemon thread, whose result the streaming thread takes: one piece at a time, or several in turn.

For work that the next run repeats if the process ends during it: at exit, the interpreter waits for the threads of a
`ThreadPoolExecutor`, whatever they are doing. `slow_work.py` does the work for many tables in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
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
        start: Runs the work, which stores its own result; None: a daemon thread does.
    """

    name: str
    start: Start | None = None
    _future: Future[T] | None = None

    @property
    def is_free(self) -> bool:
        """Whether the next piece may begin: the result of the previous one has been taken."""
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
        """Begin a piece of work; the result of the previous one must have been taken."""
        assert self._future is None, self.name
        future = self._future = Future[T]()

        def run() -> None:
            _complete(future, work)

        if self.start is not None:
            self.start(run)
        else:
            threading.Thread(target=run, name=self.name, daemon=True).start()

    def take(self) -> T | MssqlCdcError:
        """Return the result or the error of the work that has `ended`.

        Anything that is not an error of the work, such as an interrupt, is raised: it ends the process, whichever
        thread it came in.
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


@dataclass
class DaemonQueue:
    """Does pieces of work in order, in one thread, which starts with the first of them.

    Attributes:
        name: The thread's name.
    """

    name: str
    _waiting: SimpleQueue[Callable[[], None] | None] = field(
        default_factory=SimpleQueue[Callable[[], None] | None], repr=False
    )
    _begun: bool = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Add a piece of work, and return the future of its result."""
        future = Future[T]()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                _complete(future, work)

        self._waiting.put(run)
        if not self._begun:
            self._begun = True
            threading.Thread(target=_in_turn, args=[self._waiting], name=self.name, daemon=True).start()
        return future

    def close(self) -> None:
        """End the thread after the work that waits."""
        self._waiting.put(None)


def _in_turn(waiting: SimpleQueue[Callable[[], None] | None]) -> None:
    while (run := waiting.get()) is not None:
        run()


def _complete(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 (handed to the thread that takes it)
        future.set_exception(error)
