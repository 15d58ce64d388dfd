"""The command `check-config`: what Kafka Connect's validation reports about a Debezium configuration, as JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import ConfigurationError, InvalidPropertiesError, LoginRefusedError, MssqlCdcError

if TYPE_CHECKING:
    from mssql_cdc.config import Connector

_NAME = re.compile(r"[a-z]+(?:\.[\w-]+)+")


@click.command("check-config", epilog=epilog("mssql-cdc check-config --config connectors/shop.json"))
@config_option
@debug_option
@click.pass_obj
def check_config(output: Output, *, config: Path) -> int:
    """Check a configuration and its access to the source.

    Prints {"errors": {property: [messages]}, "databases": [names]}, with the databases' names as the server stores
    them. Exits with 0 if there are no errors. Nothing is read from tables, and nothing is written.
    """
    from mssql_cdc.config import load_connector

    errors: dict[str, list[str]] = {}
    databases: list[str] = []
    code = 0
    try:
        connector = load_connector(config)
    except InvalidPropertiesError as error:
        code = error.exit_code
        for name, problem in error.problems:
            errors.setdefault(name, []).append(problem)
    else:
        output.redact = connector.redact
        for catalog in connector.databases:
            try:
                databases.append(_real_name(connector, catalog, output))
            except MssqlCdcError as error:
                code = max(code, error.exit_code)
                errors.setdefault(property_of(error), []).append(str(error))
                if isinstance(error, LoginRefusedError):
                    break  # The other databases would refuse it, too, and each attempt brings a lockout nearer.
    output.json({"errors": errors, "databases": databases})
    return code


def _real_name(connector: Connector, catalog: str, output: Output) -> str:
    from mssql_cdc.run.preflight import preflight
    from mssql_cdc.source.registry import open_source

    return preflight(connector, open_source(connector), catalog, warn=output.line).name


def property_of(error: MssqlCdcError) -> str:
    """The property to which an error from the source belongs: the first one that its message names.

    Otherwise, as in Debezium's validation (PRE-04, PRE-05), a missing permission belongs to the login, and a server
    that does not answer to the host.
    """
    from mssql_cdc.config.catalogue import find

    named = [name for name in _NAME.findall(str(error)) if find(name) is not None]
    fallback = "database.user" if isinstance(error, ConfigurationError) else "database.hostname"
    return named[0] if named else fallback
