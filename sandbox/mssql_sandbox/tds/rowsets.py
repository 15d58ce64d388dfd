"""Rows sent by a client, read into storage form: table-valued parameters (MS-TDS 2.2.5.5.5), bulk loads (2.2.6.1).

Using the rows belongs to the session.
"""

from collections.abc import Sequence

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import BulkData, TableValue
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.type_codecs import Frame, codec_of
from mssql_sandbox.tds.type_info import WireType, read_type_info
from mssql_sandbox.tds.values import ValueReader, value_decoder, value_reader
from mssql_sandbox.tds.wire import ProtocolError, Reader

TABLE_TOKEN = 0xF3
_NO_METADATA = 0xFFFF
_COLMETADATA, _ROW, _NBCROW = 0x81, 0xD1, 0xD2
_DONES = frozenset({0xFD, 0xFE, 0xFF})
_TVP_END, _TVP_ROW, _TVP_ORDER_UNIQUE, _TVP_COLUMN_ORDER = 0x00, 0x01, 0x10, 0x11
_DEFAULT_FLAG = 0x0200
_MAX_COLUMNS = 1024


def read_table_value(reader: Reader) -> TableValue | None:
    """A table-valued parameter after its type token: name, columns, optional orders, rows. None if it is NULL.

    Raises:
        ProtocolError: no such structure.
        InvalidValueError: a cell whose bytes are no value of its type.
    """
    name = tuple(part for part in (reader.b_varchar(), reader.b_varchar(), reader.b_varchar()) if part)
    count = reader.u16()
    null = count == _NO_METADATA
    if not null and not 1 <= count <= _MAX_COLUMNS:
        raise ProtocolError(f"a table-valued parameter of {count} columns; expected 1 to {_MAX_COLUMNS}")
    columns: list[WireType] = []
    defaulted = set()
    for place in range(0 if null else count):
        reader.skip(4)
        if reader.u16() & _DEFAULT_FLAG:
            defaulted.add(place)
        columns.append(read_type_info(reader))
        reader.b_varchar()
    _pass_orders(reader)
    cells = [value_reader(wire) for wire in columns]
    rows = []
    while (token := reader.u8()) != _TVP_END:
        if token != _TVP_ROW:
            raise ProtocolError(f"0x{token:02X} where a row of a table-valued parameter was expected")
        rows.append(tuple([None if place in defaulted else read(reader) for place, read in enumerate(cells)]))
    return None if null else TableValue(name, tuple(wire.type for wire in columns), rows, frozenset(defaulted))


def _pass_orders(reader: Reader) -> None:
    """Skip the optional metadata: orders and unique keys are hints for query plans."""
    while (token := reader.u8()) != _TVP_END:
        if token not in (_TVP_ORDER_UNIQUE, _TVP_COLUMN_ORDER):
            raise ProtocolError(f"0x{token:02X} in the metadata of a table-valued parameter")
        reader.skip(reader.u16() * (3 if token == _TVP_ORDER_UNIQUE else 2))


def read_bulk_load(payload: bytes) -> BulkData:
    """The rows of a bulk load message: COLMETADATA, ROW and NBCROW tokens, DONE (missing from FreeTDS).

    Raises:
        ProtocolError: no such structure.
        InvalidValueError: a cell whose bytes are no value of its type.
    """
    reader = Reader(payload)
    if not reader.remaining:
        return BulkData((), (), [])
    if (token := reader.u8()) != _COLMETADATA:
        raise ProtocolError(f"a bulk load that begins with 0x{token:02X}; expected COLMETADATA (0x81)")
    count = reader.u16()
    if not 1 <= count <= _MAX_COLUMNS:
        raise ProtocolError(f"a bulk load of {count} columns; expected 1 to {_MAX_COLUMNS}")
    described = [_column(reader) for _ in range(count)]
    columns = [wire for _, wire in described]
    cells = [_cell_reader(wire) for wire in columns]
    rows = []
    while reader.remaining and (token := reader.u8()) not in _DONES:
        if token not in (_ROW, _NBCROW):
            raise ProtocolError(f"0x{token:02X} where a row of a bulk load was expected")
        rows.append(_row(reader, cells, reader.take((count + 7) // 8) if token == _NBCROW else b""))
    return BulkData(tuple(name for name, _ in described), tuple(wire.type for wire in columns), rows)


def _column(reader: Reader) -> tuple[str, WireType]:
    reader.skip(6)  # user type and flags: the table's own columns decide
    wire = read_type_info(reader)
    if wire.type.name in types.LEGACY_LOBS:
        # The table's name, in one part without a count as in TDS 7.1 and before, and from tedious.
        reader.us_varchar()
    return reader.b_varchar(), wire


def _row(reader: Reader, cells: Sequence[ValueReader], nulls: bytes) -> tuple:
    if not nulls:
        return tuple([read(reader) for read in cells])
    return tuple([None if nulls[place >> 3] >> (place & 7) & 1 else read(reader) for place, read in enumerate(cells)])


def _cell_reader(wire: WireType) -> ValueReader:
    """Reads a value as in rows of results: text, ntext and image after a text pointer."""
    type_: SqlType = wire.type
    if wire.is_null or wire.fixed_size or codec_of(type_).frame(type_) is not Frame.POINTER:
        return value_reader(wire)
    decode = value_decoder(wire)

    def read(reader: Reader) -> object:
        pointer = reader.u8()
        if not pointer:
            return None
        reader.skip(pointer + 8)
        return decode(reader.take(reader.u32()))

    return read
