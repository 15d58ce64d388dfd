"""Sends run events with OpenLineage's client, in its own thread: capture never waits for a transport."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from mssql_cdc.errors import ConfigurationError

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

_MOST_WAITING = 10_000
_FILE = "openlineage.integration.config.file.path"

Make = Callable[[], "RunEvent"]
"""Builds an event in the thread that sends it, so that nothing that goes wrong there reaches capture."""


def open_client(file: str, log: Callable[[str], None]) -> OpenLineageClient:
    """Open the client that a file configures.

    Args:
        file: The file, `openlineage.yml`.
        log: Receives the events of the transport `console`.

    Raises:
        ConfigurationError: The file cannot be read, or the client refuses it.
    """
    import yaml
    from openlineage.client import OpenLineageClient
    from openlineage.client.serde import Serde
    from openlineage.client.transport import Transport

    class Console(Transport):
        """The transport `console`, which shows its events where this process shows everything else."""

        kind = "console"

        def emit(self, event: Any) -> None:
            log(Serde.to_json(event))

    try:
        config = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(
            f"{_FILE}: {file} cannot be read ({type(error).__name__}); expected the configuration of OpenLineage's "
            "client in YAML, such as `transport: {type: console}`"
        ) from None
    if not isinstance(config, dict) or "transport" not in config:
        raise ConfigurationError(f"{_FILE}: {file} names no transport; expected one, as `transport: {{type: console}}`")
    try:
        client = OpenLineageClient(config=cast("dict[str, Any]", config))
    except Exception as error:  # noqa: BLE001 (each transport has errors of its own)
        raise ConfigurationError(f"{_FILE}: OpenLineage's client refuses {file}: {error}") from None
    if client.transport.kind == Console.kind:
        client.transport = Console()
    return client


class LineageSender:
    """Sends what it is given, in order; and a keep-alive event whenever there was nothing to send for some time."""

    def __init__(
        self, client: OpenLineageClient, *, alive: Make, alive_seconds: float, log: Callable[[str], None]
    ) -> None:
        """Start the thread.

        Args:
            client: The client.
            alive: Builds the keep-alive event.
            alive_seconds: The time without an event after which it is sent.
            log: Receives the first of a series of errors.
        """
        self._client, self._alive, self._alive_seconds, self._log = client, alive, alive_seconds, log
        self._waiting: SimpleQueue[Make | None] = SimpleQueue()
        self._is_full = self._failed = self._is_over = False
        self._thread = Thread(target=self._run, name="lineage", daemon=True)
        self._thread.start()

    def send(self, make: Make) -> None:
        """Send an event soon; it is dropped if too many wait."""
        was_full, self._is_full = self._is_full, self._waiting.qsize() >= _MOST_WAITING
        if not self._is_full:
            self._waiting.put(make)
        elif not was_full:
            self._log(f"OpenLineage: {_MOST_WAITING} events wait for the transport; further ones are dropped")

    def close(self, last: Make, *, patience: float) -> None:
        """Send a last event after those that wait, and end the thread; what is not sent in time is dropped.

        Args:
            last: Builds the event.
            patience: The maximum number of seconds to wait.
        """
        self._waiting.put(last)
        self._waiting.put(None)
        self._thread.join(patience)
        if self._thread.is_alive():
            self._is_over = True
            self._log(f"OpenLineage: the transport has not taken all events within {patience:g} s; the rest is lost")

    def _run(self) -> None:
        while not self._is_over:
            try:
                make = self._waiting.get(timeout=self._alive_seconds)
            except Empty:
                make = self._alive
            if make is None:
                break
            self._emit(make)
        with suppress(Exception):  # Nothing can be done about it, and nothing depends on it.
            self._client.close(0)

    def _emit(self, make: Make) -> None:
        try:
            self._client.emit(make())
        except Exception as error:  # noqa: BLE001 (any: lineage must not end capture)
            if not self._failed:
                self._log(f"OpenLineage: events cannot be sent; capture continues without them: {error}")
            self._failed = True
        else:
            self._failed = False
