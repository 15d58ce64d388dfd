"""The page about faults names every procedure that causes one."""

from __future__ import annotations

import re
from pathlib import Path

from mssql_sandbox import faults, incidents, wire_faults

DOCUMENT = Path(__file__).parents[1] / "docs" / "faults.md"


def test_the_document_names_every_fault_procedure_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"EXEC (sandbox\.\w+)", text)) == {
        f"sandbox.{one.name}" for one in (*faults.PROCEDURES, *wire_faults.PROCEDURES, *incidents.PROCEDURES)
    }
