"""PRELOGIN and LOGIN7: the bargain about encryption, and every field of the login."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.tds.login import parse_login
from mssql_sandbox.tds.prelogin import Encryption, Protection, negotiate, parse_prelogin, prelogin_reply
from mssql_sandbox.tds.wire import ProtocolError
from tests.tds.raw_client import PRELOGIN, login7


@pytest.mark.parametrize(
    ("mode", "client", "reply", "protection"),
    [
        ("off", 0, 2, Protection.NOTHING),
        ("off", 1, 2, Protection.NOTHING),
        ("off", 3, 2, Protection.NOTHING),
        ("login", 0, 0, Protection.LOGIN),
        ("login", 1, 1, Protection.EVERYTHING),
        ("login", 2, 2, Protection.NOTHING),
        ("login", 3, 1, Protection.EVERYTHING),
        ("on", 0, 3, Protection.EVERYTHING),
        ("on", 1, 1, Protection.EVERYTHING),
        ("on", 2, 3, Protection.EVERYTHING),
        ("on", 3, 1, Protection.EVERYTHING),
    ],
)
def test_encryption_follows_the_matrix(mode: str, client: int, reply: int, protection: Protection) -> None:
    assert negotiate(mode, Encryption(client)) == (Encryption(reply), protection)  # type: ignore[arg-type]


def test_prelogin_reply_has_the_measured_options_and_answers_federation_only_when_asked() -> None:
    reply = prelogin_reply(parse_prelogin(PRELOGIN), Encryption.NOT_SUPPORTED)
    assert reply == bytes.fromhex(
        "00001a0006 0100200001 0200210001 0300220000 0400220001 ff 100010350000 02 00 00".replace(" ", "")
    )
    asking = bytes.fromhex("0100 0b0001 0600 0c0001 ff 0201".replace(" ", ""))
    assert parse_prelogin(asking).wants_federated
    assert b"\x06\x00" in prelogin_reply(parse_prelogin(asking), Encryption.OFF)[:31]


@given(st.binary(max_size=60))
def test_random_prelogin_is_read_or_refused(data: bytes) -> None:
    try:
        assert parse_prelogin(data).encryption in Encryption
    except ProtocolError as error:
        assert str(error)  # noqa: PT017


@given(st.text(max_size=100), st.text(max_size=100), st.text(max_size=100))
def test_login_fields_come_through(user: str, password: str, database: str) -> None:
    login = parse_login(login7(user=user, password=password, database=database))
    assert (login.user, login.password, login.database) == (user, password, database)


@given(st.text(max_size=100))
def test_a_login_shows_nothing_of_its_password(password: str) -> None:
    assert repr(parse_login(login7(user="u", password=password))) == repr(parse_login(login7(user="u", password="")))


@pytest.mark.parametrize(("asked", "given_"), [(0, 4096), (8000, 8000), (100, 512), (65535, 32767)])
def test_packet_size_stays_within_what_tds_allows(asked: int, given_: int) -> None:
    assert parse_login(login7(user="u", password="p", packet_size=asked)).negotiated_packet_size == given_


def test_read_only_intent_and_features_are_read() -> None:
    plain = bytearray(login7(user="u", password="p"))
    plain[26] |= 0x20  # type flags: read-only intent
    plain[27] |= 0x10  # option flags 3: there is an extension
    at = len(plain)
    plain[56:60] = struct.pack("<HH", at, 4)
    plain += struct.pack("<I", at + 4) + b"\x0a\x01\x00\x00\x00\x01" + b"\xff"
    login = parse_login(bytes(plain))
    assert login.read_only_intent
    assert login.features == {0x0A: b"\x01"}


@pytest.mark.parametrize(
    ("version", "spoken"),
    [(0x71000001, False), (0x72090002, False), (0x730B0003, True), (0x74000004, True), (0x08000000, True)],
)
def test_protocols_from_7_3_are_spoken(version: int, spoken: bool) -> None:  # noqa: FBT001
    assert parse_login(login7(user="sa", password="x", version=version)).spoken is spoken


@given(st.data())
def test_damaged_login_is_read_or_refused(data: st.DataObject) -> None:
    message = bytearray(login7(user="user", password="secret", database="db"))
    for _ in range(data.draw(st.integers(1, 8))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert parse_login(bytes(message[: data.draw(st.integers(0, len(message)))]))
    except ProtocolError as error:
        assert str(error)  # noqa: PT017
