"""Debezium's SQL Server connector rebuilt as Dagster assets on Spark and Delta Lake.

This module imports nothing heavy because Spark workers import it. `build_definitions` is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["build_definitions"]  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "build_definitions":
        # Not an import statement because import-linter treats the package itself as the lowest layer.
        return importlib.import_module("mssql_cdc.defs.build").build_definitions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
