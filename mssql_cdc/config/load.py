"""Reads connector files: Debezium's JSON, as posted to Kafka Connect or flat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

from mssql_cdc.config.model import Connector
from mssql_cdc.config.read_properties import connector_from_mapping
from mssql_cdc.errors import ConfigurationError


def load_connector(path: str | Path, *, used: Callable[[Connector], Connector] | None = None) -> Connector:
    """The connector of a file: `{"name": …, "config": {…}}`, or the properties alone.

    Without a name, the file's stem is the name.

    Args:
        path: the file.
        used: turns the connector into the form in which it is used; notices refer to that form.

    Raises:
        ConfigurationError: the file cannot be read, is not a JSON object, or has invalid properties, which it lists.
    """
    path = Path(path)
    document = _read(path)
    inside = document.get("config")
    if inside is None:
        return connector_from_mapping(path.stem, document, used=used)
    if not isinstance(inside, dict):
        raise ConfigurationError(f'{path}: "config" is not a JSON object; expected {{"name": …, "config": {{…}}}}')
    config = cast("dict[str, object]", inside)
    extra = sorted(set(document) - {"name", "config", "tasks", "type", "initial_state"})
    if extra:
        raise ConfigurationError(f'{path}: {", ".join(extra)} is next to "config"; move it inside')
    name = document.get("name", path.stem)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f'{path}: found {name!r} as "name", expected a string')
    inner = config.get("name", name)
    if inner != name and "name" in document:
        raise ConfigurationError(f'{path}: "name" is {name!r} outside and {inner!r} inside "config"; keep one')
    return connector_from_mapping(name, config, used=used)


def load_connectors(folder: str | Path) -> tuple[dict[Path, Connector], dict[Path, ConfigurationError]]:
    """Every connector of a folder by its file, in the order of names, and the files that are wrong, with the reason.

    `<stem>.tables.json` files list tables. Of two connectors with the same `topic.prefix`, the second one is wrong
    because their paths would collide. An error in one file does not affect the others.

    Raises:
        ConfigurationError: there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigurationError(f"{folder}: no such folder; create it with one Debezium JSON file per connector")
    paths = [one for one in sorted(folder.glob("*.json")) if not one.name.endswith(".tables.json")]
    connectors: dict[Path, Connector] = {}
    problems: dict[Path, ConfigurationError] = {}
    owners: dict[str, Path] = {}
    for path in paths:
        try:
            connector = load_connector(path)
            key = connector.topic_prefix.lower()
            if key in owners:
                raise ConfigurationError(
                    f"{path}: topic.prefix {connector.topic_prefix!r} is already used by {owners[key]}; give each "
                    "connector its own"
                )
        except ConfigurationError as error:
            problems[path] = error
            continue
        except Exception as error:  # noqa: BLE001 (any: the other connectors still load; its text may show a secret)
            problems[path] = ConfigurationError(
                f"{path}: its configuration cannot be read ({type(error).__name__}); "
                f"mssql-cdc discover --config {path} shows where"
            )
            continue
        owners[key] = path
        connectors[path] = connector
    return connectors, problems


def _read(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read as UTF-8 text ({type(error).__name__})") from None
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"{path}: invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: the JSON is nested too deeply") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f'{path}: expected a JSON object, {{"name": …, "config": {{…}}}} or flat')
    return cast("dict[str, object]", document)


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"found {name} twice; keep one")
        found[name] = value
    return found
