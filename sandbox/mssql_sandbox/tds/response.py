"""From a session's events to one response message: the tokens, their order, and their bits.

The last DONE of a response must be marked as the last, which is known only when the next event comes or the events end:
one DONE is always held back.
"""

import itertools
from collections.abc import Iterator, Mapping

from mssql_sandbox.engine.events import (
    Columns,
    Done,
    EnvChange,
    Event,
    Message,
    Order,
    OutputParameter,
    ProcDone,
    ReturnStatus,
    Rows,
    Sources,
)
from mssql_sandbox.errors import FATAL_SEVERITY
from mssql_sandbox.tds import tokens
from mssql_sandbox.tds.packets import PacketWriter
from mssql_sandbox.tds.row_encoder import RowEncoder, row_encoder
from mssql_sandbox.tds.tokens import DoneStatus, DoneToken, EnvironmentType

SLICE_BYTES = 256 * 1024

_TEXT_CHANGES: Mapping[str, EnvironmentType] = {
    "database": EnvironmentType.DATABASE,
    "language": EnvironmentType.LANGUAGE,
}
_BYTE_CHANGES: Mapping[str, EnvironmentType] = {
    "begin": EnvironmentType.BEGIN,
    "commit": EnvironmentType.COMMIT,
    "rollback": EnvironmentType.ROLLBACK,
    "collation": EnvironmentType.COLLATION,
    "reset": EnvironmentType.RESET,
}
_MORE = DoneStatus.MORE.value
_STATUSES: Mapping[tuple[bool, bool, bool], int] = {
    (error, in_transaction, counted): DoneStatus.ERROR * error
    + DoneStatus.IN_TRANSACTION * in_transaction
    + DoneStatus.COUNT * counted
    for error, in_transaction, counted in itertools.product((False, True), repeat=3)
}
"""Bits of a DONE that is not yet known to be the last: of an error, inside a transaction, with a count of rows."""


class Response:
    """The tokens of the answer to one request, collected in a packet writer.

    `rpc` makes the answer end with DONEPROC. Columns are always described: Microsoft's ODBC driver sets
    fNoMetaData on calls whose columns it has never seen, and hangs when it is taken at its word (measured).
    """

    def __init__(self, writer: PacketWriter, *, server_name: str, rpc: bool = False) -> None:
        self._writer = writer
        self._server_name = server_name
        self._rpc = rpc
        self._held: tuple[DoneToken, int, str, int] | None = None
        self._encode: RowEncoder | None = None
        self._failed = False
        self.fatal = False

    def start_call(self) -> None:
        """Another remote procedure call of the same message begins."""
        self._failed = False

    def add(self, event: Event) -> Iterator[None]:
        """Write the tokens of an event; pauses, between two tokens, whenever a slice is complete."""
        if isinstance(event, Rows):
            yield from self._rows(event.rows)
            return
        if isinstance(event, Done):
            self._hold_statement(event)
        elif isinstance(event, ProcDone):
            self._hold_procedure(error=event.error, in_transaction=event.in_transaction)
        else:
            self._release(_MORE)
            self._writer.add(self._token(event))
        if self._writer.pending >= SLICE_BYTES:
            yield

    def end_call(self, *, in_transaction: bool) -> None:
        """A remote procedure call ends: make sure that its last token is DONEPROC."""
        if not self.fatal and (self._held is None or self._held[0] is not DoneToken.DONEPROC):
            self._hold_procedure(error=self._failed, in_transaction=in_transaction)

    def finish(self, *, in_transaction: bool) -> None:
        """The response is complete: release the last DONE, or add one.

        Behind a fatal error that is DONE_SRVERROR [doc: MS-TDS 2.2.7.6, instead of DONE_ERROR]: clients add "a severe
        error occurred on the current command" and give the connection up [wire: SqlClient, go-mssqldb].
        """
        if self.fatal:
            self._release(_MORE)
            self._writer.add(tokens.done(DoneToken.DONEPROC if self._rpc else DoneToken.DONE, DoneStatus.SEVERE))
            return
        if self._held is None or self._held[0] is DoneToken.DONEINPROC:
            if self._rpc:
                self._hold_procedure(error=self._failed, in_transaction=in_transaction)
            else:
                self._hold(DoneToken.DONE, error=self._failed, in_transaction=in_transaction)
        self._release(0)

    def abandon(self) -> None:
        """The client cancelled: end the response here, as an error."""
        self._release(_MORE)
        self._writer.add(tokens.done(DoneToken.DONE, DoneStatus.ERROR))

    def _rows(self, rows: list[tuple]) -> Iterator[None]:
        if self._encode is None:
            raise RuntimeError("rows without a description of their columns")
        remaining = iter(rows)
        complete = False
        while not complete:
            complete = self._encode(remaining, self._writer.payload, SLICE_BYTES)
            if self._writer.pending >= SLICE_BYTES:
                yield

    def _token(self, event: Event) -> bytes:
        match event:
            case Columns(columns):
                self._encode = row_encoder(tuple(column.type for column in columns))
                return tokens.column_metadata(columns)
            case Message():
                return self._message(event)
            case EnvChange():
                return environment_change(event)
            case Order(columns):
                return tokens.order(columns)
            case Sources():
                return tokens.sources(event)
            case ReturnStatus(value):
                return tokens.return_status(value)
            case OutputParameter(name, ordinal, type_, value):
                return tokens.return_value(ordinal, name, type_, value)
        raise TypeError(f"{type(event).__name__} is no event of a session")

    def _message(self, event: Message) -> bytes:
        if event.severity > 10:
            self._failed = True
        if event.severity >= FATAL_SEVERITY:
            self.fatal = True
        return tokens.message(
            event.number, event.state, event.severity, event.text,
            server=self._server_name, procedure=event.procedure, line=event.line,
        )  # fmt: skip

    def _hold_statement(self, event: Done) -> None:
        token = DoneToken.DONEINPROC if event.in_procedure or self._rpc else DoneToken.DONE
        self._hold(
            token, error=event.error, in_transaction=event.in_transaction, command=event.command, count=event.count
        )

    def _hold_procedure(self, *, error: bool, in_transaction: bool) -> None:
        self._hold(DoneToken.DONEPROC, error=error, in_transaction=in_transaction, command="execute")

    def _hold(
        self, token: DoneToken, *, error: bool, in_transaction: bool, command: str = "", count: int | None = None
    ) -> None:
        self._release(_MORE)
        self._held = token, _STATUSES[error, in_transaction, count is not None], command, count or 0
        self._failed = False

    def _release(self, more: int) -> None:
        if self._held is not None:
            token, status, command, count = self._held
            self._writer.add(tokens.done(token, status | more, command=command, count=count))
            self._held = None


def environment_change(event: EnvChange) -> bytes:
    """ENVCHANGE for a session's event; transaction descriptors have eight bytes, absent ones none."""
    if event.kind in _TEXT_CHANGES:
        return tokens.environment_text(_TEXT_CHANGES[event.kind], str(event.new), str(event.old))
    return tokens.environment_bytes(_BYTE_CHANGES[event.kind], _as_bytes(event.new), _as_bytes(event.old))


def _as_bytes(value: str | int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return value.to_bytes(8, "little") if value else b""
    return b""
