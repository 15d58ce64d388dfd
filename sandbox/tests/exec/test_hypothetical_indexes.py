"""Indexes WITH STATISTICS_ONLY, as the Database Engine Tuning Advisor makes them: shown, and neither kept nor enforced.

Evidence: `sys.indexes.is_hypothetical` and INDEXPROPERTY are documented; the option is published by others [pub].
"""

from __future__ import annotations

from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.registry import Catalog
from tests.exec.conftest import Client

SHOWN = "SELECT type, is_unique, is_disabled, is_hypothetical FROM sys.indexes WHERE name = 'i'"


def test_a_hypothetical_index_is_shown_and_enforces_nothing(server: Server, sql: Client) -> None:
    server.catalog = Catalog(server)
    sql("CREATE TABLE t (a int NOT NULL); INSERT t VALUES (1), (1)")
    assert sql("CREATE UNIQUE INDEX i ON t (a) WITH (STATISTICS_ONLY = -1)").errors == []
    assert sql("INSERT t VALUES (1)").errors == []
    assert sql(SHOWN).rows == [(2, 1, 0, 1)]
    assert sql("SELECT key_ordinal FROM sys.index_columns WHERE object_id = OBJECT_ID('t')").rows == [(1,)]
    assert sql("SELECT INDEXPROPERTY(OBJECT_ID('t'), 'i', 'IsHypothetical')").rows == [(1,)]
    sql("ALTER INDEX ALL ON t REBUILD")
    assert sql("INSERT t VALUES (1)").errors == []
    assert sql("SELECT COUNT(*) FROM t WHERE a = 1").rows == [(4,)]
    assert sql("DROP INDEX i ON t").errors == []
    assert sql(SHOWN).rows == []
