"""What `run` and `status` say of tables whose rows may be missing: the remedy that works, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.config.filters import TableFilter
from mssql_cdc.errors import DataLostError
from mssql_cdc.plan.decisions import Lost, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import run_for
from mssql_cdc.run.status import read_status
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.absences import absences
from mssql_cdc.source.values import Absence, CapturedTable
from mssql_cdc_tests.storm.lake import connector_for
from mssql_cdc_tests.storm.model_server import ModelServerSession
from mssql_cdc_tests.unit.config.observed.world import World, lake_world

ORDERS, PEOPLE = "shop.dbo.orders", "shop.dbo.people"
HIDDEN = "GRANT SELECT ON [dbo].[orders] TO <login's user>"


def waits(follower: Follower, _: Done | None) -> bool:
    return follower.seen is not None and isinstance(follower.decision, Wait)


def findings(world: World) -> set[str]:
    """What a run ends with, and what the status finds."""
    with pytest.raises(DataLostError) as raised:
        run_for([world.database], seconds=None, merge=False, watch=waits)
    found = read_status(world.database).finding
    assert isinstance(found, DataLostError)
    return {str(raised.value), str(found)}


def unseen(*names: str, captured: bool) -> Any:
    """Let the server show these tables no more: for a right (`captured`), or because CDC was disabled on them."""
    real = ModelServerSession.tables

    def shown(session: ModelServerSession) -> list[CapturedTable]:
        return [one for one in real(session) if one.table_id.text not in names]

    def why(_: ModelServerSession, tables: Mapping[TableId, int | None]) -> dict[TableId, Absence]:
        def rows(sql: str, *, doing: str) -> list[tuple[int | str | None, ...]]:
            assert doing
            if "change_tables" in sql:
                return [(number,) for number in tables.values() if captured]
            return [(number, *table.parts[1:]) for table, number in tables.items() if not captured]

        return absences(SimpleNamespace(rows=rows), tables, TableFilter())  # type: ignore[arg-type]

    return patch.multiple(ModelServerSession, tables=shown, absences=why)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with lake_world(connector_for(tmp_path)) as made:
        made.settle(made.follower())
        yield made


def lose(world: World, name: str) -> None:
    """Clean changes of a table up before they are read."""
    for number in range(3):
        world.change((name, number, "unread"))
    world.scan(500)
    world.clean_up(0, only=name)


def test_a_table_that_the_login_may_not_see_needs_a_right_and_no_snapshot(world: World) -> None:
    with unseen(ORDERS, captured=True):
        for said in findings(world):
            assert HIDDEN in said
            assert "blocking snapshot" not in said
            assert f"No snapshot of {ORDERS} can be read before that is mended" in said


def test_a_table_that_lost_changes_needs_a_snapshot(world: World) -> None:
    lose(world, "people")
    for said in findings(world):
        assert said.endswith(f". A blocking snapshot repairs {PEOPLE}")


def test_a_loss_that_the_last_step_has_recorded_is_told(world: World) -> None:
    """The end went by the look that the step was decided on, in which the table streamed still: code 0."""
    lose(world, "people")
    with pytest.raises(DataLostError, match=rf"A blocking snapshot repairs {PEOPLE}"):
        run_for(
            [world.database], seconds=None, merge=False, watch=lambda follower, _: isinstance(follower.decision, Lost)
        )


def test_each_of_several_tables_has_its_own_remedy(world: World) -> None:
    lose(world, "people")
    with unseen(ORDERS, captured=True):
        for said in findings(world):
            assert f"A blocking snapshot repairs {PEOPLE}" in said
            assert f"No snapshot of {ORDERS} can be read before that is mended" in said


def test_a_table_that_is_not_captured_any_more_is_captured_first(world: World) -> None:
    with unseen(ORDERS, captured=False):
        for said in findings(world):
            assert "enable it (EXEC sys.sp_cdc_enable_table" in said
            assert "blocking snapshot" not in said
            assert f"No snapshot of {ORDERS} can be read before that is mended" in said
