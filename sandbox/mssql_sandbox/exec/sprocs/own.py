"""Procedures that change state of the executor: settings here, the others in their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_sandbox.engine.events import Message, RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs import detaching, extended_properties, schema_procedures
from mssql_sandbox.exec.sprocs.named_arguments import Own, named_arguments
from mssql_sandbox.exec.sprocs.renaming import rename


def _configure(session: SessionState, _database: Database, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_configure name, value: the name may be abbreviated while it stays unique."""
    given = named_arguments(("configname", "configvalue"), parameters)
    if "configname" in given and given.get("configvalue") is not None:
        name = str(given["configname"]).lower()
        matching = [key for key in session.server.config if key.lower().startswith(name)]
        known = next((key for key in matching if key.lower() == name or len(matching) == 1), None)
        if known is None:
            raise SqlError(15123, f"The configuration option '{given['configname']}' does not exist, or it may "
                           "be an advanced option.")  # fmt: skip
        old, session.server.config[known] = session.server.config[known], int(given["configvalue"])
        yield Message(
            15457, 1, 10, f"Configuration option '{known}' changed from {old} to {given['configvalue']}. Run "
            "the RECONFIGURE statement to install.", "sp_configure", 1,
        )  # fmt: skip
    return 0, []


OWN: Mapping[str, Own] = {
    "sp_rename": rename,
    "sp_configure": _configure,
    **detaching.OWN,
    **schema_procedures.OWN,
    **extended_properties.OWN,
}
