"""`sys.messages` [doc]: the messages that the sandbox knows, with their placeholders."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.cdc_messages import MESSAGES


def _messages(_scope: Scope) -> Iterator[tuple]:
    for number, (severity, text) in sorted(MESSAGES.items()):
        yield (number, severity, text)


VIEWS = (
    view(
        "sys.messages",
        "message_id int, language_id smallint = 1033, severity tinyint?, is_event_logged bit = 0, text nvarchar(2048)",
        _messages,
    ),
)
