"""`sp_detach_db`, `sp_attach_db`, `sp_attach_single_file_db`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import error
from mssql_sandbox.exec.detached import attach, detach
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments

_FILES = tuple(f"filename{number}" for number in range(1, 17))


def _outside_transaction(session: SessionState, name: str) -> None:
    """Error 226: a transaction is open."""
    if session.transactions.current is not None:
        raise error(226, statement=name)


def _detach(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = named_arguments(("dbname", "skipchecks", "keepfulltextindexfile"), parameters)
    _outside_transaction(session, "sp_detach_db")
    detach(session, str(given.get("dbname") or ""))
    return 0, []
    yield


def _attach(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = named_arguments(("dbname", *_FILES), parameters)
    _outside_transaction(session, "sp_attach_db")
    attach(session, str(given["dbname"]), [str(given[name]) for name in _FILES if given.get(name) is not None])
    return 0, []
    yield


def _attach_one(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = named_arguments(("dbname", "physname"), parameters)
    _outside_transaction(session, "sp_attach_single_file_db")
    attach(session, str(given["dbname"]), [str(given["physname"])])
    return 0, []
    yield


OWN: Mapping[str, Own] = {
    "sp_detach_db": _detach,
    "sp_attach_db": _attach,
    "sp_attach_single_file_db": _attach_one,
}
