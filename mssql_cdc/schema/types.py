"""A column's declared type: a row of the type table together with the column's declaration.

`type_table.py` contains the rows; other packages handle values according to their kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.schema.type_table import JDBC_MAX, BeforeImage, Kind, Loss, TypeRow, type_row

MAX_LENGTH = -1
"""`SqlServerType.length` of a `(max)` type, as in `sys.columns.max_length`."""
LONGEST_BOUND = 2000
"""The most characters, or bytes, of a value that a bound holds: as hexadecimal text, that is a `varchar(8000)`."""
FRACTION_DIGITS = 7
"""Fractional-second digits that `time`, `datetime2` and `datetimeoffset` keep when declared without a scale."""


@dataclass(frozen=True, slots=True)
class SqlServerType:
    """A column's base type (alias types are resolved, `sysname` is `nvarchar(128)`).

    `length` counts characters for (n)char and (n)varchar, bytes for binary types, and is -1 for `(max)`. Properties
    that need the type's row raise SchemaError for a type that is not in the table.
    """

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    collation: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.lower())

    @property
    def row(self) -> TypeRow:
        """The type's row (raises SchemaError when the table has none)."""
        return type_row(self.name)

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return self.row.kind

    @property
    def is_max(self) -> bool:
        """Whether this is a `(max)` type."""
        return self.length == MAX_LENGTH

    @property
    def is_large(self) -> bool:
        """Whether values have no size limit: columnar fetching would truncate or reject them."""
        return self.is_max or self.row.large

    @property
    def has_bounds(self) -> bool:
        """Whether the text of a key value can bound a chunk."""
        return self.row.bound_bytes is not None or not self.is_large

    @property
    def exceeds_bounds(self) -> bool:
        """Whether a value may be longer than a bound holds; index key values have at most 1,700 bytes."""
        return (self.length or 0) > LONGEST_BOUND

    @property
    def declaration(self) -> str:
        """The type as T-SQL writes it, for instance `decimal(10, 2)` or `nvarchar(max)`."""
        match self.row.arguments:
            case "none":
                return self.name
            case "length":
                return f"{self.name}({'max' if self.is_max else self.length})"
            case "precision and scale":
                return f"{self.name}({self.precision}, {self.scale or 0})"
            case "scale":
                return f"{self.name}({self.fraction_digits})"

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type (and thus the Delta type) of a column in `before`, `after` and the current table."""
        stored = self.row.arrow
        return pa.decimal128(self.precision or 18, self.scale or 0) if stored is None else stored

    @property
    def fraction_digits(self) -> int:
        """Fractional-second digits that a time or timestamp keeps, as Debezium counts them."""
        fixed = self.row.digits
        if fixed is not None:
            return fixed
        return FRACTION_DIGITS if self.scale is None else self.scale

    @property
    def loss(self) -> Loss:
        """The part of a value that the Arrow type may be unable to represent and that `_exact` then contains.

        `digits`: the seventh fractional digit, kept as `2024-05-06 07:08:09.1234567`. `offset`: that or an
        offset other than `+00:00`, kept as `2024-05-06 07:08:09.1234567 +02:00` (local time). `base type`: a
        JSON object of `sql_variant` properties, and of `utf16` if its text has a lone surrogate. `surrogates`: text
        with a lone surrogate, kept as `utf16:` and big-endian hex.
        """
        loss = self.row.loss
        return "never" if loss == "digits" and self.fraction_digits < FRACTION_DIGITS else loss

    @property
    def before_image(self) -> BeforeImage:
        """When CDC delivers the value in the before image of an update (TYP-05)."""
        return "when changed" if self.is_max else self.row.before_image

    @property
    def is_hidden_untouched(self) -> bool:
        """Whether records show no untouched value in a before image, since CDC does not deliver it (TYP-05)."""
        return self.before_image in {"when changed", "never"}

    @property
    def jdbc_length(self) -> int | None:
        """The length that Debezium knows: characters, bytes, decimal or displayed digits."""
        match self.row.arguments:
            case "none":
                return self.row.jdbc.length
            case "length":
                return JDBC_MAX if self.is_max else self.length
            case "precision and scale":
                return self.precision or 18
            case "scale":
                return (self.row.jdbc.length or 0) + (self.fraction_digits + 1 if self.fraction_digits else 0)

    @property
    def jdbc_scale(self) -> int | None:
        """The scale that Debezium knows: fractional digits; None: the type has none."""
        match self.row.arguments:
            case "none" | "length":
                return self.row.jdbc.scale
            case "precision and scale":
                return self.scale or 0
            case "scale":
                return self.fraction_digits
