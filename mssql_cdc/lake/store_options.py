"""The options of an object store, which users write in deltalake's form, converted for obstore, which puts the commits.

Code that reads and writes data files uses them as they are (`lake/storage.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from mssql_cdc.errors import StorageError

if TYPE_CHECKING:
    from obstore.store import BackoffConfig, RetryConfig

_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "timeout",
    "user_agent",
}
_OF_DELTALAKE = (
    "allow_unsafe_rename",
    "aws_ec2_metadata_disabled",
    "aws_force_credential_load",
    "aws_s3_allow_unsafe_rename",
    "aws_s3_locking_provider",
    "delta_dynamo",
    "mount_allow_unsafe_rename",
    "object_store_concurrency_limit",
)
_ASSUMED_ROLE = "aws_iam_role"
_RETRIES = ("max_retries", "retry_timeout", "backoff_config.")
_DURATION = re.compile(r"(\d+) *(ms|sec|s|min|m|h)\b")
_MILLISECONDS = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """deltalake's storage options as obstore expects them."""

    store: dict[str, str]
    client: dict[str, str]
    retry: RetryConfig


def split_options(options: dict[str, str]) -> StoreOptions:
    """Split deltalake's storage options into those of the store, of its HTTP client and of retries.

    deltalake accepts them in one mapping, in any letter case, along with options of its own that mean nothing here.

    Raises:
        StorageError: An option has no counterpart, or a value of the wrong kind.
    """
    lower = {name.lower(): value for name, value in options.items()}
    roles = sorted(name for name in options if name.lower().startswith(_ASSUMED_ROLE))
    if roles:
        raise StorageError(
            f"delta.storage.{roles[0]}: commits are put without STS. Give credentials of the role, or "
            "AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE"
        )
    retry = _retries(lower)
    plain = {name.removeprefix("aws_") if name == "aws_allow_http" else name: value for name, value in lower.items()}
    mine = {n: v for n, v in plain.items() if not n.startswith(_OF_DELTALAKE + _RETRIES)}
    client = {name: value for name, value in mine.items() if name in _CLIENT_OPTIONS}
    return StoreOptions({n: v for n, v in mine.items() if n not in _CLIENT_OPTIONS}, client, retry)


def _retries(options: Mapping[str, str]) -> RetryConfig:
    retry: RetryConfig = {}
    backoff: BackoffConfig = {}
    for name, value in options.items():
        try:
            match name:
                case "max_retries":
                    retry["max_retries"] = int(value)
                case "retry_timeout":
                    retry["retry_timeout"] = _duration(value)
                case "backoff_config.init_backoff":
                    backoff["init_backoff"] = _duration(value)
                case "backoff_config.max_backoff":
                    backoff["max_backoff"] = _duration(value)
                case "backoff_config.base":
                    backoff["base"] = float(value)
                case _:
                    pass
        except ValueError as error:
            raise StorageError(f"delta.storage.{name}: {error}") from error
    if backoff:
        retry["backoff"] = backoff
    return retry


def _duration(text: str) -> timedelta:
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"expected a duration such as 500ms, 10s or 3m, found {text!r}")
    return timedelta(milliseconds=sum(int(number) * _MILLISECONDS[unit] for number, unit in parts))
