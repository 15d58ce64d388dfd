"""The limit on captured tables."""

from __future__ import annotations

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.run.start import guard
from mssql_cdc_tests.unit.config.samples import connector


@pytest.mark.feature("GRD-01", "GRD-02")
def test_more_tables_than_allowed_cause_a_warning_or_an_error():
    said: list[str] = []
    guard(connector(), 1000, warn=said.append)
    guard(connector(**{"guardrail.collections.max": "3"}), 3, warn=said.append)
    assert said == []
    guard(connector(**{"guardrail.collections.max": "3"}), 4, warn=said.append)
    assert "Guardrail limit exceeded: 4 tables" in said[0]
    failing = connector(**{"guardrail.collections.max": "3", "guardrail.collections.limit.action": "fail"})
    with pytest.raises(ConfigurationError, match="Guardrail limit exceeded: 4 tables"):
        guard(failing, 4, warn=said.append)
