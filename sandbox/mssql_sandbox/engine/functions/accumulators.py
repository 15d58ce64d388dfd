"""The state of aggregates over one group: values are added row by row, the result is read at the end.

Accumulators ignore NULLs and record them in `saw_null`, for warning 8153.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from mssql_sandbox.engine.conversion_numbers import RANGES, unit
from mssql_sandbox.engine.types import EXACT, MAX, SqlType
from mssql_sandbox.errors import error

_WIDE = Context(prec=76)


class Accumulator:
    """State of one aggregate over one group: `add` per row, `result` at the end."""

    __slots__ = ("saw_null",)

    def __init__(self) -> None:
        self.saw_null = False

    def add(self, value: Any) -> None:
        """Add a row's value; None is NULL."""
        raise NotImplementedError

    def result(self) -> Any:
        """The aggregate in storage form."""
        raise NotImplementedError


class Count(Accumulator):
    """COUNT(value): the number of values that are not NULL."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
        else:
            self.count += 1

    def result(self) -> int:
        """The aggregate; NULL without values, unless it is a count."""
        return self.count


class Sum(Accumulator):
    """SUM and AVG, exact for integers and decimals; 8115 if the result type cannot hold the result."""

    __slots__ = ("average", "count", "source", "total", "type")

    def __init__(self, source: SqlType, type_: SqlType, *, average: bool) -> None:
        super().__init__()
        self.source, self.type, self.average = source, type_, average
        self.total: Any = 0
        self.count = 0

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
        else:
            self.total = _WIDE.add(self.total, value) if isinstance(value, Decimal) else self.total + value
            self.count += 1

    def result(self) -> Any:
        """The aggregate; NULL without values, unless it is a count."""
        if not self.count:
            return None
        name, total = self.type.name, self.total
        if name in RANGES:
            low, high = RANGES[name]
            if not low <= total <= high:
                raise error(8115, source="expression", target=name)
            if not self.average:
                return total
            quotient = abs(total) // self.count
            return quotient if total >= 0 else -quotient
        if name == "float":
            return float(total) / self.count if self.average else float(total)
        value = _WIDE.divide(total, Decimal(self.count)) if self.average else total
        result = value.quantize(unit(4 if name == "money" else self.type.scale), ROUND_DOWN, _WIDE)
        if name in EXACT and abs(result) >= Decimal(10) ** (self.type.precision - self.type.scale):
            raise error(8115, source="expression", target="numeric")
        return result


class Extreme(Accumulator):
    """MIN and MAX by the sort key of the type."""

    __slots__ = ("best", "best_key", "greatest", "key")

    def __init__(self, key: Callable[[Any], Any] | None, *, greatest: bool) -> None:
        super().__init__()
        self.key, self.greatest = key, greatest
        self.best: Any = None
        self.best_key: Any = None

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
            return
        key = value if self.key is None else self.key(value)
        if self.best is None or (self.best_key < key if self.greatest else key < self.best_key):
            self.best, self.best_key = value, key

    def result(self) -> Any:
        """The aggregate; NULL without values, unless it is a count."""
        return self.best


class Join(Accumulator):
    """STRING_AGG; 9829 for more than the type holds."""

    __slots__ = ("limit", "national", "parts", "separator")

    def __init__(self, limit: int, *, national: bool) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.separator = ""
        self.limit, self.national = limit, national

    def add(self, value: Any) -> None:
        """Add (text, separator)."""
        text, separator = value
        if text is None:
            self.saw_null = True
            return
        self.parts.append(text)
        self.separator = separator or ""

    def result(self) -> str | None:
        """The aggregate; NULL without values, unless it is a count."""
        if not self.parts:
            return None
        joined = self.separator.join(self.parts)
        if self.limit != MAX and len(joined) > self.limit:
            raise error(9829)
        return joined


class Deviation(Accumulator):
    """Variance by Welford's method."""

    __slots__ = ("count", "mean", "population", "root", "squares")

    def __init__(self, *, population: bool, root: bool) -> None:
        super().__init__()
        self.population, self.root = population, root
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
            return
        self.count += 1
        delta = float(value) - self.mean
        self.mean += delta / self.count
        self.squares += delta * (float(value) - self.mean)

    def result(self) -> float | None:
        """The aggregate; NULL without values, unless it is a count."""
        divisor = self.count if self.population else self.count - 1
        if divisor < 1:
            return None
        variance = self.squares / divisor
        return math.sqrt(variance) if self.root else variance


class ChecksumAgg(Accumulator):
    """CHECKSUM_AGG: exclusive or of the values."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        super().__init__()
        self.total, self.count = 0, 0

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
        else:
            self.count += 1
            self.total ^= int(value)

    def result(self) -> int | None:
        """The aggregate; NULL without values, unless it is a count."""
        return self.total if self.count else None


class Distinct(Accumulator):
    """APPROX_COUNT_DISTINCT: the number of distinct values (exact)."""

    __slots__ = ("key", "seen")

    def __init__(self, key: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self.key = key
        self.seen: set[Any] = set()

    def add(self, value: Any) -> None:
        """Add a row's value."""
        if value is None:
            self.saw_null = True
        else:
            self.seen.add(value if self.key is None else self.key(value))

    def result(self) -> int:
        """The aggregate; NULL without values, unless it is a count."""
        return len(self.seen)
