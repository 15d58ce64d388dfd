"""Rules of what monitoring scripts ask about change tables: rows, room, indexes. How much room it is, is an estimate.

Evidence: Microsoft's documentation of `sp_spaceused`, `sp_helpindex` and `sys.allocation_units`.
"""

from __future__ import annotations

import pytest

from tests.cdc.client import World


@pytest.fixture
def captured(world: World) -> World:
    world.execute("CREATE TABLE m (id int NOT NULL CONSTRAINT pk_m PRIMARY KEY, v int)")
    world.execute("CREATE INDEX by_v ON m (v DESC, id)")
    world.enable("m")
    world.stop_capture()
    world.execute("INSERT m VALUES (1, 1), (2, 2), (3, 3)")
    world.capture()
    return world


def test_space_used_counts_rows(captured: World) -> None:
    ((name, rows, *room),) = captured.rows("EXEC sp_spaceused N'cdc.dbo_m_CT'")
    assert (name, int(rows)) == ("dbo_m_CT", 3)
    assert all(text.rstrip().endswith(" KB") for text in room)
    assert captured.execute("EXEC sp_spaceused").sets[0][0][0] == captured.database
    assert captured.error("EXEC sp_spaceused N'dbo.nothing'").number == 15009


def test_indexes_are_listed_with_their_keys(captured: World) -> None:
    found = {name: (kind.split(" located")[0], keys) for name, kind, keys in captured.rows("EXEC sp_helpindex 'dbo.m'")}
    assert found == {
        "by_v": ("nonclustered", "v(-), id"),
        "pk_m": ("clustered, unique, primary key", "id"),
    }


def test_pages_of_change_tables_are_found_over_their_partitions(captured: World) -> None:
    pages = captured.value("""SELECT SUM(a.total_pages) FROM cdc.change_tables c
JOIN sys.partitions p ON p.object_id = c.object_id JOIN sys.allocation_units a ON a.container_id = p.hobt_id""")
    assert pages > 0


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("sys.fn_varbintohexstr(0x00AB)", "0x00ab"),
        ("master.dbo.fn_varbintohexstr(0x00AB)", "0x00ab"),
        ("sys.fn_varbintohexsubstring(0, 0x0102AB, 2, 0)", "02ab"),
        ("sys.fn_varbintohexsubstring(1, 0x0102AB, 2, 1)", "0x02"),
        ("CONVERT(varchar(19), msdb.dbo.agent_datetime(20240102, 30405), 120)", "2024-01-02 03:04:05"),
        ("CONVERT(varchar(19), msdb.dbo.agent_datetime(20240102, 0), 120)", "2024-01-02 00:00:00"),
    ],
)
def test_lsns_and_times_of_jobs_are_made_readable(world: World, expression: str, text: str) -> None:
    assert world.value(f"SELECT {expression}") == text
