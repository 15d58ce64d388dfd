"""Which rows of an availability group's replicas tell how far all of them have hardened the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.health import AZURE_SQL_DATABASE
from mssql_cdc.source.sqlserver.replica_states import is_held_back, least_hardened, numeric_lsn, own_log_end

ENTERPRISE, MANAGED_INSTANCE = 3, 8
EARLY, LATE = 37_0000000100_00001, 37_0000000200_00001


class Replica(NamedTuple):
    is_local: bool
    is_primary_replica: bool
    last_hardened_lsn: int | None


PRIMARY = Replica(True, True, None)


@dataclass
class Server:
    """It answers every question with the same rows."""

    answer: list[Any]
    asked: list[str] = field(default_factory=list[str])

    def rows(self, sql: str, *, doing: str) -> list[Any]:  # noqa: ARG002 (the control's)
        self.asked.append(sql)
        return self.answer

    def value(self, sql: str, *, doing: str) -> Any:  # noqa: ARG002 (the control's)
        self.asked.append(sql)
        return self.answer[0]


def server(*answer: Any) -> Control:
    return cast("Control", Server(list(answer)))


@pytest.mark.parametrize(
    ("replicas", "edition", "expected"),
    [
        ([PRIMARY, Replica(False, False, LATE), Replica(False, False, EARLY)], ENTERPRISE, EARLY),
        ([PRIMARY, Replica(False, False, LATE), Replica(False, False, None)], ENTERPRISE, None),
        ([PRIMARY, Replica(False, False, LATE), Replica(False, False, 0)], ENTERPRISE, None),
        ([PRIMARY], ENTERPRISE, None),
        ([], ENTERPRISE, None),
        ([Replica(True, False, LATE)], ENTERPRISE, None),
        ([Replica(True, False, LATE)], AZURE_SQL_DATABASE, None),
        ([PRIMARY, Replica(False, False, LATE)], AZURE_SQL_DATABASE, None),
        ([Replica(True, True, EARLY), Replica(False, False, LATE)], AZURE_SQL_DATABASE, EARLY),
        ([Replica(True, True, EARLY)], AZURE_SQL_DATABASE, EARLY),
    ],
    ids=[
        "the least", "one does not tell", "one has nothing", "no secondary is shown", "no group", "a secondary",
        "a secondary in Azure", "hidden replicas that do not tell", "hidden replicas", "hidden replicas only",
    ],
)  # fmt: skip
def test_all_secondaries_have_to_tell_what_they_have_hardened(
    replicas: list[Replica], edition: int, expected: int | None
):
    found = least_hardened(server(*replicas), edition)
    assert found == (None if expected is None else numeric_lsn(expected))


def test_a_login_that_may_not_ask_knows_nothing():
    class Refusing:
        def rows(self, sql: str, *, doing: str) -> list[Any]:
            raise ConfigurationError(f"{sql} {doing}")

    assert least_hardened(cast("Control", Refusing()), ENTERPRISE) is None


def test_the_end_of_a_secondarys_log_is_after_all_that_is_redone_even_if_the_view_is_out_of_date():
    assert own_log_end(server((EARLY, LATE, None)), ENTERPRISE) == numeric_lsn(LATE)
    assert own_log_end(server((None, None, None)), ENTERPRISE) is None


@pytest.mark.parametrize(("edition", "mirrored"), [(ENTERPRISE, True), (MANAGED_INSTANCE, False), (5, False)])
def test_managed_servers_have_no_view_of_mirrors(edition: int, mirrored: bool):  # noqa: FBT001 (a parameter)
    found = Server([1])
    assert is_held_back(cast("Control", found), edition)
    assert ("sys.database_mirroring" in found.asked[0]) == mirrored
    assert not is_held_back(server(0), edition)
    assert is_held_back(server(None), edition), "the database does not show itself"
