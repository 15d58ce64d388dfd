"""The documentation is generated from the fields of the sections."""

from pathlib import Path

import mssql_cdc
from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.documentation import configuration_document

COMMITTED = Path(mssql_cdc.__file__).parents[1] / "docs" / "configuration.md"


def test_committed_document_matches_the_generated_one() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == configuration_document(), (
        "run: python -m mssql_cdc.config.documentation > docs/configuration.md"
    )


def test_every_property_has_its_row() -> None:
    text = configuration_document()
    assert [one.name for one in ALL if f"\n| `{one.name}` |" not in text] == []
