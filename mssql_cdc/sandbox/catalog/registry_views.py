"""All system views as one list, for procedures which enumerate them; lookups by name are in `registry`."""

from __future__ import annotations

from mssql_cdc.sandbox.catalog import views
from mssql_cdc.sandbox.catalog.definitions import SystemView


def all_views() -> tuple[SystemView, ...]:
    """The catalogue's own views."""
    return views.VIEWS
