"""Configurations that several test modules use as a base."""

import pickle
from collections.abc import Mapping
from typing import TypeVar

import pytest

from mssql_cdc.config import Connector, connector_from_mapping
from mssql_cdc.errors import ConfigurationError

T = TypeVar("T")

MINIMAL: dict[str, object] = {
    "database.hostname": "db.example.com",
    "database.names": "testDB",
    "topic.prefix": "server1",
}


def connector(**given: object) -> Connector:
    """A minimal connector with further properties; `__` in a name stands for a dot."""
    return connector_from_mapping("c", MINIMAL | {name.replace("__", "."): value for name, value in given.items()})


def connector_with(properties: Mapping[str, object]) -> Connector:
    """A minimal connector with further properties."""
    return connector_from_mapping("c", {**MINIMAL, **properties})


def sent(value: T) -> T:
    """The value as it arrives at a Spark worker."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def problems_of(properties: dict[str, object]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        connector_from_mapping("c", properties)
    return str(caught.value)
