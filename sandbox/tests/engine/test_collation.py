"""Collations: equality, order, code pages, names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.collation import collation_named, find_collation, known_collations
from mssql_sandbox.errors import SqlError

NAMES = ["SQL_Latin1_General_CP1_CI_AS", "Latin1_General_CS_AS", "Latin1_General_100_CI_AI", "Latin1_General_BIN2"]
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)


def equal(collation: str, left: str, right: str) -> bool:
    key = collation_named(collation).key
    return key(left) == key(right)


@pytest.mark.parametrize(
    ("collation", "left", "right", "same"),
    [
        ("Latin1_General_CI_AS", "Müller", "MÜLLER", True),
        ("Latin1_General_CI_AS", "Müller", "Muller", False),
        ("Latin1_General_CI_AI", "Müller", "muller", True),
        ("Latin1_General_CS_AS", "a", "A", False),
        ("Latin1_General_CI_AS", "a", "a   ", True),
        ("Latin1_General_BIN2", "a", "a  ", True),
        ("Latin1_General_CI_AS", " a", "a", False),
        ("Latin1_General_CI_AS", "straße", "STRASSE", True),
        ("Latin1_General_CI_AS", "\uff21", "a", True),
        ("Latin1_General_CI_AS_WS", "\uff21", "a", False),
        ("SQL_Latin1_General_CP1_CI_AS", "\U0001f600", "\U0001f601", True),
        ("Latin1_General_100_CI_AS", "\U0001f600", "\U0001f601", False),
        ("Turkish_CI_AS", "I", "i", False),
    ],
)
def test_equality_follows_the_sensitivities_in_the_name(collation, left, right, same) -> None:
    assert equal(collation, left, right) is same


def test_windows_order_nearly_ignores_hyphens_and_sql_order_of_varchar_does_not() -> None:
    collation = collation_named("SQL_Latin1_General_CP1_CI_AS")
    words = ["co-op", "coop", "cop", "co"]
    assert sorted(words, key=collation.key) == ["co", "coop", "co-op", "cop"]
    assert sorted(words, key=collation.narrow_key) == ["co", "co-op", "coop", "cop"]


def test_linguistic_order_puts_symbols_before_digits_before_letters() -> None:
    key = collation_named("Latin1_General_CI_AS").key
    assert sorted(["b", "_", "A", "9", "a1", "é", "e", "f"], key=key) == ["_", "9", "A", "a1", "b", "e", "é", "f"]


def test_binary_order_is_by_code_and_puts_supplementary_characters_below_the_last_bmp_ones() -> None:
    key = collation_named("Latin1_General_BIN2").key
    assert sorted(["a", "B", "\uffee", "\U0001f600"], key=key) == ["B", "a", "\U0001f600", "\uffee"]


@given(st.sampled_from(NAMES), st.lists(st.text(max_size=6), max_size=6))
def test_keys_of_one_collation_are_comparable_and_blind_to_trailing_blanks(name, texts) -> None:
    collation = collation_named(name)
    for key in (collation.key, collation.narrow_key):
        keys = [key(text) for text in texts]
        assert keys == [key(text + "  ") for text in texts]
        assert sorted(keys) == sorted(keys, reverse=True)[::-1]


@given(ASCII, ASCII)
def test_case_insensitive_keys_are_equal_exactly_when_lowered_texts_are(left, right) -> None:
    same = left.rstrip(" ").lower() == right.rstrip(" ").lower()
    for name in ("SQL_Latin1_General_CP1_CI_AS", "Latin1_General_CI_AI"):
        collation = collation_named(name)
        assert (collation.key(left) == collation.key(right)) is same
        assert (collation.narrow_key(left) == collation.narrow_key(right)) is same


def test_code_page_loss_gives_best_fit_or_question_marks() -> None:
    collation = collation_named("SQL_Latin1_General_CP1_CI_AS")
    assert collation.to_code_page("Ā€Ж\U0001f600") == "A€???"
    assert collation.encode("\x81é") == b"\x81\xe9"
    assert collation.decode(b"\x81\x80") == "\x81€"
    assert collation_named("Latin1_General_100_CI_AS_SC_UTF8").encode("Ж") == "Ж".encode()


def test_names_are_found_in_any_case_and_unknown_ones_are_error_448() -> None:
    assert collation_named("latin1_general_ci_as").name == "Latin1_General_CI_AS"
    assert find_collation("Klingon_CI_AS") is None
    with pytest.raises(SqlError, match="Invalid collation 'Klingon_CI_AS'") as raised:
        collation_named("Klingon_CI_AS")
    assert raised.value.number == 448
    assert {"SQL_Latin1_General_CP1_CI_AS", "Latin1_General_BIN2"} <= {found.name for found in known_collations()}
