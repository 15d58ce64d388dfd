"""Writers of response tokens (MS-TDS 2.2.7): pure functions from values to bytes.

When to send which token, and with which MORE bit, belongs to response.py.
"""

import enum
import struct
from collections.abc import Iterable, Mapping, Sequence

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import Sources
from mssql_sandbox.engine.types import ResultColumn, SqlType
from mssql_sandbox.tds.prelogin import DEFAULT_VERSION
from mssql_sandbox.tds.row_encoder import encode_value
from mssql_sandbox.tds.type_info import USER_TYPE_ROWVERSION, type_info
from mssql_sandbox.tds.wire import b_varbyte, b_varchar, us_varchar


class DoneToken(enum.IntEnum):
    """The three tokens that end a statement, a procedure or a statement in a procedure."""

    DONE = 0xFD
    DONEPROC = 0xFE
    DONEINPROC = 0xFF


class DoneStatus(enum.IntFlag):
    """Status bits of the DONE tokens."""

    FINAL = 0x00
    MORE = 0x01
    ERROR = 0x02
    IN_TRANSACTION = 0x04
    COUNT = 0x10
    ATTENTION = 0x20
    SEVERE = 0x100


class EnvironmentType(enum.IntEnum):
    """What an ENVCHANGE changes."""

    DATABASE = 1
    LANGUAGE = 2
    PACKET_SIZE = 4
    COLLATION = 7
    BEGIN = 8
    COMMIT = 9
    ROLLBACK = 10
    RESET = 18


# CurCmd of DONE: mssql-jdbc uses it to distinguish rows, update counts and statements without either.
COMMANDS: Mapping[str, int] = {
    "select": 0xC1, "select into": 0xC2, "insert": 0xC3, "delete": 0xC4, "update": 0xC5, "merge": 0x117,
    "create table": 0xC6, "drop table": 0xC7, "create index": 0xC8, "drop index": 0xC9, "truncate table": 0xCA,
    "create database": 0xCB, "drop database": 0xCC, "grant": 0xCD, "revoke": 0xCE, "create view": 0xCF,
    "drop view": 0xD0, "rollback": 0xD2, "begin": 0xD4, "commit": 0xD5, "alter database": 0xD7,
    "alter table": 0xD8, "create procedure": 0xDE, "drop procedure": 0xDF, "execute": 0xE0, "set": 0xF9,
    "create function": 0xB2, "drop function": 0xB3, "create schema": 0x14A, "drop schema": 0xB0,
    "create trigger": 0xDD, "drop trigger": 0xE1, "create user": 0x13B, "alter user": 0x13C, "drop user": 0x13D,
    "create role": 0x13F, "alter role": 0x140, "drop role": 0x141, "create login": 0x145, "alter login": 0x146,
    "drop login": 0x147,
}  # fmt: skip

_COLMETADATA, _RETURNSTATUS, _ORDER, _ERROR, _INFO = 0x81, 0x79, 0xA9, 0xAA, 0xAB
_TABNAME, _COLINFO = 0xA4, 0xA5
_EXPRESSION, _KEY, _HIDDEN, _OTHER_NAME = 0x04, 0x08, 0x10, 0x20
_RETURNVALUE, _LOGINACK, _FEATUREEXTACK, _ENVCHANGE = 0xAC, 0xAD, 0xAE, 0xE3
_NULLABLE, _CASE_SENSITIVE, _UPDATABLE, _IDENTITY, _COMPUTED = 0x01, 0x02, 0x04, 0x10, 0x20
_INFO_SEVERITY = 10


def done(token: DoneToken, status: int, *, command: str = "", count: int = 0) -> bytes:
    """DONE, DONEPROC or DONEINPROC with bits of `DoneStatus`."""
    return struct.pack("<BHHQ", token, status, COMMANDS.get(command, 0), count)


def message(
    number: int, state: int, severity: int, text: str, *, server: str, procedure: str = "", line: int = 1
) -> bytes:
    """INFO up to severity 10, ERROR above; clients see 0 for 10 [doc: "Database Engine error severities"]."""
    told = 0 if severity == _INFO_SEVERITY else severity & 0xFF
    body = (
        struct.pack("<iBB", number, state & 0xFF, told)
        + us_varchar(text[:4000])
        + b_varchar(server)
        + b_varchar(procedure)
        + struct.pack("<I", line & 0xFFFFFFFF)
    )
    return struct.pack("<BH", _INFO if severity <= _INFO_SEVERITY else _ERROR, len(body)) + body


def environment(kind: EnvironmentType, new: bytes, old: bytes) -> bytes:
    """ENVCHANGE with values that include their lengths."""
    body = bytes((kind,)) + new + old
    return struct.pack("<BH", _ENVCHANGE, len(body)) + body


def environment_text(kind: EnvironmentType, new: str, old: str) -> bytes:
    """ENVCHANGE of a text: database, language, packet size."""
    return environment(kind, b_varchar(new), b_varchar(old))


def environment_bytes(kind: EnvironmentType, new: bytes, old: bytes) -> bytes:
    """ENVCHANGE of bytes: collation, transaction descriptors, reset."""
    return environment(kind, b_varbyte(new), b_varbyte(old))


def login_acknowledged(tds_version: int, program: str, version: bytes = DEFAULT_VERSION) -> bytes:
    """LOGINACK; the version is echoed in the other byte order."""
    body = b"\x01" + tds_version.to_bytes(4, "big") + b_varchar(program) + version
    return struct.pack("<BH", _LOGINACK, len(body)) + body


def features_acknowledged(features: Mapping[int, bytes]) -> bytes:
    """FEATUREEXTACK; only for features that the client requested."""
    body = b"".join(struct.pack("<BI", feature, len(data)) + data for feature, data in features.items())
    return bytes((_FEATUREEXTACK,)) + body + b"\xff"


def column_metadata(columns: Sequence[ResultColumn]) -> bytes:
    """COLMETADATA of a result set."""
    return struct.pack("<BH", _COLMETADATA, len(columns)) + b"".join(map(_column, columns))


def _column(column: ResultColumn) -> bytes:
    type_ = column.type
    flags = (
        (_NULLABLE if column.nullable else 0)
        | (_CASE_SENSITIVE if type_.collation is not None and type_.collation.case_sensitive else 0)
        | (_UPDATABLE if column.updatable else 0)
        | (_IDENTITY if column.identity else 0)
        | (_COMPUTED if column.computed else 0)
    )
    return b"".join((
        struct.pack("<IH", _user_type(type_), flags),
        type_info(type_),
        _table_name(column.table) if type_.name in types.LEGACY_LOBS else b"",
        b_varchar(column.name),
    ))  # fmt: skip


def _user_type(type_: SqlType) -> int:
    return USER_TYPE_ROWVERSION if type_.name == "rowversion" else 0


def _table_name(parts: Sequence[str]) -> bytes:
    # mssql-jdbc accepts one to four parts; an expression has no table and gets one empty part.
    parts = parts[-4:] or ("",)
    return bytes((len(parts),)) + b"".join(map(us_varchar, parts))


def order(columns: Iterable[int]) -> bytes:
    """ORDER: one-based ordinals of the ordering columns."""
    body = b"".join(struct.pack("<H", column) for column in columns)
    return struct.pack("<BH", _ORDER, len(body)) + body


def sources(found: Sources) -> bytes:
    """TABNAME and COLINFO: the base tables of a cursor's columns; no TABNAME without base tables."""
    names = b"".join(map(_table_name, found.tables))
    columns = bytearray()
    for number, column in enumerate(found.columns, 1):
        status = (
            (_KEY if column.key else 0)
            | (_EXPRESSION if not column.table else 0)
            | (_HIDDEN if column.hidden else 0)
            | (_OTHER_NAME if column.name else 0)
        )
        columns += bytes((number & 0xFF, column.table & 0xFF, status))
        columns += b_varchar(column.name) if column.name else b""
    table = struct.pack("<BH", _TABNAME, len(names)) + names if names else b""
    return table + struct.pack("<BH", _COLINFO, len(columns)) + columns


def return_status(value: int) -> bytes:
    """RETURNSTATUS of a procedure."""
    return struct.pack("<Bi", _RETURNSTATUS, value)


def return_value(ordinal: int, name: str, type_: SqlType, value: object) -> bytes:
    """RETURNVALUE of an output parameter."""
    return b"".join((
        struct.pack("<BH", _RETURNVALUE, ordinal),
        b_varchar(name),
        struct.pack("<BIH", 1, _user_type(type_), _NULLABLE),
        type_info(type_),
        encode_value(value, type_),
    ))  # fmt: skip
