"""Masks give Debezium's values."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config import Secret
from mssql_cdc.config.masks import MaskRule, java_serialized
from mssql_cdc.config.patterns import PatternList
from mssql_cdc_tests.unit.config.samples import connector_with, sent

ANY = PatternList(".*")


def hash_rule(algorithm: str, salt: str, version: int) -> MaskRule:
    return MaskRule(kind="hash", columns=ANY, algorithm=algorithm, salt=Secret(salt), version=version)


@pytest.mark.feature("FLT-08", "FLT-09")
@pytest.mark.parametrize(
    ("version", "algorithm", "salt", "value", "digest"),
    [
        (
            1,
            "SHA-256",
            "CzQMA0cB5K",
            "some_name",
            "3b225d0696535d66f2c0fb2e36b012c520d396af3dd8f18330b9c9cd23ca714e",
        ),
        (1, "SHA-256", "salt", "hello", "af5843a0f0e728ab0332c8888b6e1190bfb79e584f0d40538de8f10df6ef29c6"),
        (1, "MD5", "salt", "hello", "46f48a7a5ea32efba87cbff49d46d35a"),
        (2, "SHA-256", "salt", "hello", "cd31b3b98ece60cb739c0bf770b2de892ae0ad133f645513c3d83f08757a843a"),
    ],
)
def test_hash_is_debeziums(version: int, algorithm: str, salt: str, value: str, digest: str) -> None:
    assert hash_rule(algorithm, salt, version).apply(value) == digest
    assert hash_rule(algorithm.lower(), salt, version).apply(value, column_length=20) == digest[:20]


@pytest.mark.feature("FLT-08")
def test_hash_keeps_null_and_a_column_without_length_keeps_the_whole_digest() -> None:
    rule = hash_rule("SHA-1", "s", 2)
    assert rule.apply(None) is None
    for unknown in (None, -1, 0):
        assert rule.apply("a", column_length=unknown) == hashlib.sha1(b"sa", usedforsecurity=False).hexdigest()


@pytest.mark.feature("FLT-08")
@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("", b"\x74\x00\x00"),
        ("a", b"\x74\x00\x01a"),
        ("\0", b"\x74\x00\x02\xc0\x80"),
        ("é", b"\x74\x00\x02\xc3\xa9"),
        ("😀", b"\x74\x00\x06\xed\xa0\xbd\xed\xb8\x80"),
        ("\ud83d", b"\x74\x00\x03\xed\xa0\xbd"),
    ],
)
def test_java_serialization_uses_modified_utf8(value: str, body: bytes) -> None:
    assert java_serialized(value) == b"\xac\xed\x00\x05" + body


def test_java_serialization_of_a_long_text_has_an_eight_byte_length() -> None:
    assert java_serialized("x" * 65536)[:13] == b"\xac\xed\x00\x05\x7c" + (65536).to_bytes(8, "big")
    assert java_serialized("x" * 65535)[:7] == b"\xac\xed\x00\x05\x74\xff\xff"


@pytest.mark.feature("FLT-07")
@given(st.none() | st.text(), st.integers(0, 50))
def test_fill_gives_asterisks_for_everything_null_too(value: str | None, length: int) -> None:
    assert MaskRule(kind="fill", columns=ANY, length=length).apply(value) == "*" * length


@pytest.mark.feature("FLT-06")
@given(st.text(), st.integers(1, 20))
def test_truncate_gives_a_prefix_and_is_idempotent(value: str, length: int) -> None:
    rule = MaskRule(kind="truncate", columns=ANY, length=length)
    cut = rule.apply(value)
    assert cut is not None
    assert value.startswith(cut)
    assert len(cut) == min(len(value), length)
    assert rule.apply(cut) == cut
    assert rule.apply(None) is None


@pytest.mark.feature("FLT-06")
def test_truncate_cuts_bytes_and_other_masks_leave_them() -> None:
    truncate = MaskRule(kind="truncate", columns=ANY, length=2)
    assert truncate.apply_bytes(b"abc") == b"ab"
    assert truncate.apply_bytes(None) is None
    assert MaskRule(kind="fill", columns=ANY, length=2).apply_bytes(b"abc") == b"abc"


@pytest.mark.feature("FLT-07")
def test_masks_concern_character_columns_only() -> None:
    fill = MaskRule(kind="fill", columns=ANY, length=1)
    truncate = MaskRule(kind="truncate", columns=ANY, length=1)
    assert fill.applies_to("NVARCHAR")
    assert not fill.applies_to("int")
    assert not fill.applies_to("varbinary")
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
def test_propagating_the_source_type_never_uncovers_a_masked_column() -> None:
    filters = connector_with(
        {"column.propagate.source.type": "dbo.a.x", "column.mask.hash.v2.SHA-256.with.salt.s": "dbo.a.x"}
    ).filters
    assert filters.mask_for("testDB", "dbo", "a", "x") is not None


def test_rule_pickles_and_hides_its_salt() -> None:
    rule = hash_rule("SHA-256", "pepper", 2)
    assert "pepper" not in repr(rule)
    assert sent(rule).apply("a") == rule.apply("a")
