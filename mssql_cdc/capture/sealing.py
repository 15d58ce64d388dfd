"""Seals texts of the lake that hold key values which no other part of it has: the chunks of masked keys.

With `delta.key.secret` a text is XORed with SHAKE-256 of a derived key and a random nonce, and authenticated with an
HMAC-SHA256 of another derived key (encrypt, then MAC). Bounds have to be read back, so a hash would not do. Without the
secret texts stay as they are, and chunks that masked columns order are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from mssql_cdc.config import Connector, Secret
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import TableSchema

_PREFIX = "sealed:1:"
_NONCE, _TAG = 16, 32


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals texts with a secret, which is resolved where it is used; without one it leaves them as they are."""

    secret: Secret | None = None

    def closed(self, text: str) -> str:
        """The sealed text."""
        if self.secret is None:
            return text
        nonce = secrets.token_bytes(_NONCE)
        body = nonce + self._xored(nonce, text.encode())
        return _PREFIX + base64.b64encode(body + self._tag(body)).decode()

    def opened(self, text: str) -> str:
        """The text that was sealed; one that was not is returned as it is.

        Raises:
            ConfigurationError: it was sealed with another secret, or was changed since.
        """
        if not text.startswith(_PREFIX):
            return text
        try:
            whole = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            whole = b""
        body, tag = whole[:-_TAG], whole[-_TAG:]
        if self.secret is None or not hmac.compare_digest(tag, self._tag(body)):
            raise ConfigurationError(
                "The chunks of a snapshot are sealed with another delta.key.secret than the present one; set "
                "the one that the lake was written with"
            )
        return self._xored(body[:_NONCE], body[_NONCE:]).decode()

    def _xored(self, nonce: bytes, data: bytes) -> bytes:
        stream = hashlib.shake_256(self._derived(b"stream") + nonce).digest(len(data))
        return bytes(one ^ other for one, other in zip(data, stream, strict=True))

    def _tag(self, body: bytes) -> bytes:
        return hmac.digest(self._derived(b"tag"), body, "sha256")

    def _derived(self, purpose: bytes) -> bytes:
        assert self.secret is not None  # nothing is sealed without it
        return hmac.digest(self.secret.read().encode(), b"mssql_cdc sealing " + purpose, "sha256")


def masked_columns(connector: Connector, schema: TableSchema) -> frozenset[str]:
    """The names of a table's columns whose values a mask changes.

    Args:
        connector: The configuration.
        schema: The table.
    """
    parts = schema.table_id.parts
    rules = ((column, connector.filters.mask_for(*parts, column.name)) for column in schema.columns)
    return frozenset(column.name for column, rule in rules if rule is not None and rule.applies_to(column.type.name))


def require_sealed(connector: Connector, by: TableSchema) -> None:
    """Refuse chunks whose bounds would put values of masked columns into the lake.

    Args:
        connector: The configuration.
        by: The table, with the columns that order its chunks as its key.

    Raises:
        ConfigurationError: There is no `delta.key.secret` to seal them with.
    """
    masked = sorted(masked_columns(connector, by) & {*by.key_columns})
    if masked and connector.delta.key_secret is None:
        raise ConfigurationError(
            f"The key columns {masked} of {by.table_id} are masked; set delta.key.secret so that rows can be told "
            "apart, and chunks be ordered, without their values in the lake"
        )
