"""The scalar functions `sys.fn_cdc_*`.

Sources: the functions' pages [doc]; edge cases measured [fab]: 208 if the database is not enabled, zeros for an unknown
instance, NULL for a new one until the capture job has seen it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.cdc.instances import CaptureInstance
from mssql_sandbox.cdc.layout import CHANGE_TABLES
from mssql_sandbox.cdc.masks import is_bit_set
from mssql_sandbox.cdc.metadata import Metadata, own_transaction
from mssql_sandbox.engine.log import ZERO_LSN
from mssql_sandbox.exec.security import is_member, is_owner, may_select

_LSN_SPACE = 1 << 80
_KEPT_TIMES = 10_000
_TIME_OPERATORS = {
    "largest less than": (True, False),
    "largest less than or equal": (True, True),
    "smallest greater than": (False, False),
    "smallest greater than or equal": (False, True),
}


@contextmanager
def reading(scope: Scope) -> Iterator[Metadata]:
    """The metadata as the running statement sees it."""
    if scope.transaction is not None:
        yield Metadata(scope.database, scope.transaction)
        return
    with own_transaction(scope.server, "SELECT", spid=scope.session.spid) as transaction:
        yield Metadata(scope.database, transaction)


def may_see(scope: Scope, instance: CaptureInstance) -> bool:
    """Whether the caller may read an instance's changes: the gating role, and SELECT on the source."""
    session, database = scope.session, scope.database
    if is_owner(session, database):
        return True
    if instance.role is not None and not is_member(session, database, instance.role):
        return False
    return may_select(session, database, instance.source.schema.name, instance.source.name)


def max_lsn(scope: Scope) -> bytes | None:
    """`max(start_lsn)` of the mapping, dummy rows included; NULL if it is empty."""
    with reading(scope) as metadata:
        row = metadata.newest_mapping()
    return None if row is None else row[0]


def find_instance(scope: Scope, name: str | None) -> CaptureInstance | None:
    """The instance of this name, if the caller may see it."""
    cdc = scope.server.catalog.cdc
    instance = cdc.instance(scope.database, name)
    return instance if instance is not None and may_see(scope, instance) else None


def low_end(scope: Scope, instance: CaptureInstance) -> bytes | None:
    """The low end point of an instance as the session's server knows it; None on a secondary that has not seen it."""
    if not scope.server.replica.serves(scope.session.spid):
        return instance.start_lsn
    with reading(scope) as metadata:
        rows = [row for row in metadata.records(CHANGE_TABLES) if row["object_id"] == instance.change_table.object_id]
    return rows[0]["start_lsn"] if rows else None


def min_lsn(scope: Scope, name: str | None) -> bytes | None:
    """The low end point of an instance; zeros if it is unknown, NULL until the capture job has seen it."""
    instance = find_instance(scope, name)
    if instance is None:
        return ZERO_LSN
    low = low_end(scope, instance)
    if low is None:
        return ZERO_LSN
    newest = max_lsn(scope)
    return None if newest is not None and low > newest else low


def _shifted(by: int):
    def compute(_scope: Scope, lsn: bytes | None) -> bytes | None:
        if lsn is None:
            return None
        return ((int.from_bytes(lsn.ljust(10, b"\0")[:10], "big") + by) % _LSN_SPACE).to_bytes(10, "big")

    return compute


def _lsn_to_time(scope: Scope, lsn: bytes | None) -> int | None:
    capture = scope.server.catalog.cdc.capture(scope.database)
    known: dict[bytes, int] = capture.commit_times if capture is not None else {}
    if lsn is None or lsn in known:
        return None if lsn is None else known[lsn]
    with reading(scope) as metadata:
        row = metadata.mapping(lsn)
    if row is None or row[2] is None:
        return None
    if len(known) >= _KEPT_TIMES:
        known.clear()
    known[lsn] = row[2]
    return row[2]


def _time_to_lsn(scope: Scope, operator: str | None, time: int | None) -> bytes | None:
    choice = _TIME_OPERATORS.get((operator or "").strip().casefold())
    if choice is None or time is None:
        return None
    with reading(scope) as metadata:
        return metadata.lsn_by_time(time, below=choice[0], inclusive=choice[1])


def _column_ordinal(scope: Scope, name: str | None, column: str | None) -> int | None:
    instance = find_instance(scope, name)
    if instance is None or column is None:
        return None
    key = scope.database.collation.key
    return next((c.ordinal for c in instance.columns if key(c.name) == key(column.rstrip())), None)


def _is_bit_set(_scope: Scope, position: int | None, mask: bytes | None) -> int | None:
    return None if position is None or mask is None else int(is_bit_set(position, mask))


def _has_column_changed(scope: Scope, name: str | None, column: str | None, mask: bytes | None) -> int | None:
    ordinal = _column_ordinal(scope, name, column)
    return None if ordinal is None or mask is None else int(is_bit_set(ordinal, mask))


def _is_primary(scope: Scope, name: str | None) -> int | None:
    """1 on the primary, 0 on the secondary, NULL if there is no secondary [doc]."""
    replica = scope.server.replica
    if not replica.active or scope.server.databases.get(name or "") is None:
        return None
    return int(not replica.serves(scope.session.spid))


FUNCTIONS = (
    function("fn_hadr_is_primary_replica", "bit", "sysname", _is_primary),
    function("fn_cdc_get_max_lsn", "binary(10)", "", max_lsn),
    function("fn_cdc_get_min_lsn", "binary(10)", "sysname", min_lsn),
    function("fn_cdc_increment_lsn", "binary(10)", "binary(10)", _shifted(1)),
    function("fn_cdc_decrement_lsn", "binary(10)", "binary(10)", _shifted(-1)),
    function("fn_cdc_map_lsn_to_time", "datetime", "binary(10)", _lsn_to_time),
    function("fn_cdc_map_time_to_lsn", "binary(10)", "nvarchar(30); datetime", _time_to_lsn),
    function("fn_cdc_get_column_ordinal", "int", "sysname; sysname", _column_ordinal),
    function("fn_cdc_is_bit_set", "bit", "int; varbinary(128)", _is_bit_set),
    function("fn_cdc_has_column_changed", "bit", "sysname; sysname; varbinary(128)", _has_column_changed),
)
