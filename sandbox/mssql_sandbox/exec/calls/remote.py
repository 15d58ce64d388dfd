"""Remote procedure calls: special ones (prepared, apicursors), system and users' procedures by name."""

from __future__ import annotations

from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import OutputParameter, ProcDone, ReturnStatus, RpcParameter
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.calls.procedures import call_by_text
from mssql_sandbox.exec.consequences import end_of_batch
from mssql_sandbox.exec.failures import messages_of
from mssql_sandbox.exec.flow import Abort, Steps
from mssql_sandbox.exec.session_state import SessionState


def call(session: SessionState, name: str, parameters: list[RpcParameter]) -> Steps:
    """Run one call: result sets, return status, output parameters, end.

    Outputs are returned in the types in which the client sent their parameters, as in variables [wire: go-mssqldb's own
    tests; doc: SqlParameter.Size cuts the values of outputs].
    """
    special = session.language.procedures.get(name.lower().replace("[", "").replace("]", "").removeprefix("sys."))
    failed = False
    try:
        if special is not None:
            status, outputs = yield from special(session, parameters)
        else:
            status, outputs = yield from call_by_text(session, name, parameters)
        yield ReturnStatus(status)
        for ordinal, out_name, type_, value in outputs:
            wanted = parameters[ordinal].type
            yield OutputParameter(
                out_name, ordinal, wanted, value if type_ == wanted else convert(value, type_, wanted)
            )
    except SqlError as failure:
        session.last_error = failure.number
        failed = True
        yield from messages_of(failure)
    except Abort:
        failed = True
    yield from end_of_batch(session)
    yield ProcDone(session.transactions.current is not None, failed)
    return None
