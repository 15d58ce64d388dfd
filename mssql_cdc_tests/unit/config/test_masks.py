"""Mask properties become executable rules."""

import hashlib

import pyarrow as pa
import pytest

from mssql_cdc.config import MaskRule
from mssql_cdc.events import HashMask
from mssql_cdc.schema.types import SqlServerType
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of, sent


def rule_of(name: str) -> MaskRule:
    """The rule that one property creates for the column `dbo.a.x`."""
    rule = connector_with({name: "dbo.a.x"}).filters.mask_for("testDB", "dbo", "a", "x")
    assert rule is not None
    return rule


@pytest.mark.feature("FLT-08", "FLT-09")
@pytest.mark.parametrize(
    ("java", "python"),
    [
        ("MD5", "md5"),
        ("md5", "md5"),
        ("SHA", "sha1"),
        ("SHA1", "sha1"),
        ("SHA-1", "sha1"),
        ("SHA-224", "sha224"),
        ("SHA-256", "sha256"),
        ("sha-256", "sha256"),
        ("SHA-384", "sha384"),
        ("SHA-512", "sha512"),
        ("SHA3-224", "sha3_224"),
        ("SHA3-256", "sha3_256"),
        ("SHA3-384", "sha3_384"),
        ("SHA3-512", "sha3_512"),
    ],
)
def test_every_accepted_algorithm_hashes(java: str, python: str) -> None:
    rule = rule_of(f"column.mask.hash.v2.{java}.with.salt.s")
    assert rule.salt is not None
    hashed = HashMask(rule.algorithm, rule.salt.read(), rule.version).apply(pa.array(["a"]), SqlServerType("text"))
    assert hashed.to_pylist() == [hashlib.new(python, b"sa", usedforsecurity=False).hexdigest()]


@pytest.mark.feature("FLT-07")
def test_masks_apply_to_text_columns_only() -> None:
    fill = rule_of("column.mask.with.1.chars")
    truncate = rule_of("column.truncate.to.1.chars")
    assert fill.applies_to("NVARCHAR")
    assert not fill.applies_to("int")
    assert not fill.applies_to("varbinary")
    assert all(fill.applies_to(name) for name in ("uniqueidentifier", "xml", "json", "sql_variant"))
    assert truncate.applies_to("varbinary")


@pytest.mark.feature("FLT-10")
def test_first_rule_in_debeziums_order_wins() -> None:
    filters = connector_with(
        {
            "column.mask.hash.v2.SHA-256.with.salt.x": "dbo.a..*",
            "column.mask.hash.SHA-256.with.salt.x": "dbo.a.(v1|fill|cut)",
            "column.mask.with.3.chars": "dbo.a.(fill|cut)",
            "column.truncate.to.2.chars": r"testDB\.dbo\.a\.cut",
        }
    ).filters
    kinds = {}
    for column in ("cut", "fill", "v1", "other"):
        rule = filters.mask_for("testDB", "dbo", "a", column)
        assert rule is not None
        kinds[column] = (rule.kind, rule.version)
    assert kinds["cut"][0] == "truncate"
    assert kinds["fill"][0] == "fill"
    assert kinds["v1"] == ("hash", 1)
    assert kinds["other"] == ("hash", 2)
    assert filters.mask_for("testDB", "dbo", "b", "v1") is None


@pytest.mark.feature("FLT-10")
def test_propagating_the_source_type_never_exposes_a_masked_column() -> None:
    filters = connector_with(
        {"column.propagate.source.type": "dbo.a.x", "column.mask.hash.v2.SHA-256.with.salt.s": "dbo.a.x"}
    ).filters
    assert filters.mask_for("testDB", "dbo", "a", "x") is not None


@pytest.mark.parametrize(
    "name",
    [
        "column.mask.hash.SHA-256.salt.topsecret",
        "colum.mask.hash.SHA-256.with.salt.topsecret",
        "column.mask.v2.SHA-256.with.salt.topsecret",
        "column.mask.hash.SHA-256.with.slat.topsecret",
        "column.mask.hash.v2.SHA-256.whit.salz.topsecret",
        "column.mask.hash.SHA-256.topsecret.more",
        "Column.Mask.Hash.SHA-256.With.Salt.topsecret",
    ],
)
def test_a_salt_is_not_shown_although_its_property_is_misspelled(name: str) -> None:
    shown = problems_of({**MINIMAL, name: "dbo.a.x"})
    assert "topsecret" not in shown
    assert ".***: unknown property" in shown


def test_rule_survives_pickling_and_hides_its_salt() -> None:
    rule = rule_of("column.mask.hash.v2.SHA-256.with.salt.pepper")
    assert "pepper" not in repr(rule)
    assert sent(rule) == rule
