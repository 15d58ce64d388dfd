"""Debezium's SQL Server connector rebuilt as Dagster assets on Spark and Delta Lake.

Nothing heavy is imported here: Spark workers import this package. `build_definitions` is looked up on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["build_definitions"]  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "build_definitions":
        # Not an import statement: to the tools that hold the layers, the package itself stands below all rooms.
        return importlib.import_module("mssql_cdc.defs.build").build_definitions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
