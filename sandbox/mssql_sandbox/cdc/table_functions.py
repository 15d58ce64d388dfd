"""`cdc.fn_cdc_get_all_changes_<instance>` and `cdc.fn_cdc_get_net_changes_<instance>`.

Every bad argument is error 313 with the placeholder's name [doc][fab]; the change table is read without locks [sys].
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.columns import column_type, columns
from mssql_sandbox.catalog.definitions import Scope, SystemTableFunction
from mssql_sandbox.cdc import layout
from mssql_sandbox.cdc.change_rows import BEFORE
from mssql_sandbox.cdc.functions import low_end, max_lsn, may_see
from mssql_sandbox.cdc.instances import CaptureInstance
from mssql_sandbox.cdc.metadata import own_transaction
from mssql_sandbox.cdc.net_changes import NET_OPTIONS, ChangeRow, NetOption, net_changes
from mssql_sandbox.cdc_messages import no_such_endpoints
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import SqlError

_ARGUMENTS = (column_type("binary(10)"), column_type("binary(10)"), column_type("nvarchar(30)"))
_ALL_LEADING = columns(
    "__$start_lsn binary(10), __$seqval binary(10), __$operation int, __$update_mask varbinary(128)?"
)
_NET_LEADING = columns("__$start_lsn binary(10), __$operation int, __$update_mask varbinary(128)?")
_START, _SEQVAL, _OPERATION, _MASK = 0, 2, 3, 4
_UPDATE_OLD = "all update old"
_ALL_OPTIONS = ("all", _UPDATE_OLD)
Slices = Iterator[list[tuple]]


def _captured_columns(instance: CaptureInstance) -> tuple[ResultColumn, ...]:
    kept = instance.change_table.columns[instance.captured_places]
    return tuple(ResultColumn(column.name, column.type, nullable=True) for column in kept)


def _check(scope: Scope, instance: CaptureInstance, kind: str, arguments: tuple, options: tuple[str, ...]) -> str:
    """The option, after checking the caller's rights and all arguments; errors 229, 313."""
    if not may_see(scope, instance):
        raise SqlError(
            229,
            f"The SELECT permission was denied on the object 'fn_cdc_get_{kind}_changes_...', database "
            f"'{scope.database.name}', schema 'cdc'.",
            severity=14,
            state=5,
        )
    low, high, option = arguments
    chosen = option.strip().lower() if isinstance(option, str) else ""
    newest, start = max_lsn(scope), low_end(scope, instance)
    if low is None or high is None or newest is None or chosen not in options:
        raise no_such_endpoints(kind)
    if start is None or low < start or high > newest or low > high:
        raise no_such_endpoints(kind)
    return chosen


def _change_rows(transaction: Transaction, instance: CaptureInstance, low: bytes, high: bytes) -> Slices:
    table = instance.change_table
    view = open_view(transaction, table.database, hints=frozenset({"nolock"}))
    yield from table.scan(view, low=(low,), high=(high,))


def _reading(scope: Scope, instance: CaptureInstance, low: bytes, high: bytes) -> Slices:
    if scope.transaction is not None:
        yield from _change_rows(scope.transaction, instance, low, high)
        return
    with own_transaction(scope.server, "SELECT", spid=scope.session.spid) as transaction:
        yield from _change_rows(transaction, instance, low, high)


def all_changes(instance: CaptureInstance) -> SystemTableFunction:
    """The function over every change of an instance."""

    def rows(scope: Scope, low: bytes | None, high: bytes | None, option: str | None) -> Slices:
        chosen = _check(scope, instance, "all", (low, high, option), _ALL_OPTIONS)
        assert low is not None
        assert high is not None
        old, places = chosen == _UPDATE_OLD, instance.captured_places
        for slice_ in _reading(scope, instance, low, high):
            yield [
                (row[_START], row[_SEQVAL], row[_OPERATION], row[_MASK], *row[places])
                for row in slice_
                if old or row[_OPERATION] != BEFORE
            ]

    name = layout.ALL_CHANGES + instance.name
    return SystemTableFunction(
        name, _ALL_LEADING + _captured_columns(instance), _ARGUMENTS, rows, instance.change_table
    )


def net_changes_function(instance: CaptureInstance) -> SystemTableFunction:
    """The function over the net effect of an instance's changes."""
    captured = _captured_columns(instance)
    places = [next(place for place, column in enumerate(captured) if column.name == name) for name in instance.key]

    def rows(scope: Scope, low: bytes | None, high: bytes | None, option: str | None) -> Slices:
        chosen = _check(scope, instance, "net", (low, high, option), NET_OPTIONS)
        assert low is not None
        assert high is not None
        net_option: NetOption = next(known for known in NET_OPTIONS if known == chosen)
        if not instance.masks and net_option == "all with mask":
            net_option = "all"
        changes = (
            ChangeRow(
                row[_START], row[_SEQVAL], row[_OPERATION], row[_MASK], _key(row, places), row[instance.captured_places]
            )
            for slice_ in _reading(scope, instance, low, high)
            for row in slice_
        )
        result = net_changes(changes, net_option, len(captured))
        yield [(row.start_lsn, row.operation, row.mask, *row.values) for row in result]

    name = layout.NET_CHANGES + instance.name
    return SystemTableFunction(name, _NET_LEADING + captured, _ARGUMENTS, rows, instance.change_table)


def _key(row: tuple, places: list[int]) -> tuple:
    return tuple(row[layout.LEADING + place] for place in places)


def _placeholder(name: str) -> SystemTableFunction:
    """A function that is never read: without arguments it gives the text of error 313 [fab]."""

    def rows(_scope: Scope, *_arguments: object) -> Slices:
        raise SqlError(50000, f"cdc.{name} carries permissions only: read the function of a capture instance.")

    return SystemTableFunction(name, _ALL_LEADING, _ARGUMENTS, rows)


def change_function(scope_instances: list[CaptureInstance], name: str) -> SystemTableFunction | None:
    """The function of schema `cdc` called `name`, among the instances of a database."""
    lowered = name.casefold()
    if lowered in layout.PLACEHOLDERS:
        return _placeholder(lowered)
    for instance in scope_instances:
        if lowered == (layout.ALL_CHANGES + instance.name).casefold():
            return all_changes(instance)
        if lowered == (layout.NET_CHANGES + instance.name).casefold() and instance.supports_net_changes:
            return net_changes_function(instance)
    return None
