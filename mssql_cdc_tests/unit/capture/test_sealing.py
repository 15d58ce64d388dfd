"""Texts with key values are sealed in the lake, and read back only with the secret that they were sealed with."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.sealing import Seal, masked_columns, require_sealed
from mssql_cdc.config import Secret
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.lake_kit import column, orders
from mssql_cdc_tests.unit.config.samples import connector_with

TEXT = '{"lower": ["4100"], "name": "ü"}' * 40
MASK = {"column.mask.with.3.chars": "dbo.orders.id"}


def test_a_sealed_text_shows_nothing_of_it_and_is_read_back():
    seal = Seal(Secret("pepper"))
    closed = seal.closed(TEXT)
    assert "4100" not in closed
    assert closed != seal.closed(TEXT)
    assert seal.opened(closed) == TEXT


def test_without_a_secret_texts_stay_as_they_are():
    assert Seal().closed(TEXT) == TEXT
    assert Seal().opened(TEXT) == Seal(Secret("pepper")).opened(TEXT) == TEXT


@pytest.mark.parametrize("other", [Seal(), Seal(Secret("salt"))])
def test_another_secret_reads_nothing_and_is_named(other: Seal):
    with pytest.raises(ConfigurationError, match=r"another delta\.key\.secret"):
        other.opened(Seal(Secret("pepper")).closed(TEXT))


@pytest.mark.parametrize("place", [9, 40, -3])
def test_a_text_that_was_changed_is_refused(place: int):
    seal = Seal(Secret("pepper"))
    closed = seal.closed(TEXT)
    letter = "A" if closed[place] != "A" else "B"
    with pytest.raises(ConfigurationError, match="sealed"):
        seal.opened(closed[:place] + letter + closed[place:][1:])


def test_chunks_of_a_masked_key_need_the_secret():
    keyed = orders(column("id", "varchar", length=9), column("name", "nvarchar", length=50))
    require_sealed(connector_with({}), keyed)
    require_sealed(connector_with({**MASK, "delta.key.secret": "pepper"}), keyed)
    with pytest.raises(ConfigurationError, match=r"\['id'\] of .* are masked; set delta.key.secret"):
        require_sealed(connector_with(MASK), keyed)


def test_a_mask_that_changes_no_value_hides_none():
    assert masked_columns(connector_with(MASK), orders()) == frozenset()
