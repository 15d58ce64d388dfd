"""The catalogue that the executor uses: views, procedures and functions by name.

`Server.catalog` holds a `Catalog`. It only looks up and binds; the objects themselves are defined in the modules listed
in `_VIEWS`, `_PROCEDURES` and `_FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mssql_sandbox import faults, incidents, wire_faults
from mssql_sandbox.catalog import described, procedures, state_views, views
from mssql_sandbox.catalog import functions as metadata_functions
from mssql_sandbox.catalog.definitions import (
    REQUIRED,
    Call,
    Parameter,
    Scope,
    SystemFunction,
    SystemProcedure,
    SystemTableFunction,
    SystemView,
)
from mssql_sandbox.catalog.views.compatibility import NAMES as OLD_TABLES
from mssql_sandbox.catalog.visibility import visible_rows
from mssql_sandbox.cdc import functions as cdc_functions
from mssql_sandbox.cdc import msdb
from mssql_sandbox.cdc import procedures as cdc_procedures
from mssql_sandbox.cdc import views as cdc_views
from mssql_sandbox.cdc.layout import SCHEMA
from mssql_sandbox.cdc.service import CdcService
from mssql_sandbox.cdc.table_functions import change_function
from mssql_sandbox.engine import product
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import ResultColumn, SqlType
from mssql_sandbox.errors import error
from mssql_sandbox.exec.session import Session

_AGENT = "msdb"
"""The database with the tables of SQL Server Agent; their schema in the definitions."""
_VIEWS: dict[tuple[str, str], SystemView] = {
    (item.schema.casefold(), item.name.casefold()): item
    for item in (*views.VIEWS, *cdc_views.VIEWS, *wire_faults.VIEWS, *msdb.VIEWS)
}
_PROCEDURES: dict[tuple[str, str], SystemProcedure] = {
    (item.schema.casefold(), item.name.casefold()): item
    for item in (
        *procedures.PROCEDURES,
        *cdc_procedures.PROCEDURES,
        *faults.PROCEDURES,
        *wire_faults.PROCEDURES,
        *incidents.PROCEDURES,
        *msdb.PROCEDURES,
    )
}
_TABLE_FUNCTIONS = {**views.TABLE_FUNCTIONS, **described.TABLE_FUNCTIONS}
_HEXADECIMAL: dict[str, SystemFunction] = {item.name.casefold(): item for item in metadata_functions.SYSTEM_FUNCTIONS}
_SYS_FUNCTIONS: dict[str, SystemFunction] = {
    **{item.name.casefold(): item for item in cdc_functions.FUNCTIONS},
    **_HEXADECIMAL,
}
_DBO_FUNCTIONS: dict[str, dict[str, SystemFunction]] = {
    "master": _HEXADECIMAL,
    _AGENT: {item.name.casefold(): item for item in msdb.FUNCTIONS},
}
"""Functions of schema `dbo` in system databases."""
_METADATA_FUNCTIONS: dict[str, SystemFunction] = {item.name.casefold(): item for item in metadata_functions.FUNCTIONS}


@dataclass(frozen=True, slots=True)
class VirtualTable:
    """A system view in one database."""

    columns: tuple[ResultColumn, ...]
    definition: SystemView
    database: Database

    @property
    def about(self) -> str:
        """The column that names a row's table, see `SystemView`."""
        return self.definition.about

    def rows(
        self, session: Session, transaction: Transaction | None = None, *, object_id: int | None = None
    ) -> Iterable[tuple]:
        """The current rows, or those about one table; error 297 without the permission that state views need."""
        state_views.check(session, self.database, f"{self.definition.schema}.{self.definition.name}".lower())
        rows = self.definition.rows(Scope(self.database.server, self.database, session, transaction, object_id))
        return visible_rows(self.definition, session, self.database, rows)


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A scalar function in one database. `optional` counts how many of the last arguments may be missing."""

    result: SqlType
    arguments: tuple[SqlType, ...]
    optional: int
    definition: SystemFunction
    database: Database

    def call(self, session: Session, transaction: Transaction | None, *values: object) -> object:
        """The value for arguments in storage form of the argument types."""
        return self.definition.compute(Scope(self.database.server, self.database, session, transaction), *values)


@dataclass(frozen=True, slots=True)
class BoundTableFunction:
    """A table-valued function in one database."""

    columns: tuple[ResultColumn, ...]
    arguments: tuple[SqlType, ...]
    definition: SystemTableFunction
    database: Database

    @property
    def depends_on(self) -> tuple[str, str, str] | None:
        """The table whose columns the function shows; a compiled statement is valid as long as that table."""
        table = self.definition.table
        return None if table is None else (table.database.name, table.schema.name, table.name)

    def slices(self, session: Session, transaction: Transaction | None, *values: object) -> Iterable[list[tuple]]:
        """The rows for arguments in storage form of the argument types, in slices."""
        state_views.check(session, self.database, f"sys.{self.definition.name}".lower())
        return self.definition.rows(Scope(self.database.server, self.database, session, transaction), *values)


@dataclass(slots=True)
class ProcedureRun:
    """One execution of a system procedure: read `events` to the end, then `outputs` and `status`."""

    call: Call
    definition: SystemProcedure

    async def events(self) -> AsyncIterator[Event]:
        """What is sent to the client; errors are raised with the name of the procedure."""
        async for event in self.definition.run(self.call):
            yield event

    @property
    def outputs(self) -> dict[str, object]:
        """Values of output parameters, by lower-case name without `@`."""
        return self.call.outputs

    @property
    def status(self) -> int:
        """The return value."""
        return self.call.status


@dataclass(frozen=True, slots=True)
class BoundProcedure:
    """A system procedure in one database; `parameters` have names (without `@`), types, defaults, outputs."""

    name: str
    parameters: tuple[Parameter, ...]
    definition: SystemProcedure
    database: Database

    def start(
        self, session: Session, arguments: dict[str, object], transaction: Transaction | None = None
    ) -> ProcedureRun:
        """Execute with the given arguments: storage form, by lower-case name without `@`; defaults are filled in.

        Raises:
            SqlError: 201, an argument without default is missing.
        """
        complete: dict[str, object] = {}
        for parameter in self.parameters:
            key = parameter.name.casefold()
            if key in arguments:
                complete[key] = arguments[key]
            elif parameter.default is REQUIRED:
                raise error(201, name=self.name, parameter="@" + parameter.name)
            else:
                complete[key] = parameter.default_of(self.database.server.version)
        scope = Scope(self.database.server, self.database, session, transaction)
        return ProcedureRun(Call(scope, complete), self.definition)


@dataclass(slots=True)
class Catalog:
    """System objects of a server, and its change data capture."""

    server: Server
    capture_interval: float | None = None
    cdc: CdcService = field(init=False)
    faults: faults.Faults = field(init=False)
    wire: wire_faults.WireFaults = field(init=False)
    restore_points: dict[tuple[int, str], Any] = field(default_factory=dict)
    """Images of databases by id and name of the point; see `incidents.restoring`."""

    def __post_init__(self) -> None:
        self.cdc = CdcService(self.server, capture_interval=self.capture_interval)
        self.faults = faults.Faults()
        self.wire = wire_faults.WireFaults(self.server)

    def view(self, database: Database, schema: str, name: str) -> VirtualTable | None:
        """A view of `sys` or `INFORMATION_SCHEMA`; without a schema, or with `dbo`, only the old system tables."""
        wanted = schema.casefold()
        if name.casefold() in OLD_TABLES and wanted in ("", "dbo"):
            wanted = "sys"
        found = _VIEWS.get((self._shelf(database, wanted), name.casefold()))
        if found is None or not product.exists(self.server.version, f"{wanted}.{name}".lower()):
            return None
        found = self._of_version(found)
        return VirtualTable(found.columns, found, database)

    def _shelf(self, database: Database, schema: str) -> str:
        """The schema in the definitions: objects of `dbo` in msdb are defined under a schema name of their own."""
        if schema in ("", "dbo") and database.name == _AGENT and not self.server.version.is_azure:
            return _AGENT
        return "" if schema == _AGENT else schema

    def _of_version(self, found: SystemView) -> SystemView:
        """The view without the columns that the server's version does not have yet."""
        prefix = f"{found.schema}.{found.name}.".lower()
        kept = [
            place
            for place, column in enumerate(found.columns)
            if product.exists(self.server.version, prefix + column.name.lower())
        ]
        if len(kept) == len(found.columns):
            return found
        columns = tuple(found.columns[place] for place in kept)
        return replace(
            found, columns=columns, rows=lambda scope: (tuple(row[p] for p in kept) for row in found.rows(scope))
        )

    def procedure(self, database: Database, schema: str, name: str) -> BoundProcedure | None:
        """A system procedure: `sys.x`, or `x` and `dbo.x` for names that begin with `sp_`, in any database."""
        lowered = name.casefold()
        wanted = schema.casefold() or "sys"
        found = _PROCEDURES.get((self._shelf(database, schema.casefold()), lowered))
        if found is None:
            if wanted == "dbo" and lowered.startswith("sp_"):
                wanted = "sys"
            found = None if wanted == _AGENT else _PROCEDURES.get((wanted, lowered))
        if found is not None and not product.exists(self.server.version, f"{wanted}.{lowered}"):
            return None
        return None if found is None else BoundProcedure(found.name, found.parameters, found, database)

    def function(self, database: Database, schema: str, name: str) -> BoundFunction | None:
        """`sys.fn_…` with schema, metadata functions such as OBJECT_ID without."""
        named = {
            "": _METADATA_FUNCTIONS,
            "sys": _SYS_FUNCTIONS,
            "dbo": _DBO_FUNCTIONS.get(database.name.casefold(), {}),
        }
        table = named.get(schema.casefold(), {})
        found = table.get(name.casefold())
        if found is None:
            return None
        return BoundFunction(found.result, found.arguments, found.optional, found, database)

    def table_function(self, database: Database, schema: str, name: str) -> BoundTableFunction | None:
        """Change functions of schema `cdc`, and the server's own in `sys`."""
        found: SystemTableFunction | None = None
        if schema.casefold() == SCHEMA:
            capture = self.cdc.capture(database)
            found = change_function(list(capture.instances.values()), name) if capture is not None else None
        elif schema.casefold() == "sys" or (not schema and name.casefold().startswith("fn_")):
            found = _TABLE_FUNCTIONS.get(name.casefold())
            if not product.exists(self.server.version, f"sys.{name}".lower()):
                found = None
        return None if found is None else BoundTableFunction(found.columns, found.arguments, found, database)

    def close(self) -> None:
        """Stop the jobs: the server stops."""
        self.cdc.close()
