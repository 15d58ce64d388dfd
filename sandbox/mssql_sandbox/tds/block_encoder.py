"""Block encoders: one Python function compiled per result schema that encodes some hundred rows column by column.

One struct packs adjacent columns of fixed width (layouts.py), the others use their expression (type_codecs.py); work
per row is done by functions in C. About three times as fast as row by row.
"""

import struct
from collections.abc import Callable, Sequence

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.layouts import layout_of
from mssql_sandbox.tds.type_codecs import Frame, codec_of, declared_bytes

ROW, NBC_ROW = b"\xd1", b"\xd2"
_HEADS = 4096

BlockEncoder = Callable[[Sequence[tuple]], bytes]
"""The bytes of at least one row. A NULL in a column that was declared without NULLs raises an exception."""


class NullHeads(dict[tuple[bool, ...], bytes]):
    """Which of the nullable columns are NULL -> token and bitmap before the row; filled as used."""

    def __init__(self, width: int, places: Sequence[int]) -> None:
        super().__init__()
        self._width = width
        self._places = places

    def __missing__(self, nulls: tuple[bool, ...]) -> bytes:
        bitmap = sum(1 << place for place, null in zip(self._places, nulls, strict=True) if null)
        head = NBC_ROW + bitmap.to_bytes(-(-self._width // 8), "little") if bitmap else ROW
        if len(self) >= _HEADS:
            self.clear()
        self[nulls] = head
        return head


class BlockSource:
    """Writes the source of a block encoder: pieces of rows, in which runs of fixed width share one struct."""

    def __init__(self, schema: Sequence[SqlType], nullable: frozenset[int]) -> None:
        self._width = len(schema)
        self._nullable = sorted(nullable)
        self._lines: list[str] = []
        self._pieces: list[str] = []
        self._format, self._arguments = "", []
        self.structs: list[struct.Struct] = []
        if nullable:
            nulls = ", ".join(f"map(is_, c{place}, repeat(None))" for place in self._nullable)
            self._pieces.append(f"map(heads.__getitem__, zip({nulls}))")
        else:
            self._run("B", (ROW[0],))
        for place, type_ in enumerate(schema):
            self._column(place, type_)
        self._end_run()

    @property
    def heads(self) -> NullHeads:
        """The bytes before rows if columns have NULLs."""
        return NullHeads(self._width, self._nullable)

    def text(self) -> str:
        """The source."""
        names = ", ".join(f"c{place}" for place in range(self._width))
        joined = self._pieces[0] if len(self._pieces) == 1 else f"map(join, zip({', '.join(self._pieces)}))"
        lines = [f"{names}, = zip(*rows)", *self._lines, f"return join({joined})"]
        return "def encode(rows):\n" + "".join(f"    {line}\n" for line in lines)

    def _column(self, place: int, type_: SqlType) -> None:
        codec, layout = codec_of(type_), layout_of(type_)
        if place in self._nullable:
            self._piece(f"[b'' if v is None else {codec.encode(type_)} for v in c{place}]")
        elif layout is not None:
            self._lines += [line.format(c=f"c{place}", n=place) for line in layout.prepare]
            filled = [a if isinstance(a, int) else a.format(c=f"c{place}", n=place) for a in layout.arguments]
            self._run(layout.format, filled)
        elif codec.content is not None and codec.frame(type_) is Frame.SHORT:
            content = codec.content(type_)
            cells = f"c{place}" if content == "v" else f"b{place}"
            self._lines += [] if content == "v" else [f"{cells} = [{content} for v in c{place}]"]
            self._lines.append(f"l{place} = list(map(len, {cells}))")
            self._lines.append(f"lengths{declared_bytes(type_)}[max(l{place})]")
            self._run("H", (f"l{place}",))
            self._piece(cells)
        else:
            self._piece(f"[{codec.encode(type_)} for v in c{place}]")

    def _run(self, format_: str, arguments: Sequence[str | int]) -> None:
        self._format += format_
        self._arguments += [f"repeat({one})" if isinstance(one, int) else one for one in arguments]

    def _end_run(self) -> None:
        if self._format:
            self._pieces.append(f"map(pack{len(self.structs)}, {', '.join(self._arguments)})")
            self.structs.append(struct.Struct("<" + self._format))
            self._format, self._arguments = "", []

    def _piece(self, source: str) -> None:
        self._end_run()
        self._pieces.append(source)
