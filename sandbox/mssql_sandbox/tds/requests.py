"""Parsing of requests: ALL_HEADERS, SQL batches, remote procedure calls, transaction manager requests.

Running them belongs to the session.
"""

import functools
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mssql_sandbox.engine.events import TABLE_TYPE, RpcParameter, TmKind, TmRequest
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.decoders import InvalidValueError
from mssql_sandbox.tds.rowsets import TABLE_TOKEN, read_table_value
from mssql_sandbox.tds.type_info import FIXED_DECLARATIONS, read_type_info
from mssql_sandbox.tds.values import ValueReader, value_reader
from mssql_sandbox.tds.wire import ProtocolError, Reader, decode_utf16

PROCEDURES: Mapping[int, str] = {
    1: "sp_cursor", 2: "sp_cursoropen", 3: "sp_cursorprepare", 4: "sp_cursorexecute", 5: "sp_cursorprepexec",
    6: "sp_cursorunprepare", 7: "sp_cursorfetch", 8: "sp_cursoroption", 9: "sp_cursorclose", 10: "sp_executesql",
    11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 14: "sp_prepexecrpc", 15: "sp_unprepare",
}  # fmt: skip

_TRANSACTION_DESCRIPTOR = 2
_BY_ID = 0xFFFF
_SEPARATOR, _SEPARATOR_NO_EXEC = 0xFF, 0xFE
_NO_METADATA = 0x02
_BY_REFERENCE, _DEFAULT, _ENCRYPTED = 0x01, 0x02, 0x08
_MAX_PARAMETERS = 2100
_TOO_MANY_PARAMETERS = 8003
_TM_KINDS: Mapping[int, TmKind] = {5: "begin", 7: "commit", 8: "rollback", 9: "save"}


@dataclass(frozen=True, slots=True)
class RpcCall:
    """One remote procedure call; `execute` is false if the client asks not to run it."""

    name: str
    parameters: list[RpcParameter]
    metadata: bool
    execute: bool
    last: bool


def read_headers(reader: Reader) -> int:
    """Skip ALL_HEADERS; returns the transaction descriptor in it, 0 for none."""
    start = reader.position
    total = reader.u32()
    if not 4 <= total <= reader.remaining + 4:
        raise ProtocolError(f"ALL_HEADERS of {total} bytes in a message of {reader.remaining + 4} bytes")
    end = start + total
    descriptor = 0
    while reader.position < end:
        length = reader.u32()
        if length < 6 or reader.position - 4 + length > end:
            raise ProtocolError(f"a header of {length} bytes inside ALL_HEADERS of {total} bytes")
        kind = reader.u16()
        data = reader.take(length - 6)
        if kind == _TRANSACTION_DESCRIPTOR and len(data) >= 8:
            descriptor = struct.unpack_from("<Q", data)[0]
    return descriptor


def parse_batch(payload: bytes) -> str:
    """The SQL text of a batch."""
    reader = Reader(payload)
    read_headers(reader)
    return decode_utf16(reader.take(reader.remaining))


def parse_rpc(payload: bytes) -> Iterator[RpcCall]:
    """The calls of an RPC message, parsed lazily: array binding sends thousands in one message.

    Raises:
        ProtocolError: bytes that are no call, or a kind of parameter that is not supported.
        InvalidValueError: a parameter whose bytes are no value of its type.
    """
    reader = Reader(payload)
    read_headers(reader)
    while reader.remaining:
        yield _call(reader)


def _call(reader: Reader) -> RpcCall:
    length = reader.u16()
    if length == _BY_ID:
        number = reader.u16()
        if number not in PROCEDURES:
            raise ProtocolError(f"procedure number {number} is not known; expected 1 to {max(PROCEDURES)}")
        name = PROCEDURES[number]
    else:
        name = reader.text(length)
    options = reader.u16()
    parameters: list[RpcParameter] = []
    execute = True
    while reader.remaining:
        if reader.peek() in (_SEPARATOR, _SEPARATOR_NO_EXEC):
            execute = reader.u8() == _SEPARATOR
            break
        if len(parameters) == _MAX_PARAMETERS + 3:
            reason = f"more than {_MAX_PARAMETERS} parameters in a call of {name}"
            raise ProtocolError(reason, number=_TOO_MANY_PARAMETERS)
        parameters.append(_parameter(reader, len(parameters) + 1))
    return RpcCall(name, parameters, not options & _NO_METADATA, execute, last=not reader.remaining)


def _parameter(reader: Reader, position: int) -> RpcParameter:
    name = reader.b_varchar()
    status = reader.u8()
    if status & _ENCRYPTED:
        raise ProtocolError(f"parameter {position} ({name!r}) is encrypted; column encryption is not supported")
    try:
        if reader.peek() == TABLE_TOKEN:
            reader.skip(1)
            type_, value = TABLE_TYPE, read_table_value(reader)
        else:
            type_, read = _declared_type(reader)
            value = read(reader)
    except InvalidValueError as error:
        raise InvalidValueError(f'Parameter {position} ("{name}"): {error}') from error
    except ProtocolError as error:
        raise ProtocolError(f'Parameter {position} ("{name}"): {error}', number=error.number) from error
    return RpcParameter(name, type_, value, output=bool(status & _BY_REFERENCE), default=bool(status & _DEFAULT))


def _declared_type(reader: Reader) -> tuple[SqlType, ValueReader]:
    size = FIXED_DECLARATIONS.get(reader.peek())
    if size is not None:
        return _known_type(reader.take(size))
    wire = read_type_info(reader)
    return wire.type, value_reader(wire)


@functools.lru_cache(maxsize=4096)
def _known_type(declaration: bytes) -> tuple[SqlType, ValueReader]:
    """A type by its bytes: clients declare the same few types with each call."""
    wire = read_type_info(Reader(declaration))
    return wire.type, value_reader(wire)


def parse_transaction_request(payload: bytes) -> TmRequest:
    """A transaction manager request; names have their length in bytes."""
    reader = Reader(payload)
    read_headers(reader)
    number = reader.u16()
    if number not in _TM_KINDS:
        raise ProtocolError(f"transaction manager request {number}; expected {sorted(_TM_KINDS)} (no distributed ones)")
    kind = _TM_KINDS[number]
    if kind == "begin":
        isolation = _isolation(reader)
        return TmRequest(kind, _name(reader), isolation)
    name = _name(reader)
    if kind == "save" or not reader.remaining or not reader.u8() & 0x01:
        return TmRequest(kind, name)
    isolation = _isolation(reader) if reader.remaining else 0
    return TmRequest(
        kind, name, begin_next=True, next_isolation=isolation, next_name=_name(reader) if reader.remaining else ""
    )


def _isolation(reader: Reader) -> int:
    isolation = reader.u8()
    if isolation > 5:
        raise ProtocolError(f"isolation level {isolation}; expected 0 to 5")
    return isolation


def _name(reader: Reader) -> str:
    return decode_utf16(reader.take(reader.u8()))
