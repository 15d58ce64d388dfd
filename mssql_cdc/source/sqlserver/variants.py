"""How values of sql_variant are read: as the text of their base type, with its properties as a JSON object (rule E26).

How `check` reads them is in `check_texts`, which shares nothing with this.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.schema import TYPES, Kind, TypeRow
from mssql_cdc.schema.types import FRACTION_DIGITS
from mssql_cdc.source.sqlserver.raw_values import EXACT_PREFIX


def text_expression() -> str:
    """T-SQL for the canonical text of a sql_variant: every base type in the style that loses nothing."""
    base = "CAST(SQL_VARIANT_PROPERTY({c}, 'BaseType') AS varchar(128))"
    whens = " ".join(f"WHEN '{row.name}' THEN {text}" for row in TYPES.values() if (text := _styled_text(row)))
    return f"CASE {base} {whens} ELSE CAST({{c}} AS nvarchar(max)) END"


def _styled_text(row: TypeRow) -> str | None:
    """The text of a sql_variant with this base type; None where the plain conversion loses nothing."""
    if row.kind is Kind.BINARY and row.arguments == "length":
        return "CONVERT(nvarchar(max), CAST({c} AS varbinary(8000)), 2)"
    if row.style is None:
        return None
    whole = f"{row.name}({FRACTION_DIGITS})" if row.arguments == "scale" else row.name
    return f"CONVERT(nvarchar(50), CAST({{c}} AS {whole}), {row.style})"


def properties_expression() -> str:
    """T-SQL for `base|precision|scale|length|collation` of a sql_variant."""
    names = ("BaseType", "Precision", "Scale", "MaxLength", "Collation")
    joined = " + '|' + ".join(map(_property, names))
    return f"CASE WHEN {{c}} IS NOT NULL THEN {joined} END"


def _property(name: str) -> str:
    kind = "int" if name in {"Precision", "Scale", "MaxLength"} else "varchar(128)"
    return f"ISNULL(CAST(CAST(SQL_VARIANT_PROPERTY({{c}}, '{name}') AS {kind}) AS varchar(128)), '')"


def decode(texts: pa.Array, exact: pa.StringArray | None, properties: pa.Array) -> tuple[pa.Array, pa.StringArray]:
    """The texts, and JSON objects of the properties, of which there are few different ones.

    An object whose text has a lone surrogate also contains that text, as `utf16`.

    Args:
        texts: the values.
        exact: the exact texts of those with lone surrogates; None: there are none.
        properties: what `properties_expression` returns.
    """
    encoded = properties.dictionary_encode()
    known: list[str | None] = [_json(text) for text in encoded.dictionary.to_pylist()]
    objects = pa.array(known, pa.string()).take(encoded.indices)
    if exact is None:
        return texts, objects
    lone = exact.is_valid()
    found = zip(properties.filter(lone).to_pylist(), exact.filter(lone).to_pylist(), strict=True)
    whole = [_json(text, utf16) for text, utf16 in found]
    return texts, pc.replace_with_mask(objects, lone, pa.array(whole, pa.string()))


def _json(properties: str, utf16: str | None = None) -> str:
    base, precision, scale, length, collation = properties.split("|")
    numbers = {"precision": precision, "scale": scale, "length": length}
    texts = {"collation": collation, "utf16": (utf16 or "").removeprefix(EXACT_PREFIX)}
    return json.dumps(
        {"base": base}
        | {name: int(value) for name, value in numbers.items() if value}
        | {name: value for name, value in texts.items() if value}
    )
