"""An endpoint of OpenLineage, and the file in which its client finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

Told = dict[str, Any]


def to_file(folder: Path) -> tuple[str, Path]:
    """The client's configuration that appends events to a file, and that file."""
    events = folder / "lineage.jsonl"
    return configured(folder, f"type: file\n  log_file_path: {events}\n  append: true"), events


def configured(folder: Path, transport: str) -> str:
    """The path of a configuration with this transport."""
    path = folder / "openlineage.yml"
    path.write_text(f"transport:\n  {transport}\n", encoding="utf-8")
    return str(path)


def read_events(path: Path) -> list[Told]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def states(events: Sequence[Told]) -> list[tuple[str, list[str]]]:
    """The state and the inputs of each event."""
    return [(one["eventType"], [dataset["name"] for dataset in one["inputs"]]) for one in events]


@dataclass
class Endpoint:
    """What it was told; it answers only while `answers` is set, and `asked` is set with the first request."""

    url: str = ""
    events: list[Told] = field(default_factory=list[Told])
    asked: Event = field(default_factory=Event)
    answers: Event = field(default_factory=Event)


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """An HTTP server that takes events at `/api/v1/lineage`."""
    found = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.asked.set()
            found.answers.wait()
            if self.path == "/api/v1/lineage":
                found.events.append(json.loads(body))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    found.answers.set()
    try:
        yield found
    finally:
        found.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
