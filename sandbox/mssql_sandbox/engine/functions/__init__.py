"""Built-in functions: `SCALARS` and `AGGREGATES`, by upper-case name.

A scalar function is bound to argument types once and then called with values:

    function = scalar("LEN")
    call = Call((nvarchar(20),), collation=database.collation)
    type_, apply = function.result(call), function.caller(call)

Functions of the catalog, of session identity and of metadata (OBJECT_ID, SUSER_NAME, SERVERPROPERTY …) belong to the
layers above.
"""

from __future__ import annotations

from types import MappingProxyType

from mssql_sandbox.engine.functions import (
    dates,
    dates_made,
    dates_zones,
    general,
    json_functions,
    numbers,
    shifts,
    strings,
    strings_codes,
)
from mssql_sandbox.engine.functions.accumulators import Accumulator
from mssql_sandbox.engine.functions.aggregates import AGGREGATES, Aggregate
from mssql_sandbox.engine.functions.definition import KEYWORD, Call, Environment, ScalarFunction
from mssql_sandbox.engine.functions.operators import binary_operator, complement, negation
from mssql_sandbox.errors import error

_MODULES = (strings, strings_codes, numbers, shifts, dates, dates_made, dates_zones, general, json_functions)
SCALARS = MappingProxyType(
    {name: function for module in _MODULES for name, function in module.registry.functions.items()}
)


UNSUPPORTED = frozenset({
    "BIT_COUNT", "CRYPT_GEN_RANDOM", "DATETRUNC", "DATE_BUCKET", "DIFFERENCE", "FORMAT", "GET_BIT", "JSON_ARRAY",
    "JSON_OBJECT", "JSON_PATH_EXISTS", "SET_BIT", "SOUNDEX",
})  # fmt: skip
"""Functions of SQL Server that the sandbox does not support."""


def scalar(name: str) -> ScalarFunction:
    """The built-in scalar function of this name; error 195 if there is none."""
    found = SCALARS.get(name.upper())
    if found is None:
        raise error(195, name=name, kind="built-in function name")
    return found


__all__ = [
    "AGGREGATES", "KEYWORD", "SCALARS", "UNSUPPORTED", "Accumulator", "Aggregate", "Call", "Environment",
    "ScalarFunction", "binary_operator", "complement", "negation", "scalar",
]  # fmt: skip
