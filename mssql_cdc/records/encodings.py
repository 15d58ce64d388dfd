"""JSON texts of bytes and exact numbers, in the formats of Kafka Connect's converter and `binary.handling.mode`."""

from __future__ import annotations

import base64
from collections.abc import Callable


def unscaled_text(number: int) -> str:
    """Return the base64 of an unscaled number's shortest two's complement form (Java's `toByteArray`)."""
    bits = number.bit_length() if number >= 0 else (~number).bit_length()
    return base64.b64encode(number.to_bytes(bits // 8 + 1, "big", signed=True)).decode()


def binary_encoder(mode: str) -> Callable[[bytes], str]:
    """Return the encoder of a `binary.handling.mode`; the mode `bytes` is base64 in JSON, too."""
    return {"hex": bytes.hex, "base64-url-safe": _url_safe}.get(mode, _base64)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _url_safe(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()
